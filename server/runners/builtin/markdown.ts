/** Putting text that others wrote into Markdown, so that it shows as it is. Pure. */

/** As plain text on one line. */
export function plainText(text: string): string {
  return text
    .replace(/[\s\x00-\x1f\x7f]+/g, ' ')
    .trim()
    .replace(/[\\`*_[\]<>#|~]/g, '\\$&');
}

/** As code on one line. */
export function codeSpan(text: string): string {
  const line = text.replace(/[\s\x00-\x1f\x7f]+/g, ' ');
  const fence = '`'.repeat(longestRun(line) + 1);
  return line.includes('`') ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`;
}

/** As a block of code. */
export function codeBlock(text: string): string {
  const fence = '`'.repeat(Math.max(3, longestRun(text) + 1));
  return `${fence}\n${text}\n${fence}`;
}

const longestRun = (text: string): number => Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
