/**
 * What the authority of a home must do, as plainly as it can be said, and the real thing beside it: two server processes
 * on one home with a provider, which commands move (test/support/authority-commands). Behind each command both must come
 * to the same state, and every rule of AD, CL and LE is looked at in what is stored.
 *
 * Prompts are of two kinds, so that the plain model knows what happens next: a quick one ends as soon as it runs, a long
 * one runs until it is stopped.
 */
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'vitest';
import { type ChildServer, startChildServer, writeProviderHome } from './child-server.ts';
import { type FakeProvider, startFakeProvider } from './fake-provider.ts';
import { temporaryFolder } from './home.ts';
import { until } from './until.ts';

/** Prompts that may wait in one session. */
export const QUEUE_MAX = 4;
export const SESSIONS = 2;
export const SERVERS = 2;

export interface ModelAdmission {
  key: string;
  session: number;
  isLong: boolean;
  status: 'queued' | 'started' | 'unknown' | 'terminal';
  /** How it may have ended: more than one word where a crash decided. */
  outcomes: string[];
  admissionId: string;
  runId: string;
}

/** What was accepted, in order. */
export interface Model {
  admissions: ModelAdmission[];
}

export interface Real {
  home: string;
  provider: FakeProvider;
  servers: ChildServer[];
  sessions: string[];
  /** Sessions that may have an owner at once; null for any number. */
  cap: number | null;
  /** A new key for each prompt. */
  nextKey(): string;
  /** The server that has the lease of a session, or that may take it. */
  ownerOf(session: number): ChildServer;
  /** Whether another living server than this one has the lease. */
  isElsewhere(session: number, server: ChildServer): boolean;
  /** Whether no living server has the lease of this session, and as many as may have one have others. */
  isOverCap(session: number): boolean;
  /** Runs something on the database from outside. */
  outside<T>(work: (db: Database.Database) => T): T;
  stop(): Promise<void>;
}

export const textOf = ({ key, isLong }: Pick<ModelAdmission, 'key' | 'isLong'>): string =>
  isLong ? `script:chunks=1,hang=1,id=${key}` : `script:chunks=2,id=${key}`;

/** @param cap `max_concurrent_sessions` */
export async function startReal(cap: number | null = null): Promise<Real> {
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(
    home,
    provider.baseUrl,
    `queue:\n  max: ${QUEUE_MAX}\nserver:\n  drain_s: 0\n${cap === null ? '' : `max_concurrent_sessions: ${cap}\n`}`,
  );
  const servers: ChildServer[] = [];
  for (let n = 0; n < SERVERS; n += 1) servers.push(await startChildServer({ home }));
  const sessions: string[] = [];
  for (let n = 0; n < SESSIONS; n += 1) {
    sessions.push((await servers[0]!.call('POST', '/api/sessions')).json.session.session_id);
  }
  const outside = <T>(work: (db: Database.Database) => T): T => {
    const db = new Database(path.join(home, 'state.db'), { timeout: 5_000 });
    try {
      return work(db);
    } finally {
      db.close();
    }
  };
  const holder = (session: number): ChildServer | undefined => {
    const pid = outside((db) =>
      db.prepare('SELECT pid FROM active_sessions WHERE session_id = ?').pluck().get(sessions[session]),
    );
    return servers.find((server) => server.process.pid === pid);
  };
  const held = (session: number): boolean => holder(session) !== undefined;
  let keys = 0;
  return {
    home,
    provider,
    servers,
    sessions,
    cap,
    outside,
    nextKey() {
      keys += 1;
      return `k${keys}`;
    },
    ownerOf: (session) => holder(session) ?? servers[0]!,
    isElsewhere: (session, server) => (holder(session) ?? server) !== server,
    isOverCap: (session) => cap !== null && !held(session) && [...sessions.keys()].filter(held).length >= cap,
    async stop() {
      await Promise.all(servers.map((server) => server.kill()));
      await provider.close();
    },
  };
}

/** What happens by itself: the lowest waiting prompt of a session runs, unless one runs or is of unknown fate. */
export function advance(model: Model): void {
  for (let session = 0; session < SESSIONS; session += 1) {
    const open = model.admissions.filter((one) => one.session === session && one.status !== 'terminal');
    if (open.some((one) => one.status !== 'queued')) continue;
    for (const one of open) {
      one.status = one.isLong ? 'started' : 'terminal';
      if (one.isLong) break;
      one.outcomes = ['completed'];
    }
  }
}

/** Ends the running prompt of a session in the model. */
export function endRunning(model: Model, session: number, how: { outcome: string } | 'unknown'): void {
  for (const one of model.admissions) {
    if (one.session !== session || one.status !== 'started') continue;
    one.status = how === 'unknown' ? 'unknown' : 'terminal';
    one.outcomes = how === 'unknown' ? [] : [how.outcome];
  }
}

/** Brings the model forward and waits until every server says the same; then every rule must hold. */
export async function settle(model: Model, real: Real): Promise<void> {
  advance(model);
  for (const server of real.servers) {
    for (const [session, sessionId] of real.sessions.entries()) {
      const wanted = model.admissions.filter((one) => one.session === session);
      let seen = '';
      await until(
        'the server says what the model says',
        async () => {
          assertOneRuns(real);
          const answer = await server.call('GET', `/api/sessions/${sessionId}/prompts`);
          if (answer.status !== 200) return false;
          const all: { request_id: string; status: string; outcome: string | null }[] = answer.json.admissions;
          seen = all.map((one) => `${one.request_id} ${one.outcome ?? one.status}`).join();
          return (
            all.length === wanted.length &&
            all.every((one, index) => {
              const { key, status, outcomes } = wanted[index]!;
              if (one.request_id !== key || one.status !== status) return false;
              return status !== 'terminal' || outcomes.includes(one.outcome!);
            })
          );
        },
        20_000,
      ).catch((error) => {
        const said = wanted.map((one) => `${one.key} ${one.outcomes.join('|') || one.status}`).join();
        throw new Error(`session ${session}: the model says ${said || 'nothing'}, the server ${seen || 'nothing'}`, {
          cause: error,
        });
      });
    }
  }
  assertRules(model, real);
  await assertLeases(model, real);
}

interface LeaseRow {
  session_id: string;
  pid: number;
}

/**
 * LE1 to LE5, as they stand in the registry: who has something to do in a session has its lease, and nobody else; who has
 * nothing to do there any more has given it back; what a dead process left stands in nobody's way.
 */
async function assertLeases(model: Model, real: Real): Promise<void> {
  const wrong = (): string[] => {
    const leases = real.outside((db) => db.prepare('SELECT session_id, pid FROM active_sessions').all()) as LeaseRow[];
    const living = real.servers.map((server) => server.process.pid);
    const problems: string[] = [];
    for (const [session, sessionId] of real.sessions.entries()) {
      const open = model.admissions.filter((one) => one.session === session && one.status !== 'terminal');
      const slots = leases.filter((lease) => lease.session_id === sessionId);
      const alive = slots.filter((lease) => living.includes(lease.pid));
      if (slots.length > 1) problems.push(`LE1, LE4: session ${session} has ${slots.length} slots`);
      if (open.length === 0 && alive.length > 0) problems.push(`LE5: session ${session} was not given back`);
      const moves = open.length > 0 && open.every((one) => one.status !== 'unknown');
      if (moves && alive.length === 0) problems.push(`LE3: session ${session} has something to do and no owner`);
      const runner = real.outside((db) =>
        db
          .prepare(
            `SELECT pid FROM runtime_epochs JOIN session_admissions ON owner_epoch = epoch
             WHERE status = 'started' AND target_session_id = ?`,
          )
          .pluck()
          .get(sessionId),
      );
      if (runner !== undefined && runner !== alive[0]?.pid)
        problems.push(`LE1: session ${session} is run by ${runner}`);
    }
    const known = leases.filter((lease) => real.sessions.includes(lease.session_id));
    if (known.length < leases.length) problems.push('LE6, LE7: somebody has a slot for what is no session');
    return problems;
  };
  // Giving back is the last step of a turn, a little behind its end.
  await until('the leases are those of what is to do', () => wrong().length === 0, 10_000).catch(() => {
    expect(wrong()).toEqual([]);
  });
}

/** AD3, looked at all the time. */
function assertOneRuns(real: Real): void {
  const doubled = real.outside((db) =>
    db
      .prepare(
        "SELECT target_session_id FROM session_admissions WHERE status = 'started' GROUP BY 1 HAVING count(*) > 1",
      )
      .all(),
  );
  expect(doubled, 'AD3: one started for each session').toEqual([]);
}

interface Row {
  request_id: string;
  admission_id: string;
  run_id: string;
  status: string;
  outcome: string | null;
  generation: number | null;
}

function assertRules(model: Model, real: Real): void {
  for (const [session, sessionId] of real.sessions.entries()) {
    const rows = real.outside((db) =>
      db
        .prepare(
          'SELECT request_id, admission_id, run_id, status, outcome, generation FROM session_admissions WHERE target_session_id = ? ORDER BY seq',
        )
        .all(sessionId),
    ) as Row[];
    const wanted = model.admissions.filter((one) => one.session === session);
    const ids = (all: { admission_id: string; run_id: string }[]) => all.map((one) => [one.admission_id, one.run_id]);
    // What was acknowledged is there under its ids, in its order, and nothing else is.
    expect(ids(rows), 'AD1, AD2, AD5').toEqual(wanted.map((one) => [one.admissionId, one.runId]));
    expect(rows.filter((row) => row.status === 'queued').length, 'AD5').toBeLessThanOrEqual(QUEUE_MAX);
    const generations = rows.flatMap((row) => (row.generation === null ? [] : [row.generation]));
    expect(generations, 'AD4: claimed in order').toEqual([...new Set(generations)].sort((a, b) => a - b));
    const known = real.outside((db) =>
      db.prepare('SELECT runtime_generation FROM sessions WHERE id = ?').pluck().get(sessionId),
    ) as number;
    expect(generations.at(-1) ?? 0, 'CL1').toBeLessThanOrEqual(known);
    for (const row of rows) {
      if (row.outcome === 'cancelled') expect(row.generation, 'CL5: never claimed').toBeNull();
      if (row.status === 'unknown') {
        expect(wanted.find((one) => one.key === row.request_id)?.status, 'CL3, CL4').toBe('unknown');
      }
    }
  }
  for (const one of model.admissions) {
    const asked = real.provider.requests.filter((request) => {
      const last = request.body.messages?.at(-1)?.content;
      return typeof last === 'string' && last.split('\n\n').at(-1) === textOf(one);
    });
    expect(asked.length, `${one.key} runs at most once`).toBeLessThanOrEqual(1);
    if (one.outcomes.join() === 'completed') expect(asked, `CL6: ${one.key} ran to its end`).toHaveLength(1);
    if (one.outcomes.join() === 'cancelled') expect(asked, `CL5: ${one.key} never ran`).toHaveLength(0);
  }
  expect(real.provider.violations).toEqual([]);
}

/** Every transcript, at the end: prompts in order, and what each run said, once. */
export async function assertTranscripts(model: Model, real: Real): Promise<void> {
  for (const [session, sessionId] of real.sessions.entries()) {
    const ran = model.admissions.filter(
      (one) => one.session === session && one.status !== 'queued' && !one.outcomes.includes('cancelled'),
    );
    for (const server of real.servers) {
      const answer = await server.call('GET', `/api/sessions/${sessionId}/messages?limit=100000`);
      const rows: { id: string; role: string; content: string; run_id: string }[] = answer.json.messages;
      expect(rows.filter((row) => row.role === 'user').map((row) => row.content)).toEqual(ran.map(textOf));
      expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
      for (const one of ran) {
        const said = rows
          .filter((row) => row.run_id === one.runId && row.role === 'assistant' && !row.id.endsWith('.m'))
          .map((row) => row.content);
        const whole = `[${one.key}:0] [${one.key}:1] `;
        expect(whole.startsWith(said.join('')), `${one.key}: ${said.join('')}`).toBe(true);
        if (one.outcomes.join() === 'completed') expect(said.join('')).toBe(whole);
      }
    }
  }
}
