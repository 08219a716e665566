/**
 * The transcript as text, for an agent whose own session does not have it (AC3). Bounded, the newest kept, and what is left
 * out is said in numbers: an agent that must know more can be told to ask. Pure.
 */
import type { Message } from '../../core/terms.ts';
import { textOf } from '../model/history.ts';
import { cutMiddle, oneLineOf } from './raw.ts';

const MOST = 200_000;
/** Characters of one call's arguments, of its result, and of anything else. */
const ARGUMENTS = 500;
const RESULT = 2000;
const ONE = 40_000;

const HEAD =
  'What was said in this conversation before and you have not seen in this session. Your own words stand under "Assistant". Take it as known; what you are to answer stands below it.';

/**
 * @param history rows that the agent does not know, oldest first
 * @param limit characters, about
 * @returns null when nothing was said
 */
export function transcriptText(history: readonly Message[], limit = MOST): string | null {
  const said = history.map(rowText).filter((text) => text !== '');
  if (said.length === 0) return null;
  const kept: string[] = [];
  let left = limit;
  for (const text of said.toReversed()) {
    const one = cutMiddle(text, ONE);
    // The last one is always there, if not as a whole.
    if (kept.length > 0 && one.length > left) break;
    kept.unshift(cutMiddle(one, Math.max(200, left)));
    left -= one.length;
  }
  const missing = said.length - kept.length;
  const note = missing > 0 ? [`[${missing} earlier entries are left out here.]`] : [];
  return [HEAD, '<transcript>', ...note, ...kept, '</transcript>'].join('\n\n');
}

function rowText(row: Message): string {
  switch (row.role) {
    case 'user': {
      const count = row.attachments?.length ?? 0;
      const files = count > 0 ? `\n[with ${count === 1 ? 'an attached file' : `${count} attached files`}]` : '';
      return row.content.trim() === '' && files === '' ? '' : `User:\n${row.content}${files}`;
    }
    case 'assistant': {
      const calls = (row.tool_calls ?? []).flatMap((call) => {
        if (!call?.function?.name) return []; // a row of another program
        return [
          `[called ${oneLineOf(call.function.name, 64)} with ${oneLineOf(String(call.function.arguments), ARGUMENTS)}]`,
        ];
      });
      const parts = [textOf(row).trim(), ...calls].filter((part) => part !== '');
      const broken = row.status === 'interrupted' || row.status === 'partial' ? '\n[interrupted here]' : '';
      return parts.length === 0 ? '' : `Assistant:\n${parts.join('\n')}${broken}`;
    }
    case 'tool': {
      const name = row.name === undefined ? 'a tool' : oneLineOf(row.name, 64);
      return `Result of ${name}${row.is_error ? ' (failed)' : ''}:\n${cutMiddle(row.content, RESULT)}`;
    }
    case 'system':
      return '';
  }
}
