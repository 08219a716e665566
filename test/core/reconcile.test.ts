/** Reconcile in whole conversations: replays, lost prompts, tool blocks, fragments, images, and what a twin gives. */
import { describe, expect, it } from 'vitest';
import { markerRow } from '../../server/core/marker.ts';
import { NO_FENCES, reconcile } from '../../server/core/reconcile/reconcile.ts';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import { call, merged, result, rows, rowWith } from './reconcile-rows.ts';

const RUN = 'b'.repeat(32);
const TURNS = 'u first@100 | a answer@100 | u second@100 | a reply@100';

describe('a conversation that was written anew', () => {
  it('[RC5] adds nothing when only its beginning was, with a cut summary and another call id, up to a tagged prompt', () => {
    const summary = '[CONTEXT COMPACTION] the earlier turns are summed up below';
    const sidecar = rows(
      `u plan@500 | a loaded@500 | t skill@500 | a before@500 | u ${summary} and this is how@500 | t done@500 | u more?@500 | a no@500`,
    );
    const state = rows(
      `u plan@900.27 | a loaded@900.28 | t skill@900.29 | a before@900.3 | u ${summary}@900.31 | t#other done@900.32 | u [Workspace::v1: /w] more?@900.33`,
    );
    expect(result(sidecar, state)).toMatchObject({ changed: false });
  });

  it('[RC5] adds nothing when all of it was, or a part of the middle', () => {
    expect(merged(TURNS, 'u first@100.1 | a answer@100.2 | u [Workspace: /w] second@100.3 | a reply@100.4')).toBe(
      'first answer second reply',
    );
    expect(merged(TURNS, 'a answer@300.1 | u [Workspace::v1: /w] second@300.2')).toBe('first answer second reply');
  });

  it('[RC5] adds nothing when the state DB has it twice, and a turn that is behind it is added', () => {
    const twice =
      'u first@100 | a answer@101 | u second@102 | a reply@103 | u first@300 | a answer@301 | u second@302 | a reply@303';
    const once = 'u first@100 | a answer@101 | u second@102 | a reply@103';
    expect(merged(once, twice)).toBe('first answer second reply');
    expect(merged(once, `${twice} | u third@400 | a yes@401`)).toBe('first answer second reply third yes');
  });

  it('[RC6] does not bring back what a compaction took out of it', () => {
    const compacted = 'a summary@200 | a current@201 | u next@202 | a done@203';
    expect(merged(compacted, 'u old@100')).toBe('summary current next done');
    const longer = `${compacted} | u last@204 | a end@205`;
    const anew = 'u old@300 | a gone@301 | u next@302 | a done@303 | u last@304 | a end@305';
    expect(merged(longer, anew)).toBe('summary current next done last end');
    const text = 'long-'.repeat(30);
    const state = `u old@300 | a gone@301 | u next@302 | a ${text}@303`;
    expect(merged(`a summary@200 | u next@202 | a ${text}@203`, state)).toBe(`summary next ${text}`);
  });
});

describe('a prompt that only the state DB has', () => {
  it('[RC6] goes before a tail that is newer', () => {
    expect(merged('u old@100 | a said@101 | a tail@103', 'u old@100 | a said@101 | u lost@102')).toBe(
      'old said lost tail',
    );
  });

  it('[RC6] goes before its answer, and behind turns that were answered, when all have one time', () => {
    expect(merged('a answer@100', 'u question@100')).toBe('question answer');
    expect(merged('u old@100 | a said@100 | u tail@100', 'u lost@100')).toBe('old said lost tail');
  });

  it('[RC6] never splits a call from its results', () => {
    expect(merged('a*c1 call@100 | t#c1 res@101 | a end@103', 'u lost@100.5')).toBe('call res lost end');
    expect(merged('u q@100 | a*c1 call@100 | t#c1 res@100 | u tail@100', 'u lost@100')).toBe('q call res lost tail');
    const two = 'u q@100 | a*c1,c2 call@100 | t#c1 r1@100 | t#c2 r2@100 | u tail@100';
    expect(merged(two, 'u lost@100')).toBe('q call r1 r2 lost tail');
  });

  it('[RC5] takes along what it was answered', () => {
    const state = 'u old@100 | a said@101 | u lost@102 | a*c1 call@103 | t#c1 res@104 | a end@105';
    expect(merged('u old@100 | a said@101 | u next@200 | a done@201', state)).toBe(
      'old said lost call res end next done',
    );
  });

  it('[RC5] and its answer survive among equal ones', () => {
    const state = 'u yes@1 | a ok@2 | u yes@11 | a ok@12 | u yes@21 | a ok@22';
    for (const [lost, kept] of [
      ['the first', 'u yes@11 | a ok@12 | u yes@21 | a ok@22'],
      ['the last', 'u yes@1 | a ok@2 | u yes@11 | a ok@12'],
      ['one in the middle', 'u yes@1 | a ok@2 | u yes@21 | a ok@22'],
    ] as const) {
      const texts = merged(kept, state).split(' ');
      expect(texts, lost).toEqual(
        lost === 'the first' ? ['yes', 'ok', 'yes', 'ok'] : Array(3).fill(['yes', 'ok']).flat(),
      );
    }
  });
});

describe('an answer', () => {
  it('[RC3] that a prompt in the middle lacks is given to it', () => {
    expect(merged('u q1@1 | u q2@5 | a a2@6', 'u q1@1 | a a1@2 | u q2@5 | a a2@6')).toBe('q1 a1 q2 a2');
    expect(
      merged('u q1@1 | a*c1 call@2 | t#c1 res@3 | u q2@5', 'u q1@1 | a*c1 call@2 | t#c1 res@3 | a a1@4 | u q2@5'),
    ).toBe('q1 call res a1 q2');
  });

  it('[RC4] of which one store has the beginning is one answer, and the sidecar keeps its own', () => {
    expect(merged('u q@1 | a the whole answer@2 | u n@5 | a m@6', 'u q@1 | a the whole@3 | u n@5 | a m@6')).toBe(
      'q the whole answer n m',
    );
    expect(merged('u q@1 | a the whole answer@2', 'u q@1 | a the wh@3')).toBe('q the whole answer');
  });

  it('[RC3] that is whole is shown behind the fragment of it that the sidecar has', () => {
    expect(merged('u q@1 | a~ the wh@2', 'u q@1 | a the whole answer@3')).toBe('q the wh the whole answer');
  });

  it('[RC5] to a longer prompt is not taken for the answer to a shorter one', () => {
    expect(merged('u go@1 | a ok@2', 'u go on@10 | a okay then@11')).toBe('go ok go on okay then');
  });
});

describe('rows under ids of ours', () => {
  const ours = (n: number | string, role: string, content: string, timestamp: number): RawRow => ({
    id: `${RUN}.${n}`,
    role,
    content,
    timestamp,
  });

  it('[RC2] are never taken for rows that say the same', () => {
    const state = [...rows('u go@1 | a ok@2'), ours(0, 'user', 'go', 10), ours(1, 'assistant', 'ok', 11)];
    expect(merged('u go@1 | a ok@2', state)).toBe('go ok go ok');
    expect(merged('u go | a ok', state.slice(2))).toBe('go ok go ok');
  });

  it('[RC2] are placed also where another answer of another program would be left out', () => {
    const state = [...rows('u q@1'), ours(1, 'assistant', 'other', 1.5), ...rows('a said@2')];
    expect(merged('u q@1 | a said@2', state)).toBe('q other said');
  });

  it('[RC2] stand with their run when the state DB has lost its other rows', () => {
    const sidecar = [...rows('u q@1 | a said@2'), ours(0, 'user', 'go', 10)];
    expect(merged(sidecar, [...rows('u q@1'), ours(1, 'assistant', 'done', 11)])).toBe('q said go done');
  });

  it('[RC2] keep a workspace tag, which only a person can have written there', () => {
    expect(merged('', [ours(0, 'user', '[Workspace: /w] go', 1)])).toBe('[Workspace: /w] go');
  });

  it('[RC3] a marker of ours gives way to an answer that another program stored behind it, and only to that', () => {
    const marker = markerRow(RUN, 130, 'unknown', 'none');
    const prompt = ours(0, 'user', 'go', 100);
    const late: RawRow = { role: 'assistant', content: 'real', timestamp: 120 };
    const first = result([prompt, marker], [prompt, marker, late]);
    expect(first.rows.map(({ row }) => row.content)).toEqual(['go', 'real']);
    expect(first.replaced).toEqual([1]);
    const kept = first.rows.map(({ row }) => row);
    expect(result(kept, [prompt, marker, late])).toMatchObject({ changed: false });
    expect(result([prompt, marker], [prompt, late, marker])).toMatchObject({ replaced: [] });
    expect(result([prompt], [prompt, late, marker]).rows).toHaveLength(3);
  });

  it('[RC3] a marker of ours gives way to the settled answer of its run, not to a step or a fragment of it', () => {
    const marker = markerRow(RUN, 130, 'process_restart', 'none');
    const prompt = ours(0, 'user', 'go', 100);
    const replacedBy = (row: RawRow) => result([prompt, marker], [prompt, row]).replaced;
    expect(replacedBy(ours(1, 'assistant', 'done', 120))).toEqual([1]);
    expect(replacedBy(rowWith(ours(1, 'assistant', 'let me see', 120), { tool_calls: [call('c1')] }))).toEqual([]);
    expect(replacedBy(rowWith(ours(1, 'assistant', 'do', 120), { status: 'partial', recovered: true }))).toEqual([]);
    expect(replacedBy(rowWith(ours(1, 'assistant', 'no key', 120), { status: 'error' }))).toEqual([]);
  });

  it('[RE2] of the live run are hidden but for its prompt, whoever has them', () => {
    const run = [ours(0, 'user', 'go', 10), ours(1, 'assistant', 'typing', 11)];
    for (const [sidecar, state] of [
      [run, []],
      [[], run],
      [run, run],
    ] as const) {
      const { rows: shown } = reconcile({ sidecar, state, fences: NO_FENCES, liveRunId: RUN });
      expect(shown.map(({ row }) => row.content)).toEqual(['go']);
    }
  });
});

describe('a prompt with an image', () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } };
  const listed = (timestamp: number, ...texts: string[]): RawRow => ({
    role: 'user',
    content: [{ type: 'text', text: texts[0] }, image, ...texts.slice(1).map((text) => ({ type: 'text', text }))],
    timestamp,
  });
  const plain = (timestamp: number, content: string): RawRow => ({ role: 'user', content, timestamp });

  it('[RC4] is the same as its text of the same instant, and of no other', () => {
    expect(result([listed(5, 'look')], [plain(5, 'look [screenshot]')])).toMatchObject({ changed: false });
    expect(result([listed(5, 'look')], [plain(5.5, 'look [screenshot]')]).rows).toHaveLength(2);
    expect(result([listed(5, 'look')], [plain(5, 'look')])).toMatchObject({ changed: false });
  });

  it('[RC4] is the same as what the person typed, where an agent added notes to its own copy', () => {
    const sidecar = [rowWith(plain(5, 'look'), { attachments: ['a.png'] })];
    const { rows: shown, changed } = result(sidecar, [listed(5, 'look', 'a note for the model'), plain(6, 'next')]);
    expect(changed).toBe(true);
    expect(shown.map(({ row, twin }) => [row.content, twin])).toEqual([
      ['look', 0],
      ['next', null],
    ]);
  });

  it('[RC4] is not guessed when two rows could be it', () => {
    const two = [listed(5, 'look'), rowWith(listed(5, 'look'), { api_content: 'other bytes' })];
    expect(result(two, [plain(5, 'look [screenshot]')]).rows).toHaveLength(3);
  });
});

describe('a twin', () => {
  it('[RC8] gives what the page needs to a row that lacks it, and replaces nothing', () => {
    const sidecar = [{ role: 'assistant', content: 'a', timestamp: 1, _turnTps: 5 }];
    const state = [{ role: 'assistant', content: 'a', timestamp: 1, _turnTps: 9, _turnDuration: 3, _private: 1 }];
    const { rows: shown, changed } = result(sidecar, state);
    expect(changed).toBe(true);
    expect(shown.map(({ row }) => row)).toEqual([
      { role: 'assistant', content: 'a', timestamp: 1, _turnTps: 5, _turnDuration: 3 },
    ]);
    expect(sidecar).toEqual([{ role: 'assistant', content: 'a', timestamp: 1, _turnTps: 5 }]);
    expect(
      result(
        shown.map(({ row }) => row),
        state,
      ),
    ).toMatchObject({ changed: false });
  });

  it('[RC4] is found by any name of a row number, and not by two numbers that contradict each other', () => {
    const numbered = (field: object): RawRow => rowWith({ role: 'user', content: 'go', timestamp: 1 }, { ...field });
    const restamped = rowWith({ role: 'user', content: 'go', timestamp: 400 }, { _state_db_row_id: 7 });
    for (const field of ['_row_id', '_db_row_id', 'state_db_row_id', '_state_db_row_id']) {
      expect(result([numbered({ [field]: 7 })], [restamped]), field).toMatchObject({ changed: false });
    }
    expect(result([numbered({ _row_id: 7, _db_row_id: 8 })], [restamped]).rows).toHaveLength(2);
  });

  it('[RC8] is no twin when a provider was sent other bytes for it', () => {
    const bytes = (api_content: string): RawRow => ({ role: 'user', content: 'go', timestamp: 1, api_content });
    expect(result([bytes('a')], [bytes('b')]).rows).toHaveLength(2);
    expect(result([bytes('a')], [bytes('a')]).rows).toHaveLength(1);
  });
});
