/** Contract of the lease and epoch stores. */
import { expect, it } from 'vitest';
import { lease, type OpenStores, OTHER, openBench, owner, SESSION, settlement } from './stores-bench.ts';

const THIRD = '20260303_130002_cccccc';

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
