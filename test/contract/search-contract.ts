/** Contract of the message store: rows as they were written, and the full-text search. */
import { expect, it } from 'vitest';
import type { Stores } from '../../db/stores.ts';
import { markerRow } from '../../server/core/marker.ts';
import type { Message } from '../../server/core/terms.ts';
import { type OpenStores, OTHER, openBench, reply, runId, SESSION } from './stores-bench.ts';

/** Ids of the rows that a query finds; which of several is the best hit is the index's own matter. */
async function found(stores: Stores, q: string, limit = 100): Promise<string[]> {
  const hits = await stores.messages.search(q, limit);
  return hits.map((hit) => hit.message_id).sort();
}

export function searchContract(open: OpenStores): void {
  it('[EV4] rows are given back as they were written, in their order', async () => {
    const { stores, session, run } = await openBench(open);
    await session();
    await session(OTHER);
    const fence = await run(1);
    const call = { id: 't', type: 'function' as const, function: { name: 'search', arguments: '{}' } };
    const rows: Message[] = [
      reply(1, 1, { content: '', tool_calls: [call], reasoning: 'because', model: 'm', attachments: ['x'] }),
      reply(1, 2, { role: 'tool', content: '', tool_call_id: 't', name: 'search', is_error: true, duration_s: 1.5 }),
      reply(1, 3, { content: 'line\n"two" \u{1F600} \u2028', usage: { input_tokens: 1, output_tokens: 2 } }),
      markerRow(runId(1), 3_500, 'process_restart', 'recovered'),
    ];
    expect(await stores.admissions.appendRows(fence, rows.slice(0, 2))).toBe('appended');
    expect(await stores.admissions.appendRows(fence, rows)).toBe('appended');
    expect(await stores.admissions.appendRows(fence, rows.toReversed())).toBe('appended');
    expect((await stores.messages.list(SESSION)).slice(1)).toEqual(rows);
    expect(await stores.messages.list(OTHER)).toEqual([]);
    expect(await stores.messages.list('nobody')).toEqual([]);
  });

  it('[DB4] a hit names its session, row, role and time, and shows the words', async () => {
    const { stores, session, finish } = await openBench(open);
    await session(SESSION, { title: 'Trees' });
    const long = `${'before '.repeat(50)}the oak stands here ${'after '.repeat(50)}`;
    await finish(1, { text: 'tell me of oaks' }, { rows: [reply(1, 1, { content: long })] });
    const [hit, ...others] = await stores.messages.search('oak stands', 10);
    expect(others).toEqual([]);
    expect(hit).toMatchObject({
      session_id: SESSION,
      title: 'Trees',
      message_id: `${runId(1)}.1`,
      role: 'assistant',
      timestamp: 3_001,
    });
    expect(hit?.snippet).toContain('the oak stands here');
    expect(hit?.snippet.length).toBeLessThan(200);
    expect((await stores.messages.search('tell oaks', 10)).map((one) => [one.role, one.snippet])).toEqual([
      ['user', 'tell me of oaks'],
    ]);
  });

  it('[DB4] words are found whatever their accents and case, the last one as a beginning', async () => {
    const { stores, session, finish } = await openBench(open);
    await session();
    const texts = [
      'Crème brûlée in Zürich',
      'can\'t stop: C++ & AND/OR (NOT NEAR) "quoted phrase"',
      'snake_case and path/to/file.txt v1.2',
      'Привет мир',
      'a\uFFFDb zero',
    ];
    for (const [n, content] of texts.entries()) {
      await finish(n, { text: `question number ${n}` }, { rows: [reply(n, 1, { content })] });
    }
    const answers = (...ns: number[]): string[] => ns.map((n) => `${runId(n)}.1`);
    const table: [q: string, ids: string[]][] = [
      ['creme', answers(0)],
      ['CRÈME', answers(0)],
      ['cre\u0300me brulee', answers(0)],
      ['brulee zur', answers(0)],
      ['zur brulee', []],
      ['zurich crem', answers(0)],
      ['"', []],
      ['""', []],
      ['"quoted', answers(1)],
      ['"quoted phrase"', answers(1)],
      ["can't", answers(1)],
      ['C++', answers(0, 1, 2)],
      ['AND', answers(1, 2)],
      ['OR', answers(1)],
      ['NOT', answers(1)],
      ['NEAR(', answers(1)],
      ['stop OR zebra', []],
      ['quoted NOT phrase', answers(1)],
      ['content:stop', []],
      ['content : stop', []],
      ['sto*', answers(1)],
      ['*', []],
      ['^stop', answers(1)],
      ['(stop', answers(1)],
      ['stop)', answers(1)],
      ['{stop}', answers(1)],
      ['+stop', answers(1)],
      ['-stop', answers(1)],
      ['--', []],
      ['_', []],
      ['stop _', answers(1)],
      ['_ stop', answers(1)],
      ['snake_case', answers(2)],
      ['file.txt', answers(2)],
      ['path\\to', answers(2)],
      ['v1.2', answers(2)],
      ['привет', answers(3)],
      ['МИР', answers(3)],
      ['zero\0', answers(4)],
      ['\0', []],
      ['\0zero', answers(4)],
      ['', []],
      ['   ', []],
      ['\n\t', []],
      ['\u{1F600}', []],
      ['\uD800', []],
      ['\u0301', []],
      ["'; DROP TABLE messages; --", []],
      ['question', texts.map((_, n) => `${runId(n)}.0`)],
      ['question numb 4', []],
      ['nothing of the kind', []],
    ];
    for (const [q, ids] of table) expect(await found(stores, q), JSON.stringify(q)).toEqual(ids.toSorted());
  });

  it('[DB4] a query of thousands of words, or of one endless word, is answered', async () => {
    const { stores, session, finish } = await openBench(open);
    await session();
    await finish(1);
    expect(await found(stores, Array.from({ length: 5_000 }, (_, n) => `w${n}`).join(' '))).toEqual([]);
    expect(await found(stores, 'x'.repeat(100_000))).toEqual([]);
    expect(await found(stores, `${'reply '.repeat(2_000)}`)).toEqual([`${runId(1)}.1`]);
  });

  it('[DB4] the limit is kept; tools, markers and deleted sessions are never found', async () => {
    const { stores, session, finish } = await openBench(open);
    await session();
    await session(OTHER);
    const marker = markerRow(runId(1), 3_500, 'process_restart', 'recovered');
    const rows = [reply(1, 1, { content: 'word' }), reply(1, 2, { role: 'tool', content: 'word interrupted' }), marker];
    await finish(1, { text: 'word' }, { rows });
    await finish(2, { text: 'word', session_id: OTHER });
    expect(await found(stores, 'word')).toEqual([`${runId(1)}.0`, `${runId(1)}.1`, `${runId(2)}.0`]);
    expect(await found(stores, 'word', 2)).toHaveLength(2);
    expect(await found(stores, 'interrupted')).toEqual([]);
    await stores.sessions.remove(OTHER, 9_000);
    expect(await found(stores, 'word')).toEqual([`${runId(1)}.0`, `${runId(1)}.1`]);
    await stores.sessions.remove(SESSION, 9_000);
    expect(await found(stores, 'word')).toEqual([]);
  });

  it('[DB4] a row that was written again is found by its new words only', async () => {
    const { stores, session, run } = await openBench(open);
    await session();
    const fence = await run(1);
    await stores.admissions.appendRows(fence, [reply(1, 1, { content: 'first version' })]);
    await stores.admissions.appendRows(fence, [reply(1, 1, { content: 'second version' })]);
    expect(await found(stores, 'first')).toEqual([]);
    expect(await found(stores, 'second')).toEqual([`${runId(1)}.1`]);
    expect(await found(stores, 'version')).toEqual([`${runId(1)}.1`]);
  });
}
