/**
 * Memory and SQLite are given the same steps, whatever they are, and must answer the same and hold the same. The
 * property prints its seed and the shortest steps that still tell the two apart.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { openStateDb } from '../../db/client.ts';
import { createSqliteStores } from '../../db/sqlite-stores.ts';
import type { Fence, Stores } from '../../db/stores.ts';
import { createMemoryStores } from '../support/memory-stores.ts';
import { holderIn, newStateFile, stateDbOptions } from '../support/state-db.ts';
import {
  lease,
  newAdmission,
  newSession,
  openBench,
  owner,
  reply,
  type StoresBench,
  settlement,
} from './stores-bench.ts';

const SESSIONS = ['s1', 's2', 's3'];
const session = fc.constantFrom(...SESSIONS, 's1', 's1');
const number = fc.constantFrom(1, 1, 1, 1, 2, 3, 4, 5);
const pid = fc.constantFrom(100, 100, 100, 200);
const mode = fc.constantFrom('queue' as const, 'reject' as const);
const project = fc.constantFrom('p1', 'p2', null);
const revision = fc.constantFrom(null, null, null, 2);
const cap = fc.constantFrom(null, null, null, null, 1, 2);
const patch = fc.record(
  {
    title: fc.constantFrom('Oak', 'oak Tree', null),
    pinned: fc.boolean(),
    archived: fc.boolean(),
    draft: fc.constantFrom('', 'half'),
    project_id: project,
  },
  { requiredKeys: [] },
);

/** One step, with everything in it but the time, which is the number of the step. */
const step = fc.oneof(
  fc.record({ do: fc.constant('create' as const), session, project, key: fc.constantFrom(null, 'k1', 'k2'), number }),
  fc.record({ do: fc.constant('patch' as const), session, patch, revision }),
  fc.record({ do: fc.constant('remove' as const), session }),
  { weight: 6, arbitrary: fc.record({ do: fc.constant('admit' as const), session, number, pid, mode, cap }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('claim' as const), session, number }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('settle' as const), session, wrong: fc.constantFrom(false, false, true) }),
  },
  fc.record({ do: fc.constant('append' as const), session }),
  fc.record({ do: fc.constant('cut' as const), session, number, pid, stale: fc.constantFrom(false, false, true) }),
  fc.record({ do: fc.constant('copy' as const), session, project, number }),
  fc.record({ do: fc.constant('cancel' as const), session, number }),
  fc.record({ do: fc.constant('unknown' as const), session, number }),
  fc.record({ do: fc.constant('resolve' as const), session, number }),
  fc.record({ do: fc.constant('acquire' as const), session, pid, cap }),
  fc.record({ do: fc.constant('release' as const), session, pid }),
  fc.record({ do: fc.constant('die' as const), pid }),
  fc.record({ do: fc.constant('project' as const), project, remove: fc.boolean() }),
  fc.record({
    do: fc.constant('list' as const),
    limit: fc.integer({ min: 1, max: 3 }),
    archived: fc.constantFrom('no' as const, 'yes' as const, 'only' as const),
    q: fc.constantFrom(null, 'OAK', 'tree oak'),
    project,
  }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Does one step on one implementation. `fences` are the last claims that it gave out, by session. */
async function play(stores: Stores, fences: Map<string, Fence>, one: Step, now: number): Promise<unknown> {
  // Ids are the session's and the number's, so that no two prompts share one. Most steps take one that is open.
  const at = 'session' in one && 'number' in one ? SESSIONS.indexOf(one.session) * 10 + one.number : 0;
  const open = 'session' in one ? (await stores.sessions.get(one.session))?.open : [];
  const admission = ('number' in one && open?.[one.number - 1]?.admission_id) || `admission-${at}`;
  switch (one.do) {
    case 'create': {
      const part = { project_id: one.project, create_key: one.key, create_digest: `d${one.number % 2}`, now };
      return stores.sessions.create(newSession(one.session, part));
    }
    case 'patch':
      return stores.sessions.patch(one.session, one.patch, { now, revision: one.revision });
    case 'remove':
      return stores.sessions.remove(one.session, now);
    case 'admit': {
      const part = { session_id: one.session, request_id: `request-${one.number % 4}`, mode: one.mode, now };
      const limits = { maxQueued: 2, lease: lease(owner(one.pid), { cap: one.cap }) };
      // A prompt that comes again brings ids of its own.
      const again = await stores.admissions.get(one.session, `admission-${at}`);
      const input = newAdmission(at, part);
      const fresh = newAdmission(1_000 + now, { ...part, digest: input.digest });
      return stores.admissions.admit(again ? fresh : input, limits);
    }
    case 'claim': {
      const outcome = await stores.admissions.claim(one.session, admission, { epoch: 1, now });
      if (outcome.kind === 'claimed') fences.set(one.session, outcome.fence);
      return outcome;
    }
    case 'settle': {
      const fence = fences.get(one.session);
      if (!fence) return null;
      const usage = { input_tokens: now, output_tokens: 2, cost_usd: 0.5 };
      const claim = one.wrong ? { ...fence, epoch: 9 } : fence;
      const rows = [reply(Number.parseInt(fence.run_id, 16), 1)];
      return stores.admissions.settle(settlement(claim, { rows, usage, now }));
    }
    case 'append': {
      const fence = fences.get(one.session);
      return fence ? stores.admissions.appendRows(fence, [reply(Number.parseInt(fence.run_id, 16), 1)]) : null;
    }
    case 'cut': {
      const rows = await stores.messages.list(one.session);
      const last = rows[one.number - 2];
      const cut = {
        kept: last ? { id: last.id, timestamp: last.timestamp } : null,
        count: last ? one.number - 1 : 0,
        remove: rows.slice(last ? one.number - 1 : 0).map((row) => row.id),
        revision: ((await stores.sessions.get(one.session))?.revision ?? 0) + (one.stale ? 1 : 0),
      };
      return stores.edits.cut(one.session, cut, { lease: lease(owner(one.pid)), now });
    }
    case 'copy': {
      const { create_key: _key, create_digest: _digest, ...copy } = newSession(SESSIONS[one.number % 3]!, { now });
      const rows = await stores.messages.list(one.session);
      const parent = { parent_session_id: one.session, project_id: one.project, title_source: null };
      return stores.edits.copy({ ...copy, ...parent, created_at: now, usage: null, rows });
    }
    case 'cancel':
      return stores.admissions.cancel(one.session, admission, now);
    case 'unknown':
      return stores.admissions.markUnknown(admission);
    case 'resolve':
      return stores.admissions.resolve(one.session, admission, now);
    case 'acquire':
      return stores.leases.acquire(one.session, lease(owner(one.pid), { cap: one.cap }));
    case 'release':
      return stores.leases.releaseIdle(one.session, owner(one.pid));
    case 'die':
      return null;
    case 'project': {
      const id = one.project ?? 'p3';
      const there = (await stores.projects.list()).some((known) => known.project_id === id);
      if (one.remove) return stores.projects.remove(id, now);
      return there
        ? stores.projects.patch(id, { name: `n${now}` })
        : stores.projects.create({ project_id: id, name: id, color: null }, now);
    }
    case 'list': {
      const query = { limit: one.limit, archived: one.archived, q: one.q, project_id: one.project, source: null };
      const page = await stores.sessions.list({ ...query, cursor: null });
      return [page, page.next && (await stores.sessions.list({ ...query, cursor: page.next }))];
    }
  }
}

it('[AD3, CL4, DB1] memory and SQLite agree on any sequence of steps', async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }), async (steps) => {
    const dead = new Set<number>();
    const alive = (process: { pid: number }): boolean => !dead.has(process.pid);
    const file = await newStateFile();
    const sqlite = createSqliteStores(await openStateDb(stateDbOptions(file)), alive);
    const memory = createMemoryStores(alive);
    try {
      const both = [
        { stores: memory as Stores, holder: memory.holder, fences: new Map<string, Fence>() },
        { stores: sqlite, holder: (id: string) => holderIn(file, id), fences: new Map<string, Fence>() },
      ];
      for (const { stores } of both) {
        await stores.projects.create({ project_id: 'p1', name: 'P', color: null }, 1);
        for (const id of SESSIONS.slice(0, 2)) await stores.sessions.create(newSession(id, { now: 2 }));
      }
      const histories: unknown[][] = [[], []];
      for (const [n, one] of steps.entries()) {
        if (one.do === 'die') dead.add(one.pid);
        for (const [which, { stores, fences }] of both.entries()) {
          const answer = await play(stores, fences, one, 10 + n);
          histories[which]!.push({ one, answer, started: await startedOf(stores) });
        }
      }
      expect(histories[1]).toEqual(histories[0]);
      const [expected, real] = await Promise.all(both.map(everythingOf));
      expect(real).toEqual(expected);
    } finally {
      sqlite.close();
    }
  });
  await fc.assert(property, { numRuns: 40 });
}, 60_000);

/** How many prompts of each session are started, checked to be one at most after every step. */
async function startedOf(stores: Stores): Promise<number[]> {
  const rows = await Promise.all(SESSIONS.map((id) => stores.sessions.get(id)));
  const started = rows.map((row) => row?.open.filter((open) => open.status !== 'queued').length ?? 0);
  expect(Math.max(...started)).toBeLessThanOrEqual(1);
  return started;
}

async function everythingOf({ stores, holder }: Pick<StoresBench, 'stores' | 'holder'>): Promise<unknown> {
  return (await openBench(async () => ({ stores, holder, close: () => {} }))).everything();
}
