/** What an agent is sent: the files, the transcript that it does not have, and the person's words last. */
import { describe, expect, it } from 'vitest';
import { sniffType } from '../../server/core/file-kinds.ts';
import { markerRow } from '../../server/core/marker.ts';
import type { Message } from '../../server/core/terms.ts';
import { promptBlocks } from '../../server/runners/acp/prompt-blocks.ts';
import { transcriptText } from '../../server/runners/acp/transcript.ts';
import type { TurnAttachment } from '../../server/runners/runner.ts';
import { PNG } from '../support/uploads.ts';

const FILES: Record<string, Buffer> = {
  'dot.png': PNG,
  'notes.txt': Buffer.from('one\ntwo\n'),
  'huge.png': Buffer.concat([PNG, Buffer.alloc(6_000_000)]),
  'long.txt': Buffer.from('é'.repeat(100_000)),
  'paper.pdf': Buffer.from('%PDF-1.7'),
};

async function attachment(name: string): Promise<TurnAttachment | null> {
  const bytes = FILES[name];
  if (!bytes) return null;
  return {
    name,
    mime: sniffType(bytes.subarray(0, 4096)),
    size: bytes.length,
    read: async (n) => bytes.subarray(0, n),
  };
}

const blocks = (text: string, attachments: string[], more: { image?: boolean; transcript?: string } = {}) =>
  promptBlocks({ turn: { sessionId: 's', attachment }, text, attachments, image: true, transcript: null, ...more });

describe('the blocks of a prompt', () => {
  it('[AC9] words alone are one block, and so is nothing at all', async () => {
    expect(await blocks('Hello\ud800', [])).toEqual([{ type: 'text', text: 'Hello\uFFFD' }]);
    expect(await blocks('', [])).toEqual([{ type: 'text', text: '' }]);
  });

  it('[AC9] the transcript stands first, then the files, the words last', async () => {
    expect(await blocks('Look.', ['dot.png', 'notes.txt'], { transcript: 'Before.' })).toEqual([
      { type: 'text', text: 'Before.' },
      { type: 'image', mimeType: 'image/png', data: PNG.toString('base64') },
      { type: 'text', text: '[attached file "notes.txt"]\none\ntwo\n\n[end of the file]' },
      { type: 'text', text: 'Look.' },
    ]);
  });

  it('[AC9] what cannot be sent is named with the reason', async () => {
    const told = async (name: string, image = true) => {
      const [block] = await blocks('', [name], { image });
      return block?.type === 'text' ? block.text : block?.type;
    };
    expect(await told('dot.png', false)).toMatch(/dot\.png.*does not take it/);
    expect(await told('huge.png')).toMatch(/huge\.png.*larger than 5 MB/);
    expect(await told('paper.pdf')).toMatch(/paper\.pdf.*only its name/);
    expect(await told('gone.txt')).toMatch(/gone\.txt.*not there any more/);
    expect(await told('long.txt')).toMatch(/long\.txt.*cut: its first 65536 of 200000 bytes/);
  });
});

const RUN = 'f000000000000000000000000000000f';
const row = (role: Message['role'], content: string, more: Partial<Message> = {}): Message => ({
  id: `${RUN}.1`,
  role,
  content,
  timestamp: 1,
  ...more,
});

describe('the transcript as text', () => {
  it('[AC3] it has what was said and done in order, under who said it', () => {
    const call = { id: 'c', type: 'function' as const, function: { name: 'read_file', arguments: '{"path":"a.txt"}' } };
    const text = transcriptText([
      row('user', 'Read it.', { attachments: ['one'] }),
      row('assistant', 'I look.', { tool_calls: [call], reasoning: 'secret thoughts' }),
      row('tool', 'inside', { name: 'read_file', tool_call_id: 'c' }),
      row('assistant', 'It says', { status: 'interrupted' }),
    ])!;
    const places = [
      'User:\nRead it.\n[with an attached file]',
      'Assistant:\nI look.',
      '[called read_file with {"path":"a.txt"}]',
    ];
    places.push('Result of read_file:\ninside', 'Assistant:\nIt says\n[interrupted here]', '</transcript>');
    const found = places.map((place) => text.indexOf(place));
    expect(found).toEqual(found.toSorted((a, b) => a - b));
    expect(Math.min(...found)).toBeGreaterThan(0);
    expect(text).not.toContain('secret thoughts');
  });

  it('[AC3] what we wrote ourselves, markers and sentences of failures, was said by nobody', () => {
    const error = { code: 'network' as const, message: 'The provider is away.', retryable: true };
    expect(transcriptText([])).toBe(null);
    expect(
      transcriptText([
        markerRow(RUN, 1, 'process_restart', 'none'),
        row('assistant', error.message, { status: 'error', error }),
        row('system', 'A notice.'),
      ]),
    ).toBe(null);
  });

  it('[AC3] it is bounded: the newest stay, what is left out is counted, the last one is always there', () => {
    const rows = Array.from({ length: 5000 }, (_, n) =>
      row(n % 2 ? 'assistant' : 'user', `Word ${n}. ${'x'.repeat(500)}`),
    );
    const text = transcriptText(rows)!;
    expect(text.length).toBeLessThan(210_000);
    expect(text).toContain('Word 4999.');
    const kept = text.match(/^Word \d+\./gm)!;
    expect(text).toContain(`[${5000 - kept.length} earlier entries are left out here.]`);
    expect(kept.at(0)).toBe(`Word ${5000 - kept.length}.`);
    const huge = transcriptText([row('user', 'y'.repeat(3_000_000))], 1000)!;
    expect(huge.length).toBeLessThan(2000);
    expect(huge).toContain('characters are left out');
  });

  it('[AC3] rows of other programs are read as far as they can be', () => {
    const odd = { tool_calls: [null, { function: {} }, { function: { name: 'x' } }] } as unknown as Partial<Message>;
    expect(transcriptText([row('assistant', '', odd), row('tool', 'r')])).toContain('Result of a tool:\nr');
  });
});
