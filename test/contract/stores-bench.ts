/** What every store test needs: stores to test, the things to put into them, and everything that they hold. */
import { expect, onTestFinished } from 'vitest';
import type { AliveProbe, Fence, LeaseRequest, NewAdmission, NewSession, Settlement, Stores } from '../../db/stores.ts';
import type { LeaseOwner } from '../../server/core/lease-rules.ts';
import type { Admission, Message } from '../../server/core/terms.ts';

export const SESSION = '20260303_130002_aaaaaa';
export const OTHER = '20260303_130002_bbbbbb';

/** Makes empty stores over which the suite runs. */
export type OpenStores = (alive: AliveProbe) => Promise<{
  stores: Stores;
  /** Who has the lease of a session. */
  holder(sessionId: string): LeaseOwner | null;
  close(): void;
}>;

export const runId = (n: number): string => n.toString(16).padStart(32, '0');

export const newSession = (session_id: string, part: Partial<NewSession> = {}): NewSession => ({
  session_id,
  title: null,
  model: null,
  workspace: null,
  project_id: null,
  source: 'web',
  now: 1_000,
  create_key: null,
  create_digest: null,
  ...part,
});

/** The n-th prompt: every id and text of it has the number. */
export const newAdmission = (n: number, part: Partial<NewAdmission> = {}): NewAdmission => ({
  admission_id: `admission-${n}`,
  request_id: `request-${n}`,
  principal_id: 'owner',
  session_id: SESSION,
  run_id: runId(n),
  text: `prompt ${n}`,
  attachments: [],
  mode: 'queue',
  digest: `digest-${n}`,
  now: 2_000 + n,
  ...part,
});

/** A live runtime in the process with this pid. */
export const owner = (pid = 100, part: Partial<LeaseOwner> = {}): LeaseOwner => ({
  pid,
  start: `boot:${pid}`,
  liveSessionId: `live-${pid}`,
  epoch: 1,
  ...part,
});

export const lease = (by: LeaseOwner = owner(), part: Partial<LeaseRequest> = {}): LeaseRequest => ({
  owner: by,
  surface: 'rest',
  leaseId: `lease-${by.liveSessionId}`,
  cap: null,
  now: 1_500,
  ...part,
});

export const reply = (n: number, row: number, part: Partial<Message> = {}): Message => ({
  id: `${runId(n)}.${row}`,
  role: 'assistant',
  content: `reply ${n}.${row}`,
  timestamp: 3_000 + n,
  run_id: runId(n),
  status: 'complete',
  ...part,
});

export const settlement = (fence: Fence, part: Partial<Settlement> = {}): Settlement => ({
  fence,
  outcome: 'completed',
  error: null,
  message_id: `${fence.run_id}.1`,
  last_seq: 7,
  rows: [],
  usage: null,
  now: 4_000,
  ...part,
});

export interface StoresBench {
  stores: Stores;
  holder(sessionId: string): LeaseOwner | null;
  /** Pids of processes that are proven dead. */
  dead: Set<number>;
  session(id?: string, part?: Partial<NewSession>): Promise<void>;
  /** Admits the n-th prompt, which must succeed. */
  admit(n: number, part?: Partial<NewAdmission>): Promise<Admission>;
  /** Admits the n-th prompt and claims it. */
  run(n: number, part?: Partial<NewAdmission>): Promise<Fence>;
  /** Admits, claims and ends the n-th prompt. */
  finish(n: number, part?: Partial<NewAdmission>, end?: Partial<Settlement>): Promise<void>;
  /** Everything that the stores hold, to see that nothing changed. */
  everything(): Promise<unknown>;
  revision(sessionId?: string): Promise<number>;
}

/** Empty stores that are closed when the test has finished. */
export async function openBench(open: OpenStores): Promise<StoresBench> {
  const dead = new Set<number>();
  const { stores, holder, close } = await open((process) => !dead.has(process.pid));
  onTestFinished(close);
  const bench: StoresBench = {
    stores,
    holder,
    dead,

    async session(id = SESSION, part = {}) {
      expect(await stores.sessions.create(newSession(id, part))).toMatchObject({ kind: 'created' });
    },

    async admit(n, part) {
      const outcome = await stores.admissions.admit(newAdmission(n, part), { maxQueued: 100, lease: lease() });
      if (outcome.kind !== 'admitted') throw new Error(`prompt ${n}: ${outcome.kind}`);
      return outcome.admission;
    },

    async run(n, part) {
      const admission = await bench.admit(n, part);
      const by = { epoch: 1, now: 2_500 + n };
      const outcome = await stores.admissions.claim(admission.session_id, admission.admission_id, by);
      if (outcome.kind !== 'claimed') throw new Error(`prompt ${n}: ${outcome.kind}`);
      return outcome.fence;
    },

    async finish(n, part, end = {}) {
      const fence = await bench.run(n, part);
      expect(await stores.admissions.settle(settlement(fence, { rows: [reply(n, 1)], ...end }))).toBe('settled');
    },

    async everything() {
      const query = { limit: 1_000, cursor: null, archived: 'yes', q: null, project_id: null, source: null } as const;
      const { sessions } = await stores.sessions.list(query);
      const ids = [...new Set([SESSION, OTHER, ...sessions.map((session) => session.session_id)])];
      const each = <T>(read: (id: string) => Promise<T>): Promise<T[]> => Promise.all(ids.map(read));
      return {
        sessions,
        admissions: await each((id) => stores.admissions.list(id, { pending: false, limit: 1_000 })),
        messages: await each((id) => stores.messages.list(id)),
        holders: ids.map(holder),
        projects: await stores.projects.list(),
        tombstones: await stores.sessions.tombstones(),
      };
    },

    async revision(sessionId = SESSION) {
      return (await stores.sessions.get(sessionId))!.revision;
    },
  };
  return bench;
}
