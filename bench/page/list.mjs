// @ts-check
/**
 * node bench/page/list.mjs [--sessions 10000] [--seconds 5] [--out results.jsonl]
 *
 * W20: scrolling a long list of conversations in a real browser: frames a second and the longest task of the page's main
 * thread, while the wheel turns over what is loaded, while it turns into what is not, and while somebody jumps about.
 * Compiles and runs the server in this process. See README.md.
 */
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import { pino } from 'pino';
import { chromium } from 'playwright-core';
import { now, sleep } from '../lib/clock.mjs';
import { compiledParts } from '../lib/compiled.mjs';
import { calibrate } from '../lib/context.mjs';
import { waitForQuiet, watchOthers } from '../lib/noise.mjs';
import { quantile, round } from '../lib/stats.mjs';

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '5' },
    out: { type: 'string', short: 'o' },
  },
});
const SESSIONS = Number(values.sessions);
const MS = Number(values.seconds) * 1000;
/** As far as somebody turns a wheel or moves a finger in one frame, in pixels. */
const STEP = 300;

const home = mkdtempSync(path.join(os.tmpdir(), 'bench-page-list-'));
const { openStateDb, createPaths, createApp, loadConfig } = await compiledParts();

/** Sessions a quarter of an hour apart, so that they fill days and months. */
async function seed() {
  const file = createPaths(home).stateDb;
  const monotonic = () => performance.now();
  const state = await openStateDb({ file, sleep, random: Math.random, monotonic, patienceMs: 5000, now: () => 0 });
  state.close();
  const db = new Database(file);
  const insert = db.prepare(
    `INSERT INTO sessions (id, source, title, started_at, updated_at, last_activity_at, message_count, runtime_revision)
     VALUES (:id, 'turnkeep', :title, :at, :at, :at, 0, 1)`,
  );
  db.transaction(() => {
    for (let n = 0; n < SESSIONS; n += 1) {
      const id = `20260101_000000_${n.toString(16).padStart(6, '0')}`;
      insert.run({ id, title: `Conversation ${n} about something`, at: Date.now() / 1000 - n * 900 });
    }
  })();
  db.close();
}

await seed();
const app = await createApp(loadConfig({ home, port: '0' }, { HOME: home }), pino({ level: 'silent' }), {});
const url = `http://127.0.0.1:${await app.listen()}/`;
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });

/**
 * Tasks of the page's main thread in a trace: how long each took, and how much of the processor it used meanwhile. The two differ
 * by what others on the machine took.
 * @param {Buffer} trace
 * @returns {{ms: number, cpuMs: number}[]}
 */
function tasksIn(trace) {
  const { traceEvents } = JSON.parse(trace.toString());
  const main = traceEvents.find(
    (/** @type {any} */ event) => event.name === 'thread_name' && event.args.name === 'CrRendererMain',
  );
  return traceEvents
    .filter(
      (/** @type {any} */ event) => event.tid === main.tid && event.pid === main.pid && /RunTask$/.test(event.name),
    )
    .map((/** @type {any} */ { dur = 0, tdur = dur }) => ({ ms: dur / 1000, cpuMs: tdur / 1000 }));
}

/**
 * Measures while something is done to a fresh page, again and again until the time is over.
 * @param {string} label
 * @param {(page: import('playwright-core').Page, step: number) => Promise<unknown>} move
 * @param {(page: import('playwright-core').Page) => Promise<unknown>} [prepare]
 */
async function measure(label, move, prepare) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(url);
  await page.locator('.session').first().waitFor();
  await prepare?.(page);
  await page.mouse.move(140, 400);
  await waitForQuiet();
  const calibrationMs = round(calibrate(), 1);
  const others = watchOthers();
  await browser.startTracing(page, { categories: ['toplevel', 'disabled-by-default-toplevel', '__metadata'] });
  await page.evaluate(
    `globalThis.frames_ = []; (function next(at) { frames_.push(at); requestAnimationFrame(next); })(performance.now())`,
  );
  const end = now() + MS;
  for (let step = 0; now() < end; step += 1) await move(page, step);
  const frames = /** @type {number[]} */ (await page.evaluate('frames_'));
  const tasks = tasksIn(await browser.stopTracing());
  const gaps = frames.slice(1).map((at, index) => at - frames[index]);
  const row = {
    target: 'turnkeep',
    workload: 'W20',
    case: label,
    sessions: SESSIONS,
    framesPerSecond: round((gaps.length / (frames[frames.length - 1] - frames[0])) * 1000, 1),
    frameP99Ms: round(quantile(gaps, 0.99), 1),
    longestTaskMs: round(Math.max(...tasks.map(({ ms }) => ms)), 1),
    longestTaskCpuMs: round(Math.max(...tasks.map(({ cpuMs }) => cpuMs)), 1),
    tasksOver50Ms: tasks.filter(({ ms }) => ms > 50).length,
    cpuPercent: round((tasks.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / MS) * 100, 0),
    lines: await page.locator('.line').count(),
    at: new Date().toISOString(),
    calibrationMs,
    ...others(),
  };
  process.stdout.write(`${JSON.stringify(row)}\n`);
  if (values.out) appendFileSync(values.out, `${JSON.stringify(row)}\n`);
  await page.close();
}

const LIST = `document.getElementById('list')`;

try {
  // What the machine drops by itself.
  await measure('nothing', () => sleep(50));
  await measure(
    'wheel through what is loaded',
    (page, step) => page.mouse.wheel(0, step % 240 < 120 ? STEP : -STEP),
    async (page) => {
      await page.evaluate(`${LIST}.scrollTop = 1e9`);
      await page.locator('.line').last().waitFor();
      await page.locator('.pending').first().waitFor({ state: 'detached' });
      await page.evaluate(`${LIST}.scrollTop = 0`);
    },
  );
  await measure('wheel into what is not loaded', (page) => page.mouse.wheel(0, STEP));
  await measure('jumps', async (page, step) => {
    await page.evaluate(`${LIST}.scrollTop = ${(step * 7919) % SESSIONS} * 40`);
    await sleep(100);
  });
} finally {
  await browser.close();
  app.hurry();
  await app.close();
  rmSync(home, { recursive: true, force: true });
}
process.exit(0);
