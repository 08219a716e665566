/** Contract of the session and project stores. */
import { expect, it } from 'vitest';
import type { SessionPatch } from '../../db/stores.ts';
import {
  newAdmission,
  newSession,
  type OpenStores,
  OTHER,
  openBench,
  reply,
  runId,
  SESSION,
  settlement,
} from './stores-bench.ts';

const PROJECT = { project_id: 'p1', name: 'Garden', color: '#0a0' };
const AT = { now: 7_000, revision: null };

export function sessionsContract(open: OpenStores): void {
  it('[DB5] the same create key gives the same session, another digest under it is a conflict', async () => {
    const { stores, everything } = await openBench(open);
    const keyed = { create_key: 'key', create_digest: 'digest', title: 'First' };
    const created = await stores.sessions.create(newSession(SESSION, keyed));
    const before = await everything();
    const again = newSession(OTHER, { ...keyed, now: 9_000 });
    expect(created).toMatchObject({ kind: 'created', session: { session_id: SESSION, title: 'First' } });
    expect(await stores.sessions.create(again)).toEqual({ ...created, kind: 'existing' });
    expect(await stores.sessions.create({ ...again, create_digest: 'another' })).toEqual({ kind: 'key_conflict' });
    expect(await everything()).toEqual(before);
    expect((await stores.sessions.create({ ...again, create_key: 'another' })).kind).toBe('created');
  });

  it('[DB5] a repeat gives the session as it is now', async () => {
    const { stores } = await openBench(open);
    const input = newSession(SESSION, { create_key: 'key', create_digest: 'digest' });
    await stores.sessions.create(input);
    await stores.sessions.patch(SESSION, { title: 'Renamed' }, AT);
    expect(await stores.sessions.create(input)).toMatchObject({ kind: 'existing', session: { title: 'Renamed' } });
  });

  it('[DB5] ten creations with one key at once are one session', async () => {
    const { stores } = await openBench(open);
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        stores.sessions.create(newSession(`s${n}`, { create_key: 'key', create_digest: 'digest' })),
      ),
    );
    expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual(['created', ...Array(9).fill('existing')]);
  });

  it('[DB1] a new session has revision 1 and nothing else', async () => {
    const { stores } = await openBench(open);
    await stores.projects.create(PROJECT, 900);
    const named = { title: 'Plans', model: 'm', workspace: '/w', project_id: 'p1', source: 'cli' };
    const outcome = await stores.sessions.create(newSession(SESSION, named));
    const session = {
      ...named,
      session_id: SESSION,
      title_source: 'user',
      created_at: 1_000,
      updated_at: 1_000,
      last_message_at: null,
      last_activity_at: 1_000,
      message_count: 0,
      pinned: false,
      archived: false,
      draft: '',
      revision: 1,
      generation: 0,
      edit_number: 0,
      edit_fence: null,
      input_tokens: 0,
      output_tokens: 0,
      cached_tokens: 0,
      reasoning_tokens: 0,
      cost_usd: null,
      context_used: null,
      context_length: null,
      context_estimated: false,
      flags: [],
      open: [],
    };
    expect(outcome).toEqual({ kind: 'created', session });
    expect(await stores.sessions.get(SESSION)).toEqual(session);
    expect(await stores.sessions.get(OTHER)).toBeNull();
  });

  it('[DB3] an id is taken by a session and by the tombstone of one; a project must be there', async () => {
    const { stores, session } = await openBench(open);
    await session();
    expect(await stores.sessions.create(newSession(SESSION))).toEqual({ kind: 'id_taken' });
    await stores.sessions.remove(SESSION, 1_100);
    expect(await stores.sessions.create(newSession(SESSION))).toEqual({ kind: 'id_taken' });
    expect(await stores.sessions.get(SESSION)).toBeNull();
    expect(await stores.sessions.create(newSession(OTHER, { project_id: 'nowhere' }))).toEqual({ kind: 'no_project' });
    expect(await stores.sessions.get(OTHER)).toBeNull();
  });

  it('[DB1] each visible change of a session moves its revision by one', async () => {
    const { stores, session, revision, admit } = await openBench(open);
    await stores.projects.create(PROJECT, 900);
    await session();
    const moves = async (work: () => Promise<unknown>): Promise<void> => {
      const before = await revision();
      await work();
      expect(await revision(), work.toString()).toBe(before + 1);
    };
    const patches: SessionPatch[] = [
      { title: 'One' },
      { title: null, title_source: null },
      { pinned: true },
      { archived: true },
      { model: 'm' },
      { workspace: '/w' },
      { project_id: 'p1' },
      { title: 'Two', pinned: false, draft: 'and this' },
    ];
    for (const patch of patches) await moves(() => stores.sessions.patch(SESSION, patch, AT));
    await moves(() => stores.projects.remove('p1', 8_000));
    await moves(() => admit(1));
    const claim = async (n: number) => {
      const outcome = await stores.admissions.claim(SESSION, `admission-${n}`, { epoch: 1, now: 2_100 });
      return outcome.kind === 'claimed' ? outcome.fence : Promise.reject(new Error(outcome.kind));
    };
    let fence = null as Awaited<ReturnType<typeof claim>> | null;
    await moves(async () => {
      fence = await claim(1);
    });
    await moves(() => stores.admissions.settle(settlement(fence!, { rows: [reply(1, 1)] })));
    await moves(() => admit(2));
    await moves(() => stores.admissions.cancel(SESSION, 'admission-2', 2_200));
    await admit(3);
    await claim(3);
    await moves(() => stores.admissions.markUnknown('admission-3'));
    await moves(() => stores.admissions.resolve(SESSION, 'admission-3', 2_300));
  });

  it('[DB1] a draft, a change that changes nothing and a refusal move no revision and no time', async () => {
    const { stores, session, revision, run } = await openBench(open);
    await session(SESSION, { title: 'Same' });
    const fence = await run(1);
    const before = await stores.sessions.get(SESSION);
    const still = async (work: Promise<unknown>): Promise<void> => {
      await work;
      expect({ ...(await stores.sessions.get(SESSION)), draft: '' }).toEqual(before);
    };
    await still(stores.sessions.patch(SESSION, { draft: 'half a sentence' }, AT));
    expect((await stores.sessions.get(SESSION))?.draft).toBe('half a sentence');
    await still(stores.sessions.patch(SESSION, {}, AT));
    await still(stores.sessions.patch(SESSION, { title: undefined, pinned: undefined }, AT));
    await still(stores.sessions.patch(SESSION, { title: 'Same', title_source: 'user', pinned: false }, AT));
    await still(stores.sessions.patch(SESSION, { title: 'Other' }, { now: 7_000, revision: 999 }));
    await still(stores.sessions.patch(SESSION, { title: 'Other', project_id: 'nowhere' }, AT));
    await still(stores.admissions.appendRows(fence, [reply(1, 1)]));
    await still(stores.admissions.claim(SESSION, 'admission-1', { epoch: 1, now: 1 }));
    await still(stores.admissions.cancel(SESSION, 'admission-1', 1));
    await still(stores.sessions.remove(SESSION, 1));
    expect(await revision()).toBe(before?.revision);
  });

  it('[DB1] a patch says what it met: patched, not found, another revision, no project', async () => {
    const { stores, session, revision } = await openBench(open);
    await session();
    const patch = { title: 'New' };
    expect(await stores.sessions.patch(OTHER, patch, AT)).toEqual({ kind: 'not_found' });
    const stale = { now: 7_000, revision: (await revision()) + 1 };
    expect(await stores.sessions.patch(SESSION, patch, stale)).toEqual({ kind: 'revision_conflict' });
    expect(await stores.sessions.patch(SESSION, { project_id: 'p1' }, AT)).toEqual({ kind: 'no_project' });
    const outcome = await stores.sessions.patch(SESSION, patch, { now: 7_000, revision: await revision() });
    expect(outcome).toEqual({ kind: 'patched', session: await stores.sessions.get(SESSION) });
    expect(outcome).toMatchObject({ session: { title: 'New', updated_at: 7_000, revision: 2 } });
  });

  it('[DB3] a deleted session leaves a tombstone and no row of any store', async () => {
    const { stores, session, finish, everything } = await openBench(open);
    await session(OTHER);
    await finish(9, { session_id: OTHER });
    const before = await everything();
    await session();
    await finish(1);
    expect(await stores.sessions.tombstones()).toEqual([]);
    expect(await stores.sessions.remove(SESSION, 8_000)).toBe('removed');
    expect(await stores.sessions.tombstones()).toEqual([SESSION]);
    expect(await everything()).toEqual({ ...(before as object), tombstones: [SESSION] });
    expect(await stores.admissions.byRun(SESSION, runId(1))).toBeNull();
    expect(await stores.messages.search('reply', 10)).toHaveLength(1);
    expect(await stores.sessions.remove(SESSION, 8_001)).toBe('not_found');
    expect(await stores.sessions.remove('nobody', 8_001)).toBe('not_found');
    await stores.sessions.filesRemoved(SESSION);
    await stores.sessions.filesRemoved('nobody');
    expect(await stores.sessions.tombstones()).toEqual([]);
    expect(await stores.sessions.create(newSession(SESSION))).toEqual({ kind: 'id_taken' });
  });

  it('[DB3] a session with a prompt that waits, runs or is of unknown fate is not deleted', async () => {
    const { stores, session, admit, everything } = await openBench(open);
    await session();
    await admit(1);
    const isLive = async (): Promise<void> => {
      const before = await everything();
      expect(await stores.sessions.remove(SESSION, 8_000)).toBe('live');
      expect(await everything()).toEqual(before);
    };
    await isLive();
    await stores.admissions.claim(SESSION, 'admission-1', { epoch: 1, now: 2_100 });
    await isLive();
    await stores.admissions.markUnknown('admission-1');
    await isLive();
    await stores.admissions.resolve(SESSION, 'admission-1', 2_200);
    expect(await stores.sessions.withOpenAdmissions()).toEqual([]);
    expect(await stores.sessions.remove(SESSION, 8_000)).toBe('removed');
  });

  it('[DB2] projects are listed in order, renamed, and un-assign their sessions when they go', async () => {
    const { stores, session } = await openBench(open);
    expect(await stores.projects.create({ project_id: 'p2', name: 'House', color: null }, 950)).toEqual({
      project_id: 'p2',
      name: 'House',
      color: null,
    });
    await stores.projects.create(PROJECT, 900);
    await session(SESSION, { project_id: 'p1' });
    await session(OTHER, { project_id: 'p2' });
    expect((await stores.projects.list()).map((project) => project.project_id)).toEqual(['p1', 'p2']);
    expect(await stores.projects.patch('p1', { name: 'Park' })).toEqual({ ...PROJECT, name: 'Park' });
    expect(await stores.projects.patch('p1', { color: null })).toEqual({ ...PROJECT, name: 'Park', color: null });
    expect(await stores.projects.patch('p1', {})).toEqual({ ...PROJECT, name: 'Park', color: null });
    expect(await stores.projects.patch('nowhere', { name: 'x' })).toBeNull();
    expect(await stores.projects.remove('nowhere', 8_000)).toBeNull();
    expect(await stores.projects.remove('p1', 8_000)).toEqual([SESSION]);
    expect(await stores.sessions.get(SESSION)).toMatchObject({ project_id: null, updated_at: 8_000 });
    expect(await stores.sessions.get(OTHER)).toMatchObject({ project_id: 'p2', updated_at: 1_000 });
    expect(await stores.projects.list()).toEqual([{ project_id: 'p2', name: 'House', color: null }]);
  });

  it('[AD1] what a store gives away is a copy', async () => {
    const { stores, session, admit } = await openBench(open);
    await session();
    const given = await admit(1);
    given.text = 'changed';
    given.attachments.push('x');
    const row = await stores.sessions.get(SESSION);
    row?.flags.push('x');
    row?.open.pop();
    expect(await stores.admissions.get(SESSION, 'admission-1')).toMatchObject({
      text: newAdmission(1).text,
      attachments: [],
    });
    expect(await stores.sessions.get(SESSION)).toMatchObject({ flags: [], open: [{ status: 'queued' }] });
  });

  it('[DB7] a probe answers', async () => {
    const { stores } = await openBench(open);
    await expect(stores.probe()).resolves.toBeUndefined();
    expect(stores.dataVersion()).toBe(stores.dataVersion());
  });
}
