// @ts-check
/**
 * node --import tsx bench/page/first-render.mjs
 *
 * A home with 10,000 conversations, one of which has 10,000 messages, in a real Chromium: how long it takes from the
 * address to the frame that shows the list and the end of the conversation. Prints all tries and their median.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { chromium } from 'playwright-core';
import { createApp } from '../../server/app.ts';
import { loadConfig } from '../../server/config.ts';
import { seedSessions } from '../../test/support/many-sessions.ts';

const MANY = 10_000;
const TRIES = 9;

const home = await mkdtemp(path.join(os.tmpdir(), 'turnkeep-bench-'));
await seedSessions(home, MANY);
const config = loadConfig({ home, port: '0' }, { HOME: home });
const app = await createApp(config, pino({ level: 'silent' }), { discovery: [] });
const url = `http://127.0.0.1:${await app.listen()}`;
const messages = Array.from({ length: MANY }, (_, at) => {
  const run_id = (at >> 1).toString(16).padStart(32, '0');
  const content = at % 2 === 0 ? `question ${at >> 1}` : `answer ${at >> 1}: ${'some **words** and `code` '.repeat(9)}`;
  const role = at % 2 === 0 ? 'user' : 'assistant';
  return { id: `${run_id}.${at % 2}`, role, content, timestamp: 1_700_000_000 + at, run_id };
});
const imported = await fetch(`${url}/api/sessions/import`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ format: 'turnkeep.session', version: 1, session: { title: 'long one' }, messages }),
});
const { session } = await imported.json();

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
await page.addInitScript(`{
  const look = () => {
    const isThere = document.querySelector('.session') && document.querySelector('.turns > .turn .markdown');
    if (isThere) requestAnimationFrame(() => { globalThis.rendered = performance.now(); });
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}`);
const renders = [];
for (let n = 0; n < TRIES; n += 1) {
  await page.goto('about:blank');
  await page.goto(`${url}/#/s/${session.session_id}`);
  const rendered = () => page.evaluate(() => /** @type {{rendered?: number}} */ (globalThis).rendered ?? null);
  let at = await rendered();
  while (at === null) at = await rendered();
  renders.push(at);
}
renders.sort((a, b) => a - b);
console.log(`first render: median ${Math.round(renders[TRIES >> 1] ?? 0)} ms of ${renders.map(Math.round).join(', ')}`);
console.log(`load average ${os.loadavg()[0]?.toFixed(1)}`);
await browser.close();
await app.close();
await rm(home, { recursive: true, force: true });
