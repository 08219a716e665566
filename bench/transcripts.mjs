// @ts-check
/**
 * node bench/transcripts.mjs [--runs 9] [--out results.jsonl]
 *
 * W10: what transcripts cost inside the server, each figure beside the raw cost of the same bytes in the same process, and
 * the longest time for which nothing else had a turn meanwhile. See README.md.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, closeSync, fsyncSync, mkdtempSync, openSync, rmSync, utimesSync, writeSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { compiledParts } from './lib/compiled.mjs';
import { calibrate } from './lib/context.mjs';
import { waitForQuiet, watchOthers } from './lib/noise.mjs';
import { median, round } from './lib/stats.mjs';
import { printReport } from './report.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({
  options: { runs: { type: 'string', default: '9' }, out: { type: 'string', short: 'o' } },
});
const RUNS = Number(values.runs);

// Compiled, for a worker thread cannot load the sources.
const { openStateDb, createPaths, createSidecarStore, createSqliteStores, createTranscripts } = await compiledParts();

/** @type {Record<string, unknown>[]} */
const results = [];
/** @param {string} label @param {Record<string, unknown>} metrics @param {() => object} others */
function report(label, metrics, others) {
  const conditions = { run: 1, at: new Date().toISOString(), calibrationMs: round(calibrate(), 1), ...others() };
  const row = { target: 'turnkeep', workload: 'W10', case: label, ...metrics, ...conditions };
  results.push(row);
  process.stdout.write(`${JSON.stringify(row)}\n`);
  if (values.out) appendFileSync(values.out, `${JSON.stringify(row)}\n`);
}

/** Milliseconds that work takes, and the longest time for which the event loop stood still in it.
 * @param {() => unknown} work */
async function timed(work) {
  await sleep(20);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await sleep(5);
  delay.reset();
  const startedAt = performance.now();
  await work();
  const ms = performance.now() - startedAt;
  await sleep(5); // What stood still at the end is seen by the next tick.
  delay.disable();
  return { ms, blockMs: delay.max / 1e6 };
}

/** Ours and raw by turns, so that both meet the same noise; the first round is not counted.
 * @param {string} label @param {() => unknown} ours @param {() => unknown} raw
 * @param {{before?: () => unknown, more?: object, runs?: number}} [options] */
async function compare(label, ours, raw, { before, more = {}, runs = RUNS } = {}) {
  await waitForQuiet();
  const others = watchOthers();
  /** @type {{mine: number[], theirs: number[], blocks: number[], idle: number[]}} */
  const taken = { mine: [], theirs: [], blocks: [], idle: [] };
  for (let run = 0; run <= runs; run += 1) {
    await before?.();
    const mine = await timed(ours);
    const theirs = await timed(raw);
    const idle = await timed(() => sleep(mine.ms));
    if (run === 0) continue;
    taken.mine.push(mine.ms);
    taken.theirs.push(theirs.ms);
    taken.blocks.push(mine.blockMs);
    taken.idle.push(idle.blockMs);
  }
  const [ms, rawMs] = [median(taken.mine), median(taken.theirs)];
  const metrics = { ms: round(ms, 3), rawMs: round(rawMs, 3), ratio: round(ms / rawMs, 2) };
  const longest = { longestBlockMs: round(median(taken.blocks), 1), idleBlockMs: round(median(taken.idle), 1) };
  report(label, { ...metrics, ...longest, ...more }, others);
}

/** What every save does at the least. @param {string} file @param {Buffer} bytes */
function rawSave(file, bytes) {
  const handle = openSync(file, 'w');
  writeSync(handle, bytes);
  fsyncSync(handle);
  closeSync(handle);
}

/** A home as Turnkeep would have it. @param {string} home */
async function openHome(home) {
  const paths = createPaths(home);
  const state = await openStateDb({
    file: paths.stateDb,
    sleep,
    random: Math.random,
    monotonic: () => performance.now(),
    patienceMs: 5000,
    now: () => Date.now() / 1000,
  });
  const stores = createSqliteStores(state, () => true);
  const sidecars = createSidecarStore(paths);
  const fresh = () =>
    createTranscripts({ stores, sidecars, liveRunId: () => null, onDamaged: () => {}, cacheBytes: 64 << 20 });
  return { paths, state, stores, fresh };
}

let stamp = 1_600_000_000;
/** Another state of the same file: whoever has it in memory has to read it again. @param {string} file */
const touch = (file) => {
  stamp += 1;
  utimesSync(file, stamp, stamp);
};

/** @param {string} home @param {number} messages @returns {string} */
function seed(home, messages) {
  const args = ['--import', import.meta.resolve('tsx'), path.join(ROOT, 'bench/seed.mjs'), home, '1', String(messages)];
  return JSON.parse(execFileSync(process.execPath, args, { maxBuffer: 1 << 26 }).toString())[0];
}

/** @param {number} count @param {(use: string) => string} folder */
async function ours(count, folder) {
  const home = folder('ours');
  const id = seed(home, count);
  const { paths, state, fresh } = await openHome(home);
  const file = paths.sidecar(id);
  const transcripts = fresh();
  const rawRead = async () => JSON.parse(await readFile(file, 'utf8'));
  const bytes = await readFile(file);
  const read = async () => (await transcripts.read(id)).body();
  const size = { bytes: bytes.length };
  await compare(`${count} messages, warm read`, read, () => {}, { runs: RUNS * 3, more: size });
  const cold = () => fresh().read(id);
  await compare(`${count} messages, cold read`, cold, rawRead, { before: () => touch(file), more: size });
  let n = 0;
  const save = () => {
    n += 1;
    const run = n.toString(16).padStart(32, '0');
    const row = { id: `${run}.0`, role: 'user', content: `turn ${n}`, timestamp: 1e9 + n, run_id: run };
    return transcripts.save(id, { rows: [row], pending: null, now: 1e9 });
  };
  const copy = path.join(home, 'raw.json');
  await compare(`${count} messages, save with one more`, save, () => rawSave(copy, bytes), { more: size });
  state.close();
}

/** A transcript that another program wrote, with fields that nobody is shown, and its rows in the state DB.
 * @param {number} count @param {(use: string) => string} folder */
async function foreign(count, folder) {
  const home = folder('foreign');
  const id = seed(home, 2);
  const { paths, state, fresh } = await openHome(home);
  const rows = Array.from({ length: count }, (_, n) => {
    const content = `${n} ${'The quick brown fox jumps over the lazy dog. '.repeat(8)}`;
    return { role: n % 2 ? 'assistant' : 'user', content, timestamp: 1.6e9 + n, _turnTps: n };
  });
  const file = paths.sidecar(id);
  await writeFile(file, JSON.stringify({ session_id: id, title: 'Theirs', messages: rows, tool_calls: [] }, null, 2));
  await state.write((/** @type {any} */ { $client: db }) => {
    db.prepare('DELETE FROM messages WHERE session_id = ?').run(id);
    const insert = db.prepare('INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)');
    for (const row of rows) insert.run(id, row.role, row.content, row.timestamp);
  });
  const rawRead = async () => JSON.parse(await readFile(file, 'utf8'));
  const options = {
    before: () => touch(file),
    runs: Math.min(3, RUNS),
    more: { bytes: (await readFile(file)).length },
  };
  await compare(
    `${count} messages of another program, cold read and reconcile`,
    () => fresh().read(id),
    rawRead,
    options,
  );
  state.close();
}

const top = mkdtempSync(path.join(os.tmpdir(), 'bench-transcripts-'));
try {
  for (const count of [100, 1000, 10_000]) await ours(count, (use) => path.join(top, `${use}-${count}`));
  await foreign(36_000, (use) => path.join(top, use));
} finally {
  rmSync(top, { recursive: true, force: true });
}
printReport(results);
process.exit(0);
