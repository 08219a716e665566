/** How a call of an agent ended, as a tool card shows it: a text, and what it changed as a unified diff. Both bounded. */
import { diffOf, MAX_DIFF } from '../../workspace/diff.ts';
import { type CallContent, type FileChange, rawOutputText } from './content.ts';
import { boundedJson, cutMiddle, isEmptyValue, oneLineOf, recordOf } from './raw.ts';

const RESULT_CHARACTERS = 32 * 1024;

const DENIED = 'The person did not allow this.';

export interface EndedCall {
  content: CallContent;
  /** What its terminals put out; empty where it had none. */
  output: string;
  rawOutput: unknown;
  /** Where it stands how a command ended: `exit_code` or `exitCode`, `signal`. */
  exit: unknown;
}

export interface HowShown {
  isError: boolean;
  /** The person said no: what it would have changed is no change. */
  denied: boolean;
  /** The folder whose files are named relative to it. */
  cwd: string | null;
  /** What there is to say beside what the agent has told. */
  words: string | null;
}

export function callResult(
  call: EndedCall,
  { isError, denied, cwd, words }: HowShown,
): { result: string; diff?: string } {
  const diffs = isError || denied ? [] : call.content.changes.map((change) => shownChange(change, cwd));
  const raw = rawOutputText(call.rawOutput);
  const texts = [call.content.text, call.output, raw ?? '', diffs.map(({ words }) => words).join('\n')];
  const end = exitWords(call.exit);
  const unsaid = denied ? DENIED : otherWords(raw === null ? call.rawOutput : '', isError && end === '');
  const other = words === null ? unsaid : '';
  const text = cutMiddle(texts.find((each) => each.trim() !== '') ?? other, RESULT_CHARACTERS);
  const result = [text + end, words ?? ''].filter((part) => part !== '').join('\n');
  const diff = joined(diffs.map(({ text }) => text));
  return diff === '' ? { result } : { result, diff };
}

function shownChange({ path, before, after }: FileChange, cwd: string | null): { words: string; text: string } {
  const inside = cwd !== null && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
  const name = oneLineOf(inside, 400) || 'file';
  // Many agents give the part of a file that they have replaced, without the end of its last line.
  const isPart = before !== null && !before.endsWith('\n') && !after.endsWith('\n');
  const [old, now] = isPart ? [`${before}\n`, `${after}\n`] : [before, after];
  const shown = name.replace(/^\//, '');
  const { text, added, removed } = diffOf(old?.toWellFormed() ?? null, now.toWellFormed(), shown);
  const words =
    before === null ? `Created "${name}" (${added} lines).` : `Changed "${name}" (+${added} −${removed} lines).`;
  return { words, text: text.replaceAll('\0', '\uFFFD') };
}

/** Diffs behind each other, as far as there is room. */
function joined(diffs: readonly string[]): string {
  let all = '';
  for (const [index, diff] of diffs.entries()) {
    if (all !== '' && all.length + diff.length > MAX_DIFF) {
      return `${all}[Changes of ${diffs.length - index} more files are left out.]\n`;
    }
    all += diff;
  }
  return all;
}

function otherWords(rawOutput: unknown, isError: boolean): string {
  if (typeof rawOutput === 'object' && !isEmptyValue(rawOutput)) {
    return JSON.stringify(boundedJson(rawOutput, RESULT_CHARACTERS), null, 2);
  }
  return isError ? 'The agent says that this failed, and not why.' : '(no output)';
}

function exitWords(exit: unknown): string {
  const { exit_code, exitCode, signal } = recordOf(exit);
  if (typeof signal === 'string' && signal !== '') return `\n[ended by signal ${oneLineOf(signal, 20)}]`;
  const code = exit_code ?? exitCode;
  return typeof code === 'number' && code !== 0 ? `\n[exit code ${code}]` : '';
}
