/** Contract of the context store: the summary of the beginning of a transcript. */
import { expect, it } from 'vitest';
import type { ContextSummary } from '../../db/stores.ts';
import { lease, type OpenStores, OTHER, openBench, reply, runId, SESSION } from './stores-bench.ts';

const summaryOf = (text: string, anchor = `${runId(1)}.1`): ContextSummary => ({
  anchor,
  covers: 'digest',
  text,
  created_at: 6_000,
});
const BY = { editNumber: 0, contextUsed: 12 };

export function contextsContract(open: OpenStores): void {
  it('[CX4] a session has the last one, and tells how full its window is then', async () => {
    const { stores, session, revision } = await openBench(open);
    await session();
    expect(await stores.contexts.summary(SESSION)).toBeNull();
    const before = await revision();
    expect(await stores.contexts.summarise(SESSION, summaryOf('first'), BY)).toBe('saved');
    expect(await stores.contexts.summarise(SESSION, summaryOf('second'), BY)).toBe('saved');
    expect(await stores.contexts.summary(SESSION)).toEqual(summaryOf('second'));
    expect(await stores.contexts.summary(OTHER)).toBeNull();
    expect(await stores.sessions.get(SESSION)).toMatchObject({ context_used: 12, context_estimated: true });
    expect(await revision()).toBe(before + 2);
  });

  it('[CX4] one that was made before an edit is not kept, and none of a session that is not there', async () => {
    const { stores, session } = await openBench(open);
    await session();
    expect(await stores.contexts.summarise(SESSION, summaryOf('late'), { ...BY, editNumber: 1 })).toBe('stale');
    expect(await stores.contexts.summarise(OTHER, summaryOf('lost'), BY)).toBe('stale');
    expect(await stores.contexts.summary(SESSION)).toBeNull();
    expect(await stores.contexts.summary(OTHER)).toBeNull();
  });

  it('[CX4][ED1] an edit that takes back its anchor takes it back, another one does not', async () => {
    const { stores, session, finish, revision } = await openBench(open);
    await session();
    for (const run of [1, 2, 3]) await finish(run, {}, { rows: [reply(run, 1)] });
    await stores.contexts.summarise(SESSION, summaryOf('of the first'), BY);
    const by = { lease: lease(), now: 7_000 };
    const cutAt = async (count: number) => {
      const rows = await stores.messages.list(SESSION);
      const last = rows[count - 1];
      const kept = last ? { id: last.id, timestamp: last.timestamp } : null;
      const remove = rows.slice(count).map((row) => row.id);
      return stores.edits.cut(SESSION, { kept, count, remove, revision: await revision() }, by);
    };
    expect(await cutAt(4)).toMatchObject({ kind: 'edited', session: { context_estimated: false } });
    expect(await stores.contexts.summary(SESSION)).toEqual(summaryOf('of the first'));
    await cutAt(1);
    expect(await stores.contexts.summary(SESSION)).toBeNull();
    await stores.contexts.summarise(SESSION, summaryOf('again', `${runId(1)}.0`), { ...BY, editNumber: 2 });
    await cutAt(0);
    expect(await stores.contexts.summary(SESSION)).toBeNull();
  });

  it('[CX4][DB3] a copy may have one, and a deleted session leaves none', async () => {
    const { stores, session } = await openBench(open);
    await session();
    const rows = [reply(1, 0, { role: 'user' }), reply(1, 1)];
    const of = { session_id: OTHER, parent_session_id: SESSION, title: null, title_source: null, source: 'fork' };
    const where = { model: null, workspace: null, project_id: null, created_at: 4_000, usage: null, now: 5_000 };
    await stores.edits.copy({ ...of, ...where, rows, summary: summaryOf('copied') });
    expect(await stores.contexts.summary(OTHER)).toEqual(summaryOf('copied'));
    expect(await stores.contexts.summary(SESSION)).toBeNull();
    expect(await stores.sessions.remove(OTHER, 8_000)).toBe('removed');
    expect(await stores.contexts.summary(OTHER)).toBeNull();
  });

  it('[CX1] whether the window was counted or estimated is told by the last turn that told of it', async () => {
    const { stores, session, finish } = await openBench(open);
    await session();
    const counted = { input_tokens: 5, output_tokens: 1 };
    const fill = async () => {
      const { context_used, context_estimated } = (await stores.sessions.get(SESSION))!;
      return [context_used, context_estimated];
    };
    await finish(1, {}, { usage: { ...counted, context_used: 9, context_estimated: true } });
    expect(await fill()).toEqual([9, true]);
    await finish(2, {}, { usage: counted });
    expect(await fill()).toEqual([9, true]);
    await finish(3, {}, { usage: { ...counted, context_used: 6 } });
    expect(await fill()).toEqual([6, false]);
  });
}
