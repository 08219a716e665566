/**
 * A session as one page that stands alone: everything that anybody wrote is text, nothing in it runs, and its own policy
 * lets nothing be fetched (UI4 for a file that is opened from a disk).
 */
import { createHash } from 'node:crypto';
import type { DocumentSession } from '../core/session-document.ts';
import type { Message } from '../core/terms.ts';
import { readable, timeText } from './export-words.ts';

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 48rem; margin: 2rem auto; padding: 0 1rem; }
article { margin: 1rem 0; padding: .75rem 1rem; border: 1px solid #8884; border-radius: .5rem; }
article.user { background: #4a90d922; }
article.tool, article.system { background: #8881; }
h2 { font-size: .85rem; margin: 0 0 .5rem; font-weight: 600; }
time { font-weight: 400; opacity: .7; }
p, pre { margin: .5rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
pre { font: .85rem/1.4 ui-monospace, monospace; }
p.reasoning { opacity: .7; font-style: italic; }
article.error { border-color: #d33; }
`;

/** What the page may load: its own style and nothing else. */
export const HTML_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'`;

const SIGNS: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (sign) => SIGNS[sign]!);

export function toHtml(session: DocumentSession, messages: readonly Message[]): string {
  const title = escaped(session.title ?? 'Untitled');
  const model = session.model === null ? '' : ` · Model ${escaped(session.model)}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escaped(HTML_POLICY)}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<h1 dir="auto">${title}</h1>
<p>Begun ${timeText(session.created_at)}${model}</p>
${messages.map(articleOf).join('\n')}
</body>
</html>
`;
}

function articleOf(message: Message): string {
  const { role } = message;
  const { who, when, text, reasoning, calls, attachments } = readable(message);
  const parts = [`<h2>${escaped(who)} <time>${when}</time></h2>`];
  if (reasoning) parts.push(`<p class="reasoning" dir="auto">${escaped(reasoning)}</p>`);
  if (text !== '') parts.push(role === 'tool' ? pre(text) : `<p dir="auto">${escaped(text)}</p>`);
  for (const { name, args } of calls) parts.push(pre(`${name} ${args}`));
  if (attachments.length) parts.push(`<p>Attachments: ${escaped(attachments.join(', '))}</p>`);
  return `<article class="${escaped(role)}${message.error ? ' error' : ''}">\n${parts.join('\n')}\n</article>`;
}

const pre = (text: string): string => `<pre dir="auto">${escaped(text)}</pre>`;
