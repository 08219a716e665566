/** Contract of the lease and epoch stores. */
import { expect, it, onTestFinished } from 'vitest';
import { RegistryTrouble } from '../../db/storage-trouble.ts';
import type { AliveProbe } from '../../db/stores.ts';
import { createIsAlive, type ProcessTable } from '../../server/lease/process-identity.ts';
import {
  lease,
  newAdmission,
  newSession,
  type OpenStores,
  OTHER,
  openBench,
  owner,
  SESSION,
  settlement,
} from './stores-bench.ts';

const THIRD = '20260303_130002_cccccc';

/** A system whose processes a test starts and ends: by pid, when each started, or that it cannot be dated. */
function createSystem() {
  const started = new Map<number, string | 'undated' | 'zombie'>();
  const table: ProcessTable = {
    look: (pid) => {
      const start = started.get(pid);
      if (start === 'zombie') return 'zombie';
      return start === undefined || start === 'undated' ? 'unseen' : { start };
    },
    exists: (pid) => started.has(pid),
  };
  return { started, isAlive: createIsAlive(table) };
}

/** Empty stores over a probe of one's own. */
async function openOver(open: OpenStores, alive: AliveProbe) {
  const { stores, holder, close } = await open(alive);
  onTestFinished(close);
  const slots = () => [SESSION, OTHER, THIRD].filter((id) => holder(id) !== null);
  return { ...stores, holder, slots };
}

export function leasesContract(open: OpenStores): void {
  it('[LE1] a session has one live owner; another session is another matter', async () => {
    const { stores, holder } = await openBench(open);
    expect(holder(SESSION)).toBeNull();
    expect(await stores.leases.acquire(SESSION, lease(owner(100)))).toEqual({ kind: 'granted' });
    expect(await stores.leases.acquire(SESSION, lease(owner(200)))).toEqual({ kind: 'not_owned', holder: owner(100) });
    expect(await stores.leases.acquire(OTHER, lease(owner(200)))).toEqual({ kind: 'granted' });
    expect(holder(SESSION)).toEqual(owner(100));
    expect(holder(OTHER)).toEqual(owner(200));
  });

  it('[LE1] of ten claimants at once one is granted', async () => {
    const { stores, holder } = await openBench(open);
    const pids = Array.from({ length: 10 }, (_, n) => 100 + n);
    const outcomes = await Promise.all(pids.map((pid) => stores.leases.acquire(SESSION, lease(owner(pid)))));
    const granted = pids.filter((_, n) => outcomes[n]?.kind === 'granted');
    expect(granted).toHaveLength(1);
    expect(holder(SESSION)).toEqual(owner(granted[0]));
  });

  it('[LE1] a second owner is refused with or without a cap, and leaves no slot behind', async () => {
    const { leases, slots, holder } = await openOver(open, () => true);
    await leases.acquire(SESSION, lease(owner(100)));
    for (const cap of [null, 4]) {
      const refused = await leases.acquire(SESSION, lease(owner(200), { cap }));
      expect(refused).toEqual({ kind: 'not_owned', holder: owner(100) });
      expect(slots()).toEqual([SESSION]);
    }
    expect(await leases.acquire(OTHER, lease(owner(200), { cap: 1 }))).toEqual({ kind: 'capacity' });
    expect(slots()).toEqual([SESSION]);
    expect(holder(SESSION)).toEqual(owner(100));
    // The ordinary way from one owner to the next.
    await leases.releaseIdle(SESSION, owner(100));
    expect(slots()).toEqual([]);
    expect(await leases.acquire(SESSION, lease(owner(200)))).toEqual({ kind: 'granted' });
  });

  it('[LE2] sessions of different owners are held side by side', async () => {
    const { leases, slots } = await openOver(open, () => true);
    const wanted = [SESSION, OTHER, THIRD];
    const outcomes = await Promise.all(wanted.map((id, n) => leases.acquire(id, lease(owner(100 + n)))));
    expect(outcomes.map((one) => one.kind)).toEqual(['granted', 'granted', 'granted']);
    expect(slots()).toEqual(wanted);
  });

  it('[LE3] a pid that was given again does not keep a lease alive, even if it is our own', async () => {
    const { started, isAlive } = createSystem();
    const { leases, holder } = await openOver(open, isAlive);
    started.set(100, 'boot:100').set(200, 'boot:200');
    await leases.acquire(SESSION, lease(owner(100)));
    expect(await leases.acquire(SESSION, lease(owner(200)))).toMatchObject({ kind: 'not_owned' });
    started.set(100, 'boot:900'); // It died, and its number went to somebody else.
    expect(await leases.holder(SESSION)).toBeNull();
    expect(await leases.acquire(SESSION, lease(owner(200)))).toEqual({ kind: 'granted' });
    // Another start of 200 finds a lease with its own pid, from before.
    started.set(200, 'boot:950');
    const later = owner(200, { start: 'boot:950', liveSessionId: 'live-later' });
    expect(await leases.acquire(SESSION, lease(later))).toEqual({ kind: 'granted' });
    expect(holder(SESSION)).toEqual(later);
  });

  it('[LE3] who cannot be dated counts as alive while its pid is there, and a zombie as dead', async () => {
    const { started, isAlive } = createSystem();
    const { leases } = await openOver(open, isAlive);
    started.set(100, 'undated').set(200, 'boot:200');
    await leases.acquire(SESSION, lease(owner(100)));
    expect(await leases.acquire(SESSION, lease(owner(200)))).toMatchObject({ kind: 'not_owned' });
    // It still counts and fences where there is a cap.
    expect(await leases.acquire(OTHER, lease(owner(200), { cap: 1 }))).toEqual({ kind: 'capacity' });
    started.set(100, 'zombie');
    expect(await leases.acquire(SESSION, lease(owner(200)))).toEqual({ kind: 'granted' });
    started.delete(200);
    expect(await leases.holder(SESSION)).toBeNull();
  });

  it('[LE6] drafts without an id exclude nobody, take no slot and need no room', async () => {
    const { leases, slots } = await openOver(open, () => true);
    for (const pid of [100, 200]) {
      expect(await leases.acquire('', lease(owner(pid), { cap: 0 }))).toEqual({ kind: 'granted' });
    }
    expect(await leases.holder('')).toBeNull();
    expect(slots()).toEqual([]);
    expect(await leases.releaseIdle('', owner(100))).toBe(false);
  });

  it('[LE8] a system that does not say who lives lets nobody in, and the owner stays', async () => {
    let isMute = false;
    const alive = (): boolean => {
      if (isMute) throw new Error('the process table cannot be read');
      return true;
    };
    const { leases, admissions, sessions, holder } = await openOver(open, alive);
    await sessions.create(newSession(SESSION));
    await leases.acquire(SESSION, lease(owner(100)));
    isMute = true;
    const asked = [
      leases.acquire(SESSION, lease(owner(200))),
      leases.acquire(OTHER, lease(owner(200), { cap: 5 })),
      leases.holder(SESSION),
      admissions.admit(newAdmission(1), { maxQueued: 9, lease: lease(owner(200)) }),
    ];
    for (const one of asked) await expect(one).rejects.toBeInstanceOf(RegistryTrouble);
    expect([holder(SESSION), holder(OTHER)]).toEqual([owner(100), null]);
    expect(await admissions.list(SESSION, { pending: false, limit: 9 })).toEqual([]);
    // Who has it already needs nobody's word for it.
    expect(await leases.acquire(SESSION, lease(owner(100)))).toEqual({ kind: 'granted' });
  });

  it('[LE3] a queue is abandoned when its owner is dead, and while it lives it is not', async () => {
    const { stores, session, admit, run, dead } = await openBench(open);
    await session();
    await session(OTHER);
    await run(1);
    await admit(2);
    const me = { pid: 300, start: 'boot:300' };
    expect(await stores.leases.abandoned(me)).toEqual({ sessions: [], othersRun: true });
    dead.add(100);
    expect(await stores.leases.abandoned(me)).toEqual({ sessions: [SESSION], othersRun: false });
    // One's own sessions are one's own affair, and so is what waits for a person.
    expect(await stores.leases.abandoned({ pid: 100, start: 'boot:100' })).toEqual({ sessions: [], othersRun: false });
    await stores.admissions.markUnknown('admission-1');
    expect(await stores.leases.abandoned(me)).toEqual({ sessions: [], othersRun: false });
  });

  it('[LE1] what changed since a time is told with its revision, and what was deleted', async () => {
    const { stores, session, admit } = await openBench(open);
    await session(SESSION, { now: 1_000 });
    await session(OTHER, { now: 5_000 });
    const since = async (time: number, also: string[] = []) => {
      const { changed, deleted } = await stores.changes.since(time, also);
      return { changed: changed.map((one) => one.session_id), deleted };
    };
    expect(await since(4_000)).toEqual({ changed: [OTHER], deleted: [] });
    expect(await since(6_000, [SESSION])).toEqual({ changed: [SESSION], deleted: [] });
    await admit(1); // Its time is long ago, and it is open: it may change at any moment.
    const { changed } = await stores.changes.since(6_000, []);
    const { revision, created_at } = (await stores.sessions.get(SESSION))!;
    expect(changed).toEqual([{ session_id: SESSION, revision, created_at, open: true }]);
    await stores.sessions.remove(OTHER, 7_000);
    expect(await since(6_000)).toEqual({ changed: [SESSION], deleted: [OTHER] });
    expect(await since(8_000)).toEqual({ changed: [SESSION], deleted: [] });
  });

  it('[LE3] a dead owner is replaced, and so is one whose pid now belongs to another process', async () => {
    const { stores, holder, dead } = await openBench(open);
    await stores.leases.acquire(SESSION, lease(owner(100)));
    dead.add(100);
    expect(await stores.leases.acquire(SESSION, lease(owner(200)))).toEqual({ kind: 'granted' });
    expect(holder(SESSION)).toEqual(owner(200));
    // The probe judges by pid and start: the same pid that is another process now.
    dead.add(200);
    const reborn = owner(200, { start: 'boot:later', liveSessionId: 'live-new', epoch: 2 });
    expect(await stores.leases.acquire(SESSION, lease(reborn))).toEqual({ kind: 'granted' });
    expect(holder(SESSION)).toEqual(reborn);
  });

  it('[LE3] a runtime of the same process that is gone from memory has no claim', async () => {
    const { stores, holder } = await openBench(open);
    await stores.leases.acquire(SESSION, lease(owner(100)));
    const next = owner(100, { liveSessionId: 'live-next' });
    expect(await stores.leases.acquire(SESSION, lease(next))).toEqual({ kind: 'granted' });
    expect(holder(SESSION)).toEqual(next);
  });

  it('[LE1] a process that the system would not date holds its lease like any other', async () => {
    const { stores } = await openBench(open);
    const undated = owner(100, { start: null });
    await stores.leases.acquire(SESSION, lease(undated));
    expect(await stores.leases.acquire(SESSION, lease(owner(200)))).toEqual({ kind: 'not_owned', holder: undated });
    expect(await stores.leases.acquire(SESSION, lease(undated))).toEqual({ kind: 'granted' });
    expect(await stores.leases.releaseIdle(SESSION, undated)).toBe(true);
  });

  it('[LE4] the same writer takes its lease again in one slot, also at the cap', async () => {
    const { stores, holder } = await openBench(open);
    for (let times = 0; times < 3; times += 1) {
      expect(await stores.leases.acquire(SESSION, lease(owner(100), { cap: 1, leaseId: `lease-${times}` }))).toEqual({
        kind: 'granted',
      });
    }
    expect(await stores.leases.releaseIdle(SESSION, owner(100))).toBe(true);
    expect(holder(SESSION)).toBeNull();
  });

  it('[LE5] a release drops only its own lease, and only once', async () => {
    const { stores, holder } = await openBench(open);
    expect(await stores.leases.releaseIdle(SESSION, owner(100))).toBe(false);
    await stores.leases.acquire(SESSION, lease(owner(100)));
    await stores.leases.acquire(OTHER, lease(owner(100, { liveSessionId: 'live-other' })));
    const notTheHolder = [
      owner(200),
      owner(100, { liveSessionId: 'another' }),
      owner(100, { start: 'boot:later' }),
      owner(100, { start: null }),
    ];
    for (const stranger of notTheHolder) {
      expect(await stores.leases.releaseIdle(SESSION, stranger)).toBe(false);
      expect(holder(SESSION)).toEqual(owner(100));
    }
    expect(await stores.leases.releaseIdle(SESSION, owner(100))).toBe(true);
    expect(await stores.leases.releaseIdle(SESSION, owner(100))).toBe(false);
    expect(holder(SESSION)).toBeNull();
    expect(holder(OTHER)).not.toBeNull();
  });

  it('[LE5] a lease is kept while a prompt of the session has not ended', async () => {
    const { stores, session, admit, run } = await openBench(open);
    await session();
    const fence = await run(1);
    await admit(2);
    expect(await stores.leases.releaseIdle(SESSION, owner())).toBe(false);
    await stores.admissions.settle(settlement(fence));
    expect(await stores.leases.releaseIdle(SESSION, owner())).toBe(false);
    await stores.admissions.cancel(SESSION, 'admission-2', 5_000);
    expect(await stores.leases.releaseIdle(SESSION, owner())).toBe(true);
  });

  it('[LE7] capacity is its own refusal, judged after ownership, and the dead do not count', async () => {
    const { stores, holder, dead } = await openBench(open);
    await stores.leases.acquire(SESSION, lease(owner(100)));
    await stores.leases.acquire(OTHER, lease(owner(200)));
    expect(await stores.leases.acquire(THIRD, lease(owner(300), { cap: 2 }))).toEqual({ kind: 'capacity' });
    expect(holder(THIRD)).toBeNull();
    // Somebody else's session is somebody else's, whether there is room or not.
    expect(await stores.leases.acquire(SESSION, lease(owner(300), { cap: 1 }))).toEqual({
      kind: 'not_owned',
      holder: owner(100),
    });
    dead.add(200);
    expect(await stores.leases.acquire(THIRD, lease(owner(300), { cap: 2 }))).toEqual({ kind: 'granted' });
    expect(holder(OTHER)).toBeNull();
    expect(holder(SESSION)).toEqual(owner(100));
  });

  it('[LE7] a refusal for capacity prunes nobody', async () => {
    const { stores, holder, dead } = await openBench(open);
    await stores.leases.acquire(SESSION, lease(owner(100)));
    await stores.leases.acquire(OTHER, lease(owner(200)));
    dead.add(200);
    expect(await stores.leases.acquire(THIRD, lease(owner(300), { cap: 1 }))).toEqual({ kind: 'capacity' });
    expect(holder(OTHER)).toEqual(owner(200));
  });

  it('[LE3] each server start is an epoch of its own, with its process and whether it ended', async () => {
    const { stores } = await openBench(open);
    const process = { pid: 100, start: 'boot:100' };
    const first = await stores.epochs.begin({ instanceId: 'i1', process, now: 1_000 });
    const second = await stores.epochs.begin({ instanceId: 'i2', process: { pid: 7, start: null }, now: 1_001 });
    expect(second).toBeGreaterThan(first);
    expect(await stores.epochs.process(first)).toEqual({ ...process, ended: false });
    await stores.epochs.end(first, 1_100);
    expect(await stores.epochs.process(first)).toEqual({ ...process, ended: true });
    expect(await stores.epochs.process(second)).toEqual({ pid: 7, start: null, ended: false });
    expect(await stores.epochs.process(99)).toBeNull();
  });
}
