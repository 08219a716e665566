/** What a server does about others on its home, by hand-held time: nothing while nobody reads, little while they do. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { StorageTrouble } from '../../db/storage-trouble.ts';
import { createOtherServers } from '../../server/live/other-servers.ts';
import { createLiveRegistry } from '../../server/live/registry.ts';
import { createSubscriber } from '../../server/live/subscriber.ts';
import { createMemoryStores } from '../support/memory-stores.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const row = (session_id: string, now: number) => ({
  session_id,
  title: null,
  model: null,
  workspace: null,
  project_id: null,
  source: 'web',
  now,
  create_key: null,
  create_digest: null,
});

function createBench() {
  const stores = createMemoryStores(() => true);
  const bench = {
    stores,
    version: 1,
    /** What the next sweeps find. */
    abandoned: { sessions: [] as string[], othersRun: false },
    trouble: null as Error | null,
    calls: { version: 0, since: 0, abandoned: 0 },
    changes: [] as string[],
    woken: [] as string[],
    logged: 0,
    now: 10_000,
  };
  const registry = createLiveRegistry({
    newRuntimeId: () => '00000001',
    now: () => bench.now,
    heartbeatS: 10,
    watcher: { came: () => others.came(), told: (id, revision) => others.told(id, revision) },
  });
  const others = createOtherServers({
    stores: {
      sessions: stores.sessions,
      dataVersion: () => {
        bench.calls.version += 1;
        return bench.version;
      },
      changes: {
        async since(time, also) {
          bench.calls.since += 1;
          if (bench.trouble) throw bench.trouble;
          return stores.changes.since(time, also);
        },
      },
    },
    leases: {
      async abandoned() {
        bench.calls.abandoned += 1;
        if (bench.trouble) throw bench.trouble;
        return bench.abandoned;
      },
    },
    registry,
    wake: (id) => void bench.woken.push(id),
    onChange: (id, reason) => void bench.changes.push(`${id} ${reason}`),
    now: () => bench.now,
    log: {
      warn() {
        bench.logged += 1;
      },
    },
  });
  const listReader = () => {
    const events: string[] = [];
    const sink = {
      send(sent: readonly { type: string; json: string }[]) {
        events.push(...sent.filter((event) => event.type !== 'heartbeat').map((event) => event.json));
        return true;
      },
      drained: async () => {},
      close: () => {},
    };
    const subscriber = createSubscriber(sink, { backlogEvents: 1000, backlogBytes: 1e6, sendDeadlineS: 10 });
    registry.add(subscriber);
    registry.addListReader(subscriber);
    return { events, leave: () => subscriber.gone() };
  };
  const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000);
  /** Another server made or changed a session. */
  const elsewhere = async (id: string) => {
    await stores.sessions.create(row(id, bench.now));
    bench.version += 1;
  };
  return Object.assign(bench, { others, registry, listReader, pass, elsewhere });
}

it('[LE1] while nobody reads, nothing is looked at but one number now and then', async () => {
  const bench = createBench();
  bench.others.start();
  await bench.pass(60);
  expect(bench.calls).toEqual({ version: 12, since: 0, abandoned: 1 });
  // Requests by the hundred make it no more than once a second.
  for (let index = 0; index < 100; index += 1) bench.others.asked();
  expect(bench.calls.version).toBe(13);
  bench.others.stop();
  expect(vi.getTimerCount()).toBe(0);
});

it('[LE1] a clock that is put back hides nothing that changes then', async () => {
  const bench = createBench();
  bench.listReader();
  await bench.pass(2);
  bench.now -= 5_000;
  await bench.elsewhere('late');
  await bench.pass(1);
  expect(bench.changes).toEqual(['late changed']);
  bench.others.stop();
});

it('[LE1] readers are told what changed, at most once a second, and only when something did', async () => {
  const bench = createBench();
  await bench.elsewhere('before');
  const reader = bench.listReader();
  await bench.pass(10);
  expect([bench.calls.since, bench.changes]).toEqual([1, []]); // What was there is what they read.
  await bench.elsewhere('a');
  await bench.elsewhere('b');
  await bench.pass(1);
  expect([bench.calls.since, bench.changes]).toEqual([2, ['a created', 'b created']]);
  await bench.stores.sessions.patch('a', { title: 'A' }, { now: bench.now, revision: null });
  bench.version += 1;
  await bench.pass(10);
  expect([bench.calls.since, bench.changes.slice(2)]).toEqual([3, ['a changed']]);
  // What this server has told itself is not told again; nor what is no change that one can see.
  await bench.stores.sessions.patch('b', { title: 'B' }, { now: bench.now, revision: null });
  bench.others.told('b', 2);
  bench.version += 1;
  await bench.pass(10);
  expect(bench.changes).toHaveLength(3);
  await bench.stores.sessions.remove('b', bench.now);
  bench.version += 1;
  await bench.pass(1);
  expect(reader.events.map((json) => JSON.parse(json).payload)).toEqual([{ session_id: 'b', reason: 'deleted' }]);
  reader.leave();
  await bench.pass(1);
  const { version } = bench.calls;
  await bench.pass(60);
  expect(bench.calls.version).toBe(version);
  expect(vi.getTimerCount()).toBe(0);
});

it('[LE1] a change from before a slow write is not missed, and very many are told as one', async () => {
  const bench = createBench();
  const reader = bench.listReader();
  await bench.pass(1);
  bench.now += 30;
  await bench.stores.sessions.create(row('late', bench.now - 25)); // Its writer had waited for the database.
  bench.version += 1;
  await bench.pass(1);
  expect(bench.changes).toEqual(['late created']);
  for (let index = 0; index < 60; index += 1) await bench.elsewhere(`many-${index}`);
  await bench.pass(1);
  expect(bench.changes).toHaveLength(1);
  expect(reader.events.map((json) => JSON.parse(json).payload)).toEqual([{ session_id: null, reason: 'changed' }]);
  bench.others.stop();
  reader.leave();
});

it('[LE3] a queue without an owner is moved here, soon after a request and now and then without one', async () => {
  const bench = createBench();
  bench.others.start();
  bench.abandoned = { sessions: [], othersRun: true };
  await bench.pass(5);
  // A death changes nothing in the state DB: while others have sessions it is looked at each time.
  bench.abandoned = { sessions: ['left'], othersRun: false };
  await bench.pass(5);
  expect(bench.woken).toEqual(['left']);
  bench.version += 1;
  bench.others.asked();
  await bench.pass(0);
  expect(bench.woken).toEqual(['left', 'left']);
  bench.others.stop();
});

it('[LE8] trouble that lasts is said once, and what changed meanwhile is told after it', async () => {
  const bench = createBench();
  bench.others.start();
  const reader = bench.listReader();
  await bench.pass(1);
  bench.trouble = new StorageTrouble('busy', null);
  await bench.elsewhere('a');
  await bench.pass(30);
  expect([bench.logged, bench.changes]).toEqual([2, []]); // Once for each of the two looks.
  bench.trouble = null;
  await bench.pass(1);
  expect(bench.changes).toEqual(['a created']);
  reader.leave();
  bench.others.stop();
});
