/** What people, clients and misfortune do to the authority of a home, each as one command beside its plain meaning. */
import path from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { expect } from 'vitest';
import {
  assertTranscripts,
  endRunning,
  type Model,
  type ModelAdmission,
  QUEUE_MAX,
  type Real,
  SERVERS,
  SESSIONS,
  settle,
  startReal,
  textOf,
} from './authority-model.ts';
import { type ChildServer, startChildServer } from './child-server.ts';
import { until } from './until.ts';

type Command = fc.AsyncCommand<Model, Real>;

/** @param work does it to both; everything that follows by itself is waited for and looked at behind it */
function command(
  name: string,
  applies: (model: Model) => boolean,
  work: (m: Model, r: Real) => Promise<void>,
): Command {
  return {
    check: (model) => applies({ admissions: model.admissions }),
    async run(model, real) {
      await work(model, real);
      await settle(model, real);
    },
    toString: () => name,
  };
}

const always = (): boolean => true;
const of = (model: Model, session: number) => model.admissions.filter((one) => one.session === session);
const waiting = (model: Model, session: number) => of(model, session).filter((one) => one.status === 'queued');
const running = (model: Model, session: number) => of(model, session).find((one) => one.status === 'started');
const address = (real: Real, { session }: Pick<ModelAdmission, 'session'>): string =>
  `/api/sessions/${real.sessions[session]}/prompts`;

const send = (
  server: ChildServer,
  real: Real,
  one: Pick<ModelAdmission, 'session' | 'key' | 'isLong'>,
  text?: string,
) => server.call('POST', address(real, one), { text: text ?? textOf(one), request_id: one.key });

/** Sends a new prompt and takes it into the model if it must be accepted. */
async function submitTo(
  server: ChildServer,
  session: number,
  isLong: boolean,
  model: Model,
  real: Real,
): Promise<void> {
  const one = { key: real.nextKey(), session, isLong };
  const elsewhere =
    real.isElsewhere(session, server) && of(model, session).some((other) => other.status !== 'terminal');
  const overCap = real.isOverCap(session);
  let answer = await send(server, real, one);
  // Another server may have a dead one's session for the moment in which it recovers it, which counts: asked again, as the
  // answer says.
  const isPassing = () =>
    !overCap && answer.json.code === 'max_concurrent_sessions' && real.cap !== null && !real.isOverCap(session);
  if (isPassing()) {
    await until('what counted for a moment is over', async () => {
      answer = await send(server, real, one);
      return !isPassing();
    });
  }
  // Who has the session is judged before its queue: a full one is none of the others' business.
  if (elsewhere) {
    expect([answer.status, answer.json.code], 'LE1').toEqual([423, 'session_not_owned']);
  } else if (waiting(model, session).length >= QUEUE_MAX) {
    expect([answer.status, answer.json.code], 'AD5').toEqual([429, 'queue_full']);
  } else if (overCap || (answer.status === 429 && real.isOverCap(session))) {
    // A recovery on another server counts as well, and this one goes on.
    expect([answer.status, answer.json.code], 'LE7').toEqual([429, 'max_concurrent_sessions']);
  } else {
    expect(answer.status, answer.text).toBe(202);
    const { admission_id: admissionId, run_id: runId } = answer.json.admission;
    model.admissions.push({ ...one, status: 'queued', outcomes: [], admissionId, runId });
  }
}

const submit = (server: number, session: number, isLong: boolean) =>
  command(`submit ${isLong ? 'long' : 'quick'} to ${server}.${session}`, always, (model, real) =>
    submitTo(real.servers[server]!, session, isLong, model, real),
  );

const submitUnderLock = (session: number) =>
  command(`submit to ${session} under a lock`, always, async (model, real) => {
    const server = real.ownerOf(session);
    const db = new Database(path.join(real.home, 'state.db'), { timeout: 5_000 });
    db.exec('BEGIN IMMEDIATE');
    const sent = submitTo(server, session, false, model, real);
    // The time of the lock is what is done here: reads go on under it.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect((await server.call('GET', '/health')).status).toBe(200);
    db.exec('COMMIT');
    db.close();
    await sent;
  });

/** The lease of a session says what nobody can understand, for as long as somebody tries to get in. */
const submitToBrokenRegistry = (server: number, session: number) =>
  command(`submit to ${server}.${session} under a broken registry`, always, async (model, real) => {
    const id = real.sessions[session];
    const change = (sql: string) => real.outside((db) => db.prepare(sql).run({ id }).changes);
    const isHeld = change('UPDATE active_sessions SET pid = -pid WHERE session_id = :id') > 0;
    if (!isHeld) {
      change(`INSERT INTO active_sessions (session_id, lease_id, surface, pid, live_session_id, epoch, started_at, updated_at)
              VALUES (:id, 'l', 'other', 0, 'runtime', 0, 0, 0)`);
    }
    const at = real.servers[server]!;
    const answer = await send(at, real, { session, key: real.nextKey(), isLong: false });
    expect([answer.status, answer.json.code], 'LE8').toEqual([503, 'session_coordination_unavailable']);
    // Reading needs no lease, and neither does the receipt of what was accepted.
    expect((await at.call('GET', `/api/sessions/${id}/messages`)).status, 'LE8').toBe(200);
    const [known] = of(model, session);
    if (known) expect((await send(at, real, known)).json.admission.admission_id, 'AD2').toBe(known.admissionId);
    if (isHeld) change('UPDATE active_sessions SET pid = -pid WHERE session_id = :id AND pid < 0');
    else change("DELETE FROM active_sessions WHERE session_id = :id AND lease_id = 'l'");
  });

/** The admission that a number means. */
const pick = (model: Model, n: number): ModelAdmission => model.admissions[n % model.admissions.length]!;
const some = (model: Model): boolean => model.admissions.length > 0;

const repeat = (server: number, n: number) =>
  command(`repeat #${n} five times at once to ${server}`, some, async (model, real) => {
    const one = pick(model, n);
    const answers = await Promise.all(Array.from({ length: 5 }, () => send(real.servers[server]!, real, one)));
    for (const answer of answers) {
      expect(answer.status, answer.text).toBe(202);
      expect(answer.json.admission).toMatchObject({ admission_id: one.admissionId, run_id: one.runId });
    }
  });

const conflict = (server: number, n: number) =>
  command(`another prompt under the key of #${n} to ${server}`, some, async (model, real) => {
    const answer = await send(real.servers[server]!, real, pick(model, n), 'something else');
    expect([answer.status, answer.json.code], 'AD2').toEqual([409, 'admission_conflict']);
  });

const CANCEL_REFUSED = { started: 'stale_generation', unknown: 'unknown_execution' } as const;

const cancel = (n: number) =>
  command(`cancel #${n}`, some, async (model, real) => {
    const one = pick(model, n);
    const server = real.ownerOf(one.session);
    const call = () => server.call('DELETE', `${address(real, one)}/${one.admissionId}`);
    if (one.status === 'started' || one.status === 'unknown') {
      const answer = await call();
      expect([answer.status, answer.json.code]).toEqual([409, CANCEL_REFUSED[one.status]]);
      return;
    }
    const wasQueued = one.status === 'queued';
    // Behind a turn of unknown fate nothing moves: who waits there is told why instead of being kept.
    const isStuck = model.admissions.some((other) => other.session === one.session && other.status === 'unknown');
    // Every kind of waiter: the run's own stream, a request that waits.
    const body = { text: textOf(one), request_id: one.key };
    const stream = wasQueued ? await server.stream(address(real, one), { method: 'POST', body }) : null;
    const waiter = wasQueued ? server.call('POST', `${address(real, one)}?wait=1`, body) : null;
    const answers = [await call(), await call()];
    for (const answer of answers) expect(answer.status, answer.text).toBe(200);
    if (!wasQueued) return;
    one.status = 'terminal';
    one.outcomes = ['cancelled'];
    if (isStuck) {
      expect(stream).toMatchObject({ status: 202 });
      await stream!.ended;
      expect(JSON.parse(stream!.text())).toMatchObject({ reason: 'unknown_execution' });
      const waited = await waiter;
      const isToldWhy = waited?.status === 202 && waited.json.reason === 'unknown_execution';
      expect(isToldWhy || waited?.json.admission.outcome === 'cancelled', waited?.text).toBe(true);
      return;
    }
    expect(await waiter).toMatchObject({ status: 200, json: { message: null, admission: { outcome: 'cancelled' } } });
    await stream?.ended;
    expect(
      stream?.events.map((event) => [event.type, event.json.payload.admission_id]),
      'CL5: one completion with its own identity',
    ).toEqual([['message.complete', one.admissionId]]);
  });

const interrupt = (session: number, clearQueue: boolean) =>
  command(`interrupt ${session}${clearQueue ? ' and clear' : ''}`, always, async (model, real) => {
    const server = real.ownerOf(session);
    const url = `/api/sessions/${real.sessions[session]}/interrupt`;
    const wrong = await server.call('POST', url, { generation: 9_999 });
    expect([wrong.status, wrong.json.code], 'CL6').toEqual([409, 'stale_generation']);
    const answer = await server.call('POST', url, { clear_queue: clearQueue });
    const isRunning = running(model, session) !== undefined;
    expect([answer.status, answer.json.status], answer.text).toEqual([200, isRunning ? 'interrupted' : 'idle']);
    endRunning(model, session, { outcome: 'interrupted' });
    for (const one of clearQueue ? waiting(model, session) : []) {
      one.status = 'terminal';
      one.outcomes = ['cancelled'];
    }
  });

const moveAway = (session: number) =>
  command(
    `session ${session} moves under its turn`,
    (model) => running(model, session) !== undefined,
    async (model, real) => {
      const id = real.sessions[session];
      real.outside((db) =>
        db.prepare('UPDATE sessions SET runtime_generation = runtime_generation + 1 WHERE id = ?').run(id),
      );
      await real.ownerOf(session).call('POST', `/api/sessions/${id}/interrupt`);
      endRunning(model, session, 'unknown');
    },
  );

const resolve = (n: number) =>
  command(`resolve #${n}`, some, async (model, real) => {
    const one = pick(model, n);
    const answer = await real
      .ownerOf(one.session)
      .call('POST', `${address(real, one)}/${one.admissionId}/resolve`, { outcome: 'interrupted' });
    if (one.status === 'queued' || one.status === 'started') {
      expect([answer.status, answer.json.code]).toEqual([409, 'stale_generation']);
      return;
    }
    expect(answer.status, answer.text).toBe(200);
    if (one.status === 'unknown') Object.assign(one, { status: 'terminal', outcomes: ['interrupted'] });
  });

/** Ends a server and starts another in its place. What ran there is interrupted, what waits goes on. */
async function replace(server: number, model: Model, real: Real, end: (old: ChildServer) => Promise<unknown>) {
  const old = real.servers[server]!;
  const lost = [...Array(SESSIONS).keys()].filter((session) => real.ownerOf(session) === old);
  await end(old);
  for (const session of lost) endRunning(model, session, { outcome: 'interrupted' });
  real.servers[server] = await startChildServer({ home: real.home });
}

const crash = (server: number) =>
  command(`kill -9 server ${server}`, always, (model, real) => replace(server, model, real, (old) => old.kill()));

const restart = (server: number) =>
  command(`restart server ${server}`, always, (model, real) =>
    replace(server, model, real, (old) => {
      old.process.kill('SIGTERM');
      return old.exited;
    }),
  );

const crashInMidTurn = (server: number, session: number) =>
  command(`kill -9 server ${server} right behind two quick prompts`, always, async (model, real) => {
    const before = model.admissions.length;
    for (let n = 0; n < 2; n += 1) await submitTo(real.servers[server]!, session, false, model, real);
    const added = model.admissions.slice(before);
    const open = of(model, session).filter((one) => one.status !== 'terminal' && !added.includes(one));
    await replace(server, model, real, (old) => old.kill());
    // Behind a prompt that waits they wait too; otherwise the kill decides how far they came.
    if (open.length > 0) return;
    for (const one of added) Object.assign(one, { status: 'terminal', outcomes: ['completed', 'interrupted'] });
  });

const servers = fc.nat(SERVERS - 1);
const sessions = fc.nat(SESSIONS - 1);
const any = fc.nat(50);

const COMMANDS: fc.Arbitrary<Command>[] = [
  fc.tuple(servers, sessions, fc.boolean()).map((args) => submit(...args)),
  fc.tuple(servers, sessions).map(([server, session]) => submit(server, session, true)),
  fc.tuple(servers, any).map((args) => repeat(...args)),
  fc.tuple(servers, any).map((args) => conflict(...args)),
  any.map(cancel),
  fc.tuple(sessions, fc.boolean()).map((args) => interrupt(...args)),
  sessions.map(moveAway),
  any.map(resolve),
  sessions.map(submitUnderLock),
  fc.tuple(servers, sessions).map((args) => submitToBrokenRegistry(...args)),
  servers.map(crash),
  servers.map(restart),
  fc.tuple(servers, sessions).map((args) => crashInMidTurn(...args)),
];

/** Runs random commands against the model. The seed and path of a failure are in its message. */
export async function runModel(options: {
  seed: number;
  runs: number;
  maxCommands: number;
  cap?: number | null;
  /** The run of this seed that failed, and no other. */
  failed?: string;
}): Promise<void> {
  const { seed, runs, maxCommands, cap = null, failed } = options;
  console.info(`authority model: seed ${seed}, ${runs} runs, cap ${cap}`);
  await fc.assert(
    fc.asyncProperty(fc.commands(COMMANDS, { maxCommands, size: 'max' }), async (commands) => {
      const model: Model = { admissions: [] };
      const real = await startReal(cap);
      try {
        await fc.asyncModelRun(() => ({ model, real }), commands);
        // A turn that was claimed this moment shows its prompt as soon as its sidecar is saved.
        let left: unknown;
        const isRight = () =>
          assertTranscripts(model, real).then(
            () => true,
            (error) => {
              left = error;
              return false;
            },
          );
        await until('every transcript is right', isRight, 10_000).catch(() => {
          throw left;
        });
      } catch (error) {
        // Told at once, for a run of many minutes tells its failures at its end.
        console.error(`authority model, seed ${seed}:`, error);
        throw error;
      } finally {
        await real.stop();
      }
    }),
    { seed, numRuns: runs, endOnFailure: true, ...(failed !== undefined && { path: failed }) },
  );
}
