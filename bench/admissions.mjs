// @ts-check
/**
 * node bench/admissions.mjs [--count 2000] [--sessions 100] [--queue 20] [--out results.jsonl]
 *
 * W11: durable admissions a second, through the store and through HTTP, beside a bare insert of the same row with the same
 * settings in the same process; and many sessions with queues, one of which is held back, to see that none waits for
 * another. See README.md.
 */
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import { pino } from 'pino';
import { compiledParts } from './lib/compiled.mjs';
import { calibrate } from './lib/context.mjs';
import { Client } from './lib/http.mjs';
import { waitForQuiet, watchOthers } from './lib/noise.mjs';
import { median, quantile, round } from './lib/stats.mjs';

const _ROOT = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '2000' },
    sessions: { type: 'string', default: '100' },
    queue: { type: 'string', default: '20' },
    out: { type: 'string', short: 'o' },
  },
});
const COUNT = Number(values.count);
const SESSIONS = Number(values.sessions);
const QUEUE = Number(values.queue);
/** Both kinds are measured by turns in that many parts, so that they meet the same noise. */
const PARTS = 10;

const { openStateDb, createSqliteStores, createApp, loadConfig } = await compiledParts();

const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-admissions-'));
const PROMPT = 'What does the file say about the weather of tomorrow?';
let ids = 0;
const newId = () => {
  ids += 1;
  return ids.toString(16).padStart(32, '0');
};
/** @param {number} n */
const sessionId = (n) => `20260101_000000_${n.toString(16).padStart(6, '0')}`;

/** @param {string} label @param {Record<string, unknown>} metrics @param {() => object} others */
function report(label, metrics, others) {
  const conditions = { run: 1, at: new Date().toISOString(), calibrationMs: round(calibrate(), 1), ...others() };
  const row = { target: 'turnkeep', workload: 'W11', case: label, ...metrics, ...conditions };
  process.stdout.write(`${JSON.stringify(row)}\n`);
  if (values.out) appendFileSync(values.out, `${JSON.stringify(row)}\n`);
}

/** @param {string} file */
async function openStores(file) {
  const state = await openStateDb({
    file,
    sleep,
    random: Math.random,
    monotonic: () => performance.now(),
    patienceMs: 5000,
    now: () => Date.now() / 1000,
  });
  const stores = createSqliteStores(state, () => true);
  for (let n = 0; n < SESSIONS; n += 1) {
    const fields = { title: null, model: null, workspace: null, project_id: null, source: 'web' };
    await stores.sessions.create({
      session_id: sessionId(n),
      ...fields,
      now: 1,
      create_key: null,
      create_digest: null,
    });
  }
  return stores;
}

/** What the store is measured against: the same row, the same indexes, one transaction each. @param {string} file */
function bareInsert(file) {
  const db = new Database(file, { timeout: 0 });
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  const insert = db.prepare(
    `INSERT INTO session_admissions (admission_id, request_id, principal_id, target_session_id, payload_json,
     payload_digest, intent, status, run_id, created_at) VALUES (?, ?, 'owner', ?, ?, ?, 'queue', 'queued', ?, ?)`,
  );
  return {
    /** @param {number} n */
    run(n) {
      const payload = JSON.stringify({ text: PROMPT, attachments: [], mode: 'queue' });
      insert.run(newId(), newId(), sessionId(n % SESSIONS), payload, 'd'.repeat(64), newId(), 2);
    },
    close: () => db.close(),
  };
}

/** Runs a part and gives its rate. @param {number} count @param {(n: number) => unknown} work */
async function rate(count, work) {
  const startedAt = performance.now();
  for (let n = 0; n < count; n += 1) await work(n);
  return (count / (performance.now() - startedAt)) * 1000;
}

async function measureStore() {
  const stores = await openStores(path.join(folder, 'store.db'));
  (await openStores(path.join(folder, 'bare.db'))).close();
  const bare = bareInsert(path.join(folder, 'bare.db'));
  const owner = { pid: process.pid, start: 'x', liveSessionId: 'aabbccdd', epoch: 1 };
  /** @param {number} n */
  const admit = async (n) => {
    const outcome = await stores.admissions.admit(
      {
        admission_id: newId(),
        request_id: newId(),
        principal_id: 'owner',
        session_id: sessionId(n % SESSIONS),
        run_id: newId(),
        text: PROMPT,
        attachments: [],
        mode: 'queue',
        digest: 'd'.repeat(64),
        now: 2,
      },
      { maxQueued: 100_000, lease: { owner, surface: 'bench', leaseId: newId(), cap: null, now: 2 } },
    );
    if (outcome.kind !== 'admitted') throw new Error(outcome.kind);
  };
  await waitForQuiet();
  const others = watchOthers();
  const part = Math.ceil(COUNT / PARTS);
  /** @type {number[]} */
  const mine = [];
  /** @type {number[]} */
  const raw = [];
  for (let n = 0; n <= PARTS; n += 1) {
    const [ours, theirs] = [await rate(part, admit), await rate(part, (index) => bare.run(index))];
    if (n > 0) mine.push(ours) && raw.push(theirs);
  }
  const [perSecond, barePerSecond] = [median(mine), median(raw)];
  const share = round(perSecond / barePerSecond, 2);
  report('store', { perSecond: round(perSecond, 0), barePerSecond: round(barePerSecond, 0), share }, others);
  bare.close();
  stores.close();
  return barePerSecond;
}

/** @param {string} name @param {object} overrides */
async function startApp(name, overrides) {
  const home = path.join(folder, name);
  const config = loadConfig({ home, port: '0' }, { HOME: home });
  config.queue.max = 100_000;
  const log = pino({ level: 'error' });
  const app = await createApp(config, log, { discovery: [], ...overrides });
  const client = new Client(`http://127.0.0.1:${await app.listen()}`);
  /** @type {string[]} */
  const sessions = [];
  for (let n = 0; n < SESSIONS; n += 1) {
    sessions.push((await client.json('POST', '/api/sessions', {})).session.session_id);
  }
  return { app, client, sessions, stateDb: path.join(home, 'state.db') };
}

/** Admissions through HTTP, one after the other and many at once; nothing runs. @param {number} barePerSecond */
async function measureHttp(barePerSecond) {
  const never = new Promise(() => {});
  const { app, client, sessions } = await startApp('http', { check: () => never });
  /** @param {number} n */
  const post = (n) =>
    client.json('POST', `/api/sessions/${sessions[n % SESSIONS]}/prompts`, { text: PROMPT, request_id: newId() });
  for (let n = 0; n < SESSIONS; n += 1) await post(n); // Every session has its lease and its task.
  for (const atOnce of [1, 16]) {
    await waitForQuiet();
    const others = watchOthers();
    /** @type {number[]} */
    const times = [];
    const startedAt = performance.now();
    let sent = 0;
    const worker = async () => {
      while (sent < COUNT) {
        sent += 1;
        const from = performance.now();
        await post(sent);
        times.push(performance.now() - from);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    const perSecond = (times.length / (performance.now() - startedAt)) * 1000;
    const latency = { p50Ms: round(quantile(times, 0.5), 2), p99Ms: round(quantile(times, 0.99), 2) };
    const share = round(perSecond / barePerSecond, 2);
    report(`HTTP, ${atOnce} at once`, { perSecond: round(perSecond, 0), share, ...latency }, others);
  }
  app.hurry();
  // Checks that never answer never end: the process ends with them.
  void app.close();
}

/** Queues in many sessions, of which the first is held back in its first turn until all others are done. */
async function measureQueues() {
  let letGo = () => {};
  const held = new Promise((resolve) => {
    letGo = () => resolve(undefined);
  });
  let ended = 0;
  /** @type {string | undefined} */
  let first;
  const runner = {
    kind: 'bench',
    /** @param {{sessionId: string}} turn */
    async *run(turn) {
      yield { type: 'message.start', payload: {} };
      if (turn.sessionId === first) await held;
      yield { type: 'message.delta', payload: { text: 'answer' } };
      ended += 1;
      return { kind: 'completed' };
    },
  };
  const { app, client, sessions, stateDb } = await startApp('queues', { runner });
  first = sessions[0];
  await waitForQuiet();
  const others = watchOthers();
  const startedAt = Date.now() / 1000;
  const all = [];
  for (let n = 0; n < QUEUE; n += 1) {
    for (const id of sessions) all.push(client.json('POST', `/api/sessions/${id}/prompts`, { text: `prompt ${n}` }));
  }
  await Promise.all(all);
  const submittedS = Date.now() / 1000 - startedAt;
  while (ended < (SESSIONS - 1) * QUEUE) await sleep(5);
  letGo();
  const db = new Database(stateDb, { readonly: true });
  const open = db.prepare("SELECT count(*) FROM session_admissions WHERE status != 'terminal'").pluck();
  while (open.get() !== 0) await sleep(5);
  const finished = /** @type {{session: string, at: number}[]} */ (
    db.prepare('SELECT target_session_id AS session, max(ended_at) AS at FROM session_admissions GROUP BY 1').all()
  );
  const free = finished.filter((one) => one.session !== first).map((one) => one.at - startedAt);
  const firstDoneAt = Math.min(...free) + startedAt;
  const behind = /** @type {{done: number}[]} */ (
    db
      .prepare(
        'SELECT sum(ended_at <= ?) AS done FROM session_admissions WHERE target_session_id != ? GROUP BY target_session_id',
      )
      .all(firstDoneAt, first)
  ).map((one) => one.done);
  db.close();
  report(
    `${SESSIONS} sessions, queues of ${QUEUE}, one held back`,
    {
      turnsPerSecond: round((free.length * QUEUE) / Math.max(...free), 0),
      submittedS: round(submittedS, 2),
      finishMinS: round(Math.min(...free), 2),
      finishP50S: round(median(free), 2),
      finishMaxS: round(Math.max(...free), 2),
      // How far the slowest was when the fastest had finished: QUEUE is perfect fairness.
      leastTurnsWhenFirstFinished: Math.min(...behind),
      heldFinishedS: round((finished.find((one) => one.session === first)?.at ?? NaN) - startedAt, 2),
    },
    others,
  );
  await app.close();
}

await measureQueues();
await measureHttp(await measureStore());
rmSync(folder, { recursive: true, force: true });
process.exit(0);
