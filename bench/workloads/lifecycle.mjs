// @ts-check
/** W1 cold start, W8 a crash in mid-stream, W9 memory. */

import { now, sleep, withTimeout } from '../lib/clock.mjs';
import { startSeeded, withTarget } from '../lib/context.mjs';
import { SseCapture } from '../lib/sse.mjs';
import { readStamps } from '../lib/stamp.mjs';
import { round } from '../lib/stats.mjs';
import { makePrompt, runTurn } from '../lib/turns.mjs';
import { warmTurns } from './streaming.mjs';

/**
 * @typedef {import('./streaming.mjs').Row} Row
 * @typedef {import('./streaming.mjs').Context} Context
 * @typedef {import('../targets/base.mjs').Target} Target
 */

/** W1: start to the first healthy answer and to the first session list, with an
 * empty home and again with the home that it then has; memory when idle.
 * @param {Context} context @returns {Promise<Row[]>} */
export async function w1(context) {
  return withTarget(context.name, context.provider.url, async (target) => {
    const rows = [];
    for (const label of ['empty home', 'used home']) {
      const startedAt = now();
      await target.start();
      await target.ready();
      const healthyMs = now() - startedAt;
      await target.listSessions();
      const listMs = now() - startedAt;
      await sleep(2500);
      const rssMb = target.rss();
      const cpuBefore = target.cpu();
      await sleep(3000);
      rows.push({
        workload: 'W1',
        case: label,
        healthyMs: Math.round(healthyMs),
        firstListMs: Math.round(listMs),
        idleRssMb: round(rssMb, 1),
        startCpuMs: cpuBefore,
        idleCpuPercent: round(((target.cpu() - cpuBefore) / 3000) * 100, 1),
      });
      if (label === 'empty home') await target.createSession();
      await target.settle();
      await target.stop();
    }
    return rows;
  });
}

const RECOVERY_MS = 40_000; // some servers repair an interrupted turn only after a while

/** W8: SIGKILL after 500 of 2,000 chunks, restart, read the session; and again,
 * with a new prompt at once. @param {Context} context @returns {Promise<Row[]>} */
export async function w8(context) {
  return withTarget(context.name, context.provider.url, async (target) => {
    await target.startAndWait();
    const first = await target.createSession();
    await warmTurns(context, target, first);
    const read = await crashAndRead(context, target, first);
    const second = await target.createSession();
    await warmTurns(context, target, second);
    return [read, await crashAndPrompt(context, target, second)];
  });
}

/** The first read comes right after the server is ready: nothing of the bench is between them.
 * @param {Context} context @param {Target} target @param {string} session @returns {Promise<Row>} */
async function crashAndRead(context, target, session) {
  const received = await streamUntilKilled(target, session);
  const startedAt = now();
  await target.start();
  await target.ready();
  const readyAt = now();
  let kept = 0;
  let firstReadAt = NaN;
  let bestReadAt = NaN;
  const read = async () => {
    const stored = await storedChunks(target, session).catch(() => null);
    if (!stored) return;
    if (Number.isNaN(firstReadAt)) firstReadAt = now();
    const count = new Set(stored.filter((stamp) => received.has(stamp))).size;
    if (count <= kept) return;
    kept = count;
    bestReadAt = now();
  };
  await read();
  const replayedChunks = await countReplayed(target, session, received);
  while (kept < received.size && now() - startedAt < RECOVERY_MS) {
    await sleep(100);
    await read();
  }
  return {
    workload: 'W8',
    case: 'SIGKILL, then read',
    receivedChunks: received.size,
    keptChunks: kept,
    replayedChunks,
    restartMs: Math.round(readyAt - startedAt),
    firstReadMs: round(firstReadAt - readyAt, 1),
    restartAndReadMs: round(firstReadAt - startedAt, 0),
    bestReadMs: round(bestReadAt - startedAt, 0),
    usableAfterwards: await tryTurn(context, target, session),
  };
}

/** @param {Context} context @param {Target} target @param {string} session @returns {Promise<Row>} */
async function crashAndPrompt(context, target, session) {
  await streamUntilKilled(target, session);
  const killedAt = now();
  await target.start();
  await target.ready();
  const restartMs = now() - killedAt;
  let outcome = '';
  while (outcome !== 'yes' && now() - killedAt < RECOVERY_MS) {
    outcome = await tryTurn(context, target, session);
    if (outcome !== 'yes') await sleep(500);
  }
  return {
    workload: 'W8',
    case: 'SIGKILL, then prompt',
    restartMs: Math.round(restartMs),
    usableAgain: outcome,
    usableAgainMs: outcome === 'yes' ? Math.round(now() - killedAt) : null,
  };
}

/** Chunks that the server can play back as events, where it has a way to.
 * @param {Target} target @param {string} session @param {Set<string>} received */
async function countReplayed(target, session, received) {
  const path = target.replayPath(session);
  if (!path) return null;
  const stream = new SseCapture(target.baseUrl + path);
  await Promise.race([stream.done, sleep(2000)]);
  stream.close();
  let text = '';
  for (const event of target.events(stream, session)) if (event.type === 'delta') text += event.text;
  return new Set(stampKeys(text).filter((stamp) => received.has(stamp))).size;
}

/** Stamps of all assistant text that the server has.
 * @param {Target} target @param {string} session */
async function storedChunks(target, session) {
  return stampKeys(target.assistantText(await target.getSession(session)));
}

/** @param {string} text */
const stampKeys = (text) => readStamps(text).map(({ index, sentUs }) => `${index}@${sentUs}`);

/** Stamps of what a subscriber got until the server was killed.
 * @param {Target} target @param {string} session */
async function streamUntilKilled(target, session) {
  const { text } = makePrompt({ chunks: 2000, size: 16, rate: 500, delay: 300 });
  /** @type {() => void} */
  let reached = () => {};
  const enough = new Promise((resolve) => {
    reached = () => resolve(undefined);
  });
  const countStamps = (/** @type {SseCapture} */ capture) => {
    const last = capture.chunks[capture.chunks.length - 1].bytes.toString('latin1');
    for (const { index } of readStamps(last)) if (index >= 499) reached();
  };
  const open = () => target.subscribe(session, { onBytes: countStamps });
  let stream = target.subscribeWhen === 'before' ? open() : null;
  await stream?.opened;
  await target.prompt(session, text);
  stream ??= open();
  await withTimeout(enough, 60_000, '500 chunks');
  await target.stop('SIGKILL');
  stream.close();
  let delivered = '';
  for (const event of stream.events()) if (event.type === 'delta') delivered += event.text;
  return new Set(stampKeys(delivered));
}

/** @param {Context} context @param {Target} target @param {string} session */
async function tryTurn(context, target, session) {
  try {
    const shape = { chunks: 20, size: 16, rate: 0, delay: 300 };
    const { received } = await runTurn(target, context.provider.log, session, shape, { timeoutMs: 20_000 });
    return received[0].intact ? 'yes' : 'answer not intact';
  } catch (error) {
    return `no: ${/** @type {Error} */ (error).message.slice(0, 120)}`;
  }
}

/** W9: memory after 1,000 sessions of 20 messages were each read once, and for
 * each of 500 idle subscribers. @param {Context} context @returns {Promise<Row[]>} */
export async function w9(context) {
  return withTarget(context.name, context.provider.url, async (target) => {
    const ids = await startSeeded(target, () => target.seedManySessions(1000, 20));
    await sleep(1000);
    const rssBefore = target.rss();
    const startedAt = now();
    for (const id of ids) {
      const reply = await target.client.request('GET', target.readPath(id));
      if (reply.status !== 200) throw new Error(`read: ${reply.status}`);
    }
    const seconds = (now() - startedAt) / 1000;
    await sleep(2000);
    const rssAfter = target.rss();
    /** @type {Row[]} */
    const rows = [
      {
        workload: 'W9',
        case: '1,000 sessions read once',
        rssBeforeMb: round(rssBefore, 1),
        rssAfterMb: round(rssAfter, 1),
        readsPerSecond: Math.round(ids.length / seconds),
      },
    ];
    rows.push(await idleSubscribers(target, ids[0], 500));
    return rows;
  });
}

/** @param {Target} target @param {string} session @param {number} count @returns {Promise<Row>} */
async function idleSubscribers(target, session, count) {
  await target.stop();
  await target.startAndWait();
  const id = target.seedWhileRunning ? await target.createSession() : session;
  await sleep(2000);
  const rssBefore = target.rss();
  const streams = [];
  for (let index = 0; index < count; index += 1) {
    const stream = target.idleStream(id);
    streams.push(stream);
    if (index % 20 === 19)
      await Promise.allSettled(streams.slice(-20).map((one) => withTimeout(one.opened, 5000, 'open').catch(() => {})));
  }
  await sleep(3000);
  const open = streams.filter((stream) => stream.status === 200 && !stream.closed).length;
  const rssAfter = target.rss();
  const cpuBefore = target.cpu();
  await sleep(3000);
  const cpu = target.cpu() - cpuBefore;
  for (const stream of streams) stream.close();
  return {
    workload: 'W9',
    case: `${count} idle subscribers`,
    open,
    rssBeforeMb: round(rssBefore, 1),
    rssAfterMb: round(rssAfter, 1),
    kibPerSubscriber: round(((rssAfter - rssBefore) * 1024) / Math.max(1, open), 1),
    cpuPercent: round((cpu / 3000) * 100, 1),
  };
}
