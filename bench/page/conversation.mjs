// @ts-check
/**
 * node --import tsx bench/page/conversation.mjs [SECONDS]
 *
 * A session of 10,000 messages in a real Chromium: how long it takes to open at its end, and how many frames are dropped
 * while 200 tokens per second stream into it. Prints a line for each figure. The frames of a page that does nothing are
 * counted too: what the machine drops by itself. Beside them stands the processor time of the page's main thread, which
 * does not suffer from others on the machine.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { chromium } from 'playwright-core';
import { createApp } from '../../server/app.ts';
import { loadConfig } from '../../server/config.ts';
import { createScriptedRunner } from '../../test/support/scripted-runner.ts';

const ROWS = 10_000;
const TOKENS_PER_S = 200;
const STEP_MS = 20;
const OPENINGS = 15;
const seconds = Number(process.argv[2] ?? 15);

const WORDS = [
  'Some words of an answer with **emphasis**, `code` and a [link](https://example.com), one after the other.\n\n',
  '- first point of a list\n- second point, somewhat longer than the first\n- third point\n\n',
  '```ts\nexport function add(a: number, b: number): number {\n  // one line of many\n  return a + b;\n}\n```\n\n',
  '| name | amount |\n|---|--:|\n| apples | 3 |\n| pears | 12 |\n| plums | 140 |\n\n',
  '## A heading\n\n> A quote, and what is said to it.\n\n',
].join('');

const runOf = (/** @type {number} */ turn) => turn.toString(16).padStart(32, '0');
const messages = Array.from({ length: ROWS }, (_, at) => ({
  id: `${runOf(at >> 1)}.${at % 2}`,
  role: at % 2 === 0 ? 'user' : 'assistant',
  content: at % 2 === 0 ? `question ${at >> 1}` : `answer ${at >> 1}\n\n${WORDS.slice(0, 100 + ((at * 37) % 500))}`,
  timestamp: 1_700_000_000 + at,
  run_id: runOf(at >> 1),
}));

const home = await mkdtemp(path.join(os.tmpdir(), 'turnkeep-bench-'));
const script = createScriptedRunner();
const config = loadConfig({ home, port: '0' }, { HOME: home });
const app = await createApp(config, pino({ level: 'silent' }), { discovery: [], runner: script.runner });
const url = `http://127.0.0.1:${await app.listen()}`;
const post = async (/** @type {string} */ address, /** @type {object} */ body) => {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}${address}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
};
const format = { format: 'turnkeep.session', version: 1 };
const long = (await post('/api/sessions/import', { ...format, session: { title: 'long' }, messages })).session
  .session_id;
const short = (await post('/api/sessions', { title: 'short' })).session.session_id;

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
const devtools = await page.context().newCDPSession(page);
await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
await page.goto(`${url}/#/s/${short}`);
await page.locator('.connection[data-state="live"]').waitFor();

/** Processor time of the page's main thread so far, in milliseconds. */
async function busyMs() {
  const { metrics } = await devtools.send('Performance.getMetrics');
  return 1000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0);
}

/** Milliseconds from the click to the frame that shows the last message. */
const open = () =>
  page.evaluate(
    ([id, text]) =>
      /** @type {Promise<number>} */ (
        new Promise((done) => {
          const from = performance.now();
          location.hash = `#/s/${id}`;
          const look = () => {
            const last = [...document.querySelectorAll('.turns .markdown')].at(-1);
            // The task behind the frame: it has been laid out and painted then.
            if (last?.textContent?.includes(text ?? '')) setTimeout(() => done(performance.now() - from));
            else requestAnimationFrame(look);
          };
          requestAnimationFrame(look);
        })
      ),
    [long, `answer ${ROWS / 2 - 1}`],
  );

/** @type {number[]} */
const opened = [];
/** @type {number[]} */
const busy = [];
for (let at = 0; at < OPENINGS; at += 1) {
  const before = await busyMs();
  opened.push(await open());
  busy.push((await busyMs()) - before);
  await page.evaluate((id) => {
    location.hash = `#/s/${id}`;
  }, short);
  await page.waitForTimeout(150);
}
opened.sort((a, b) => a - b);
busy.sort((a, b) => a - b);
console.log(
  `open at the end: median ${opened[OPENINGS >> 1]?.toFixed(0)} ms, slowest ${opened.at(-1)?.toFixed(0)} ms; processor ${busy[OPENINGS >> 1]?.toFixed(0)} ms`,
);

/** Counts frames for a while: how many came, how many should have come besides, and tasks longer than 50 ms. */
async function countFrames(/** @type {number} */ ms) {
  const before = await busyMs();
  const counted = await page.evaluate(
    (length) =>
      /** @type {Promise<{frames: number, dropped: number, long: number, longest: number}>} */ (
        new Promise((done) => {
          const FRAME = 1000 / 60;
          let [last, frames, dropped, long, longest] = [0, 0, 0, 0, 0];
          const tasks = new PerformanceObserver((list) => {
            for (const { duration } of list.getEntries()) {
              long += 1;
              longest = Math.max(longest, duration);
            }
          });
          tasks.observe({ entryTypes: ['longtask'] });
          const from = performance.now();
          const frame = (/** @type {number} */ now) => {
            if (last > 0) {
              frames += 1;
              dropped += Math.max(0, Math.round((now - last) / FRAME) - 1);
            }
            last = now;
            if (performance.now() - from < length) requestAnimationFrame(frame);
            else done({ frames, dropped, long, longest });
          };
          requestAnimationFrame(frame);
        })
      ),
    ms,
  );
  return { ...counted, perFrame: ((await busyMs()) - before) / counted.frames };
}

const say = (/** @type {string} */ what, /** @type {Awaited<ReturnType<typeof countFrames>>} */ counted) => {
  const { frames, dropped, long: tasks, longest, perFrame } = counted;
  const share = ((100 * dropped) / (frames + dropped)).toFixed(2);
  console.log(
    `${what}: ${share} % of ${frames + dropped} frames dropped, ${tasks} tasks over 50 ms (longest ${longest.toFixed(0)} ms), processor ${perFrame.toFixed(1)} ms per frame`,
  );
};

/** Streams words into the long session while frames are counted. */
async function stream(/** @type {string} */ what, /** @type {number} */ index) {
  await post(`/api/sessions/${long}/prompts`, { text: 'go on' });
  const turn = await script.turn(index);
  const tokens = WORDS.repeat(100).match(/\S+\s*|\s+/g) ?? [];
  let sent = 0;
  const from = performance.now();
  const timer = setInterval(() => {
    const due = ((performance.now() - from) / 1000) * TOKENS_PER_S;
    for (; sent < due; sent += 1) turn.text(tokens[sent % tokens.length] ?? ' ');
  }, STEP_MS);
  await page.waitForTimeout(1000);
  say(what, await countFrames(seconds * 1000));
  clearInterval(timer);
  turn.complete();
  await page.waitForTimeout(1500);
}

await open();
await page.waitForTimeout(1000);
say('idle, at the end', await countFrames(seconds * 1000));
await stream('200 tokens/s, at the end', 0);
// As somebody who has read far back and returned.
for (let at = 0; at < 30 && (await page.locator('.turns > .turn').count()) < 600; at += 1) {
  await page.evaluate(() => {
    const scroll = document.querySelector('#scroll');
    if (scroll) scroll.scrollTop = 0;
  });
  await page.waitForTimeout(300);
}
const rows = await page.locator('.turns > .turn').count();
await page.evaluate(() => {
  const scroll = document.querySelector('#scroll');
  if (scroll) scroll.scrollTop = scroll.scrollHeight;
});
await page.waitForTimeout(500);
await stream(`200 tokens/s, after reading ${rows} rows back`, 1);

await browser.close();
app.hurry();
await app.close();
await rm(home, { recursive: true, force: true });
