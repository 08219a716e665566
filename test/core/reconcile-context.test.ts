/** What a model is given: the context that an agent keeps, brought up to date, and the bytes that a provider was sent. */
import { describe, expect, it } from 'vitest';
import { attachApiContent } from '../../server/core/reconcile/api-content.ts';
import { type ContextInput, forModel, toContext } from '../../server/core/reconcile/context.ts';
import { cutContext } from '../../server/core/reconcile/context-cut.ts';
import { NO_FENCES, type RawRow } from '../../server/core/reconcile/row.ts';
import { call, rows, rowWith } from './reconcile-rows.ts';

const given = (part: Partial<ContextInput>) =>
  toContext({
    transcript: [],
    context: null,
    state: [],
    anchor: null,
    fences: NO_FENCES,
    liveRunId: null,
    ...part,
  }).map((row) => row.content);
const texts = (context: string, state: string, part: Partial<ContextInput> = {}): string =>
  given({ context: rows(context), state: rows(state), ...part }).join(' ');

describe('the context of an agent', () => {
  const deltas: [name: string, context: string, state: string, result: string][] = [
    ['D1 takes what follows it', 'u a | a b', 'u a | a b | u c', 'a b c'],
    ['D5 does not take what it has dropped', 'u a | a b | u c', 'u a | a b | a stale | u c | a d', 'a b c d'],
    ['D7 takes a repeat of an old text', 'u a | a b', 'u a | a b | u a', 'a b a'],
    ['takes all behind the run when its rest is not there', 'u a | a b | u c', 'u a | a b | u x | a y', 'a b c x y'],
    ['is found in its middle', 'u s | u a | a b', 'u a | a b | u c', 's a b c'],
    ['takes a single row only at a recovered beginning', 'u a@1 | a b@2', 'u a@1 | u c@3', 'a b c'],
    ['takes nothing twice', 'u a@1 | a b@2 | u c@3', 'u a@1 | a b@2 | u x@2.5 | u c@3', 'a b c'],
    ['does not take the tag of a workspace', 'u a | a b', 'u [Workspace: /w] a | a b | u [Workspace: /w] c', 'a b c'],
  ];

  it.each(deltas)('[RC9] %s', (_name, context, state, is) => {
    expect(texts(context, state)).toBe(is);
  });

  it('[RC9] aligns on one row only when it begins with a recovered prompt', () => {
    const recovered = [rowWith({ role: 'user', content: 'a' }, { _recovered: true }), ...rows('a b')];
    expect(given({ context: recovered, state: rows('u a | a late') })).toEqual(['a', 'b', 'late']);
  });

  it('[RC9] is the transcript where there is none, and where a claimed session has gone on', () => {
    const transcript = rows('u a | a b | u c | a d');
    expect(given({ transcript })).toEqual(['a', 'b', 'c', 'd']);
    expect(given({ transcript, context: rows('u a | a b'), claimed: true })).toEqual(['a', 'b', 'c', 'd']);
    expect(given({ transcript, context: rows('u x | a b'), claimed: true })).toEqual(['x', 'b']);
    expect(given({ transcript, context: rows('u a | a b') })).toEqual(['a', 'b']);
  });

  describe('after a compaction', () => {
    const compacted = 'u [CONTEXT COMPACTION] summary | a kept';
    const state = 'u old@1 | a gone@2 | u anchor@3 | a new@4 | u newer@5';
    const anchor = { role: 'user', text: 'anchor', ts: 3, attachments: 0 };
    const before = '[CONTEXT COMPACTION] summary kept';

    it('[RC9] takes only what lies behind its anchor', () => {
      expect(texts(compacted, state, { anchor })).toBe(`${before} new newer`);
      expect(texts(compacted, state, { anchor: { ...anchor, text: '' } })).toBe(`${before} new newer`);
      expect(texts(compacted, state, { anchor: { ...anchor, ts: '1970-01-01T00:00:03Z' } })).toBe(
        `${before} new newer`,
      );
      expect(texts(compacted, `${state} | u anchor@3 | a last@6`, { anchor })).toBe(`${before} last`);
    });

    it('[RC9] has what lies behind its anchor behind its summary, though their times say otherwise', () => {
      const late = 'u [CONTEXT COMPACTION] summary@9 | a kept@9.5';
      expect(texts(late, state, { anchor })).toBe(`${before} new newer`);
      expect(texts(`${late} | a new@4`, state, { anchor })).toBe(`${before} new newer`);
      expect(texts(`${late} | a new`, state, { anchor })).toBe(`${before} new newer`);
    });

    it('[RC9] takes nothing when no anchor proves where it happened', () => {
      for (const wrong of [
        null,
        { ...anchor, ts: undefined },
        { ...anchor, ts: 'yesterday' },
        { ...anchor, ts: 3.1 },
        { ...anchor, role: 'assistant' },
        { ...anchor, text: 'other' },
        { ...anchor, attachments: ['a.png'] },
      ]) {
        expect(texts(compacted, state, { anchor: wrong })).toBe(before);
      }
    });

    it('[RC9] knows a summary in either spelling, and no other text that speaks of one', () => {
      expect(texts('u Context compaction: summary | a kept', state)).toBe('Context compaction: summary kept');
      expect(texts('u about context compaction | a kept', 'u about context compaction | a kept | u c')).toContain('c');
    });
  });
});

describe('the context of an agent after an edit', () => {
  const S = 'u [CONTEXT COMPACTION] summary';
  const cuts: [name: string, context: string, kept: string, gone: string, left: string | null][] = [
    ['ends where the transcript ends', 'u a | a b | u c | a d', 'u a | a b', 'u c | a d', 'a b'],
    ['loses what the agent alone knew of it', 'u a | a b | u c | t#x out | a d', 'u a | a b', 'u c | a d', 'a b'],
    ['keeps what was said before in the same words', 'u go | a b | u go | a b', 'u go | a b', 'u go | a b', 'go b'],
    ['is whole where it had none of it', 'u a | a b', 'u a | a b', 'u c | a d', 'a b'],
    ['keeps a summary of what stays', `${S} | u c | a d`, 'u a | a b', 'u c | a d', '[CONTEXT COMPACTION] summary'],
    ['is given up when its summary tells of it', `${S} | u e | a f`, 'u a | a b', 'u c | a d | u e | a f', null],
    ['is given up with all of the transcript', 'u a | a b', '', 'u a | a b', null],
    ['is as it was without an edit', 'u x', 'u a', '', 'x'],
  ];
  it.each(cuts)('[ED1] %s', (_name, context, kept, gone, left) => {
    const cut = cutContext(rows(context), rows(kept), rows(gone));
    expect(cut?.map((row) => row.content).join(' ') ?? null).toBe(left);
  });
});

describe('what a model is sent', () => {
  it('[RC9] has no marker, no error, no thought, and fragments only where they say something', () => {
    const thought = rowWith({ role: 'assistant', content: 'b' }, { reasoning: 'hm', reasoning_details: [1], _tps: 3 });
    const all = [...rows('u a'), thought, ...rows('u c | a~ fragm | a! marker | u d | a~  | a% failed | u e')];
    expect(forModel(all).map((row) => row.content)).toEqual(['a', 'b', 'c', 'fragm', 'd', 'e']);
    expect(forModel([thought])).toEqual([{ role: 'assistant', content: 'b' }]);
  });

  it('[RC9] has a call without text, and the bytes that a provider knows', () => {
    const row: RawRow = { role: 'assistant', content: '', tool_calls: [call('c1')], api_content: 'bytes' };
    expect(forModel([row])).toEqual([row]);
  });

  it('[RC9] has a recovered prompt only before an answer, and never its flag', () => {
    const recovered = rowWith({ role: 'user', content: 'lost' }, { _recovered: true });
    expect(forModel([recovered, ...rows('a! marker | u next')]).map((row) => row.content)).toEqual(['next']);
    expect(forModel([recovered])).toEqual([]);
    expect(forModel([recovered, ...rows('a~ fragm | a! marker')])).toEqual([
      { role: 'user', content: 'lost' },
      { role: 'assistant', content: 'fragm' },
    ]);
  });
});

describe('the bytes that a provider was sent', () => {
  const bytes = (content: string, part: object = {}): RawRow => ({
    role: 'user',
    content,
    api_content: `bytes of ${content}`,
    ...part,
  });
  const attached = (sidecar: RawRow[], state: RawRow[]) =>
    attachApiContent(sidecar, state).map((row) => row.api_content);

  it('[RC8] come by id, by row number, by instant, by second, and by text, in this order', () => {
    const row = (part: object): RawRow => ({ role: 'user', content: 'a', ...part });
    for (const part of [{ id: 'i' }, { _state_db_row_id: 7 }, { timestamp: 5 }, {}]) {
      expect(attached([row(part)], [bytes('a', part)])).toEqual(['bytes of a']);
    }
    expect(attached([row({ timestamp: 5 })], [bytes('a', { timestamp: 5.9 })])).toEqual(['bytes of a']);
    expect(attached([row({ timestamp: 5 })], [bytes('a')])).toEqual(['bytes of a']);
    const two = [
      bytes('a', { timestamp: 5.2, api_content: 'near' }),
      bytes('a', { timestamp: 5, api_content: 'exact' }),
    ];
    expect(attached([row({ timestamp: 5 })], two)).toEqual(['exact']);
  });

  it('[RC8] do not come when two rows could be meant, when times differ, or when something contradicts', () => {
    const row = (part: object = {}): RawRow => ({ role: 'user', content: 'a', ...part });
    const nothing: [RawRow[], RawRow[]][] = [
      [[row(), row()], [bytes('a')]],
      [[row()], [bytes('a'), bytes('a', { api_content: 'other' })]],
      [[row({ timestamp: 1 })], [bytes('a', { timestamp: 9 })]],
      [[row({ id: 'i' })], [bytes('a', { id: 'j' })]],
      [[row({ id: 'i', message_id: 'k' })], [bytes('a', { id: 'i' })]],
      [[row({ _row_id: 7 })], [bytes('a', { _row_id: 8 })]],
      [[row({ _row_id: 7, _db_row_id: 8 })], [bytes('a', { _row_id: 7 })]],
      [[row({ _row_id: 7 }), row({ _row_id: 7 })], [bytes('a', { _row_id: 7 })]],
      [[row({ content: 'b', id: 'i' })], [bytes('a', { id: 'i' })]],
      [[row({ timestamp: Number.NaN })], [bytes('a')]],
      [[row({ role: 'tool' })], [bytes('a', { role: 'tool' })]],
    ];
    for (const [sidecar, state] of nothing) expect(attached(sidecar, state)).toEqual(sidecar.map(() => undefined));
    for (const bad of [true, -1, 0, 1.5, 'seven', Number.NaN]) {
      expect(attached([row({ _row_id: bad })], [bytes('a')]), String(bad)).toEqual([undefined]);
    }
  });

  it('[RC8] never replace others, and leave rows alone that get none', () => {
    const mine = bytes('a', { api_content: 'mine', id: 'i' });
    expect(attached([mine], [bytes('a', { id: 'i' })])).toEqual(['mine']);
    const sidecar = rows('u a | a b');
    expect(attachApiContent(sidecar, rows('u a'))).toBe(sidecar);
    expect(attachApiContent(sidecar, [bytes('a')])[1]).toBe(sidecar[1]);
  });
});
