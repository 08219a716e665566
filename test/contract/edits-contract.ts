/** Contract of the edit store: rows that are taken back, prompts that are tried again, and sessions that begin with rows. */
import { expect, it } from 'vitest';
import type { Cut, NewCopy } from '../../db/stores.ts';
import {
  lease,
  newAdmission,
  type OpenStores,
  OTHER,
  openBench,
  owner,
  reply,
  runId,
  SESSION,
  type StoresBench,
  settlement,
} from './stores-bench.ts';

const COPY = '20260303_130002_cccccc';
const BY = { lease: lease(), now: 5_000 };

/** The cut that keeps the first rows of a session, as it is seen now. */
async function cutAfter({ stores, revision }: StoresBench, count: number): Promise<Cut> {
  const rows = await stores.messages.list(SESSION);
  const last = rows[count - 1];
  const kept = last ? { id: last.id, timestamp: last.timestamp } : null;
  return { kept, count, remove: rows.slice(count).map((row) => row.id), revision: await revision() };
}

const idsOf = async ({ stores }: StoresBench, sessionId = SESSION): Promise<string[]> =>
  (await stores.messages.list(sessionId)).map((row) => row.id);

const copyOf = (part: Partial<NewCopy> = {}): NewCopy => ({
  session_id: COPY,
  parent_session_id: SESSION,
  title: 'A copy',
  title_source: 'user',
  source: 'turnkeep',
  model: 'm',
  workspace: '/w',
  project_id: null,
  created_at: 4_000,
  usage: null,
  rows: [reply(1, 0, { role: 'user' }), reply(1, 1)],
  now: 5_000,
  ...part,
});

export function editsContract(open: OpenStores): void {
  it('[ED1] what is taken back is neither listed nor found, and nothing of it is destroyed', async () => {
    const bench = await openBench(open);
    const { stores, session, finish } = bench;
    await session();
    await finish(1, { text: 'oak' }, { rows: [reply(1, 1, { content: 'the oak stays' })] });
    await finish(2, { text: 'ash' }, { rows: [reply(2, 1, { content: 'the ash goes' })] });
    const cut = await cutAfter(bench, 2);
    expect(await stores.edits.cut(SESSION, cut, BY)).toMatchObject({ kind: 'edited' });
    expect(await idsOf(bench)).toEqual([`${runId(1)}.0`, `${runId(1)}.1`]);
    expect(await stores.messages.search('ash', 10)).toEqual([]);
    expect(await stores.messages.search('oak', 10)).toHaveLength(2);
    expect((await stores.messages.inactiveIds(SESSION)).sort()).toEqual([`${runId(2)}.0`, `${runId(2)}.1`]);
    const gone = await stores.messages.inactive(SESSION);
    expect(gone.map((row) => [row.id, row.role, row.content])).toEqual([
      [`${runId(2)}.0`, 'user', 'ash'],
      [`${runId(2)}.1`, 'assistant', 'the ash goes'],
    ]);
  });

  it('[ED2] the session says where it was cut, and counts what it has', async () => {
    const bench = await openBench(open);
    const { stores, session, finish } = bench;
    await session();
    await finish(1, {}, { rows: [reply(1, 1, { timestamp: 3_001 })] });
    await finish(2, {}, { usage: { input_tokens: 5, output_tokens: 6, context_used: 11, context_length: 100 } });
    const before = (await stores.sessions.get(SESSION))!;
    const outcome = await stores.edits.cut(SESSION, await cutAfter(bench, 2), BY);
    const after = {
      ...before,
      message_count: 2,
      last_message_at: 3_001,
      revision: before.revision + 1,
      updated_at: 5_000,
      edit_number: 1,
      edit_fence: `${runId(1)}.1`,
      context_used: null,
    };
    expect(outcome).toEqual({ kind: 'edited', session: after });
    expect(await stores.sessions.get(SESSION)).toEqual(after);
    await stores.edits.cut(SESSION, await cutAfter(bench, 0), { ...BY, now: 5_001 });
    expect(await stores.sessions.get(SESSION)).toMatchObject({
      message_count: 0,
      last_message_at: null,
      edit_number: 2,
      edit_fence: null,
    });
    expect(await idsOf(bench)).toEqual([]);
  });

  it('[ED2] an edit of another revision, under a turn, or of a session that another runs changes nothing', async () => {
    const bench = await openBench(open);
    const { stores, session, finish, admit, everything } = bench;
    expect(await stores.edits.cut(SESSION, { kept: null, count: 0, remove: [], revision: 1 }, BY)).toEqual({
      kind: 'not_found',
    });
    await session();
    await finish(1);
    const cut = async () => stores.edits.cut(SESSION, await cutAfter(bench, 0), BY);
    const refuses = async (kind: string, edit = cut): Promise<void> => {
      const before = await everything();
      expect(await edit()).toMatchObject({ kind });
      expect(await everything()).toEqual(before);
    };
    const stale = { ...(await cutAfter(bench, 0)), revision: 1 };
    const before = await everything();
    const { revision } = (await stores.sessions.get(SESSION))!;
    expect(await stores.edits.cut(SESSION, stale, BY)).toEqual({ kind: 'revision_conflict', revision });
    expect(await everything()).toEqual(before);
    const theirs = { ...BY, lease: lease(owner(200)) };
    await refuses('not_owned', async () => stores.edits.cut(SESSION, await cutAfter(bench, 0), theirs));
    await admit(2);
    await refuses('session_busy');
    await stores.admissions.claim(SESSION, 'admission-2', { epoch: 1, now: 2_600 });
    await refuses('session_busy');
    await stores.admissions.markUnknown('admission-2');
    await refuses('unknown_execution');
    await stores.admissions.resolve(SESSION, 'admission-2', 2_700);
    expect(await cut()).toMatchObject({ kind: 'edited' });
  });

  it('[ED3] a retry cuts and admits in one step; its repeat does neither', async () => {
    const bench = await openBench(open);
    const { stores, session, finish, everything } = bench;
    await session();
    await finish(1);
    await finish(2);
    const limits = { maxQueued: 1, lease: lease(), cut: await cutAfter(bench, 2) };
    const outcome = await stores.admissions.admit(newAdmission(3), limits);
    if (outcome.kind !== 'admitted') throw new Error(outcome.kind);
    expect(outcome.admission).toMatchObject({ status: 'queued', text: 'prompt 3' });
    expect(await idsOf(bench)).toEqual([`${runId(1)}.0`, `${runId(1)}.1`]);
    expect(await stores.sessions.get(SESSION)).toMatchObject({ edit_number: 1, message_count: 2 });
    expect(await stores.admissions.byRequest('owner', SESSION, 'request-3')).toEqual(outcome.admission);
    const before = await everything();
    const again = newAdmission(3, { admission_id: 'later', run_id: runId(99) });
    expect(await stores.admissions.admit(again, limits)).toEqual({ kind: 'repeat', admission: outcome.admission });
    expect(await everything()).toEqual(before);
  });

  it('[ED3] a retry that is refused takes nothing back', async () => {
    const bench = await openBench(open);
    const { stores, session, finish, admit, everything } = bench;
    await session();
    await finish(1);
    const seen = await cutAfter(bench, 0);
    const refuses = async (kind: string, cut: Cut, n = 7, by = owner()): Promise<void> => {
      const before = await everything();
      const limits = { maxQueued: 9, lease: lease(by), cut };
      expect(await stores.admissions.admit(newAdmission(n), limits)).toMatchObject({ kind });
      expect(await everything()).toEqual(before);
    };
    await refuses('revision_conflict', { ...seen, revision: seen.revision + 1 });
    await refuses('not_owned', seen, 7, owner(200));
    await admit(2);
    await refuses('session_busy', await cutAfter(bench, 0));
    await stores.admissions.claim(SESSION, 'admission-2', { epoch: 1, now: 2_600 });
    await refuses('session_busy', await cutAfter(bench, 0));
    await stores.admissions.markUnknown('admission-2');
    await refuses('unknown_execution', await cutAfter(bench, 0));
    expect(await stores.admissions.byRequest('owner', SESSION, 'request-7')).toBeNull();
    expect(await stores.admissions.byRequest('guest', SESSION, 'request-1')).toBeNull();
    expect(await stores.admissions.byRequest('owner', OTHER, 'request-1')).toBeNull();
  });

  it('[ED1] what comes after an edit is added behind it, and can be taken back in turn', async () => {
    const bench = await openBench(open);
    const { stores, session, finish } = bench;
    await session();
    for (const n of [1, 2]) await finish(n);
    await stores.edits.cut(SESSION, await cutAfter(bench, 2), BY);
    await finish(3);
    expect(await idsOf(bench)).toEqual([1, 3].flatMap((n) => [`${runId(n)}.0`, `${runId(n)}.1`]));
    expect((await stores.sessions.get(SESSION))!.message_count).toBe(4);
    await stores.edits.cut(SESSION, await cutAfter(bench, 3), BY);
    expect(await idsOf(bench)).toEqual([`${runId(1)}.0`, `${runId(1)}.1`, `${runId(3)}.0`]);
    expect(await stores.messages.inactiveIds(SESSION)).toHaveLength(3);
  });

  it('[ED4] a copy is made with its rows, their ids and their order, and shares nothing with the original', async () => {
    const bench = await openBench(open);
    const { stores, session, finish } = bench;
    await session();
    await finish(1);
    const rows = await stores.messages.list(SESSION);
    const usage = { input_tokens: 3, output_tokens: 4, cached_tokens: 1, cost_usd: 0.5, context_used: 7 };
    const outcome = await stores.edits.copy(copyOf({ rows, usage }));
    const made = {
      session_id: COPY,
      title: 'A copy',
      title_source: 'user',
      source: 'turnkeep',
      model: 'm',
      workspace: '/w',
      project_id: null,
      created_at: 4_000,
      updated_at: 5_000,
      message_count: 2,
      last_message_at: rows[1]!.timestamp,
      revision: 1,
      edit_number: 0,
      edit_fence: null,
      open: [],
      flags: [],
      input_tokens: 3,
      cost_usd: 0.5,
      context_used: 7,
    };
    expect(outcome).toMatchObject({ kind: 'created', session: made });
    expect(await stores.sessions.get(COPY)).toMatchObject(made);
    expect(await stores.messages.list(COPY)).toEqual(rows);
    await stores.edits.cut(SESSION, await cutAfter(bench, 0), BY);
    expect(await stores.messages.list(COPY)).toEqual(rows);
    await finish(2, { session_id: COPY });
    expect(await idsOf(bench, COPY)).toHaveLength(4);
    expect(await idsOf(bench)).toEqual([]);
    const { title, message_count } = (await stores.sessions.get(SESSION))!;
    expect([title, message_count]).toEqual([null, 0]);
  });

  it('[ED4] the id of a copy is free and was never taken; a project that is gone is left out; files are expected', async () => {
    const { stores, session } = await openBench(open);
    await session();
    await session(OTHER);
    await stores.sessions.remove(OTHER, 1_100);
    expect(await stores.edits.copy(copyOf({ session_id: SESSION }))).toEqual({ kind: 'id_taken' });
    expect(await stores.edits.copy(copyOf({ session_id: OTHER }))).toEqual({ kind: 'id_taken' });
    await stores.projects.create({ project_id: 'p1', name: 'P', color: null }, 1);
    expect(await stores.edits.copy(copyOf({ project_id: 'p1' }))).toMatchObject({ session: { project_id: 'p1' } });
    const lost = copyOf({ session_id: `${COPY}x`, project_id: 'gone', rows: [] });
    expect(await stores.edits.copy(lost)).toMatchObject({ session: { project_id: null, last_message_at: null } });
    await stores.sessions.remove(COPY, 6_000);
    // Until its files are gone too.
    expect(await stores.sessions.tombstones()).toContain(COPY);
  });

  it('[ED4][ED5] a row comes back from a copy as it was, whatever is in it, and in its place among many', async () => {
    const { stores } = await openBench(open);
    const full = reply(1, 1, {
      content: 'a "quote", \\u0000, {"json": [1]}, \u{1F600}\n\t',
      timestamp: 1_772_542_802.123456,
      status: 'error',
      tool_calls: [{ id: 't', type: 'function', function: { name: 'look', arguments: '{"a": 1}' } }],
      reasoning: '',
      attachments: ['x'],
      usage: { input_tokens: 1, output_tokens: 2, cost_usd: 1e-7 },
      error: { code: 'network', message: 'gone', retryable: true, retry_after: 0.5 },
      recovered: true,
    });
    const tool = reply(1, 2, { role: 'tool', name: 'look', tool_call_id: 't', is_error: false, duration_s: 0.25 });
    const many = Array.from({ length: 2_500 }, (_, n) => reply(2, n, { content: String(n) }));
    const rows = [full, tool, ...many];
    await stores.edits.copy(copyOf({ rows }));
    expect(await stores.messages.list(COPY)).toEqual(rows);
    expect((await stores.messages.search('2499', 10)).map((hit) => hit.message_id)).toEqual([`${runId(2)}.2499`]);
  });

  it('[ED1] a write of a turn from before an edit brings nothing back', async () => {
    const bench = await openBench(open);
    const { stores, session, run } = bench;
    await session();
    const fence = await run(1);
    await stores.admissions.settle(settlement(fence, { rows: [reply(1, 1)] }));
    await stores.edits.cut(SESSION, await cutAfter(bench, 0), BY);
    expect(await stores.admissions.appendRows(fence, [reply(1, 1), reply(1, 2)])).toBe('fenced');
    expect(await stores.admissions.settle(settlement(fence, { rows: [reply(1, 1)] }))).toBe('fenced');
    expect(await idsOf(bench)).toEqual([]);
  });
}
