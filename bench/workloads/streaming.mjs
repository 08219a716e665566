// @ts-check
/** W2 first delta, W3 fan-out, W4 many sessions at once. */

import { now, sleep, withTimeout } from '../lib/clock.mjs';
import { withTarget } from '../lib/context.mjs';
import { median, p50p99, quantile, round } from '../lib/stats.mjs';
import { examine, makePrompt, runTurn } from '../lib/turns.mjs';

/**
 * @typedef {{workload: string, case: string, [metric: string]: unknown}} Row
 * @typedef {{name: string, provider: {log: import('../lib/context.mjs').ProviderLog, url: string}}} Context
 * @typedef {import('../targets/base.mjs').Target} Target
 */

/** Loads whatever a server loads lazily. @param {Context} context @param {Target} target @param {string} session */
export async function warmTurns(context, target, session, count = 2) {
  for (let turn = 0; turn < count; turn += 1) {
    await runTurn(target, context.provider.log, session, { chunks: 20, size: 16, rate: 0, delay: 200 });
  }
}

/** W2: how soon a first delta arrives, and how soon the provider is asked.
 * @param {Context} context @returns {Promise<Row[]>} */
export async function w2(context) {
  return withTarget(context.name, context.provider.url, async (target) => {
    await target.startAndWait();
    const session = await target.createSession();
    await warmTurns(context, target, session);
    const firstDelta = [];
    const toProvider = [];
    const accepted = [];
    for (let turn = 0; turn < 20; turn += 1) {
      const { sentAt, acceptedAt, record, received } = await runTurn(target, context.provider.log, session, {
        chunks: 10,
        size: 16,
        rate: 100,
        delay: 100,
      });
      if (!record || !received[0].events) throw new Error('W2: the turn brought no delta');
      firstDelta.push(received[0].firstAt - record.firstSentAt);
      toProvider.push(record.receivedAt - sentAt);
      accepted.push(acceptedAt - sentAt);
    }
    return [
      {
        workload: 'W2',
        case: '20 prompts',
        firstDeltaMs: round(median(firstDelta)),
        firstDeltaP95Ms: round(quantile(firstDelta, 0.95)),
        postToProviderMs: round(median(toProvider)),
        postAcceptedMs: round(median(accepted)),
      },
    ];
  });
}

const ROUNDS = new Map([
  [1, 6],
  [10, 3],
  [50, 2],
  [200, 1],
]);

/** W3: one session, 2,000 chunks at full speed, 1, 10, 50 and 200 subscribers.
 * @param {Context} context @returns {Promise<Row[]>} */
export async function w3(context) {
  return withTarget(context.name, context.provider.url, async (target) => {
    await target.startAndWait();
    const rows = [];
    for (const [count, rounds] of ROUNDS) {
      const session = await target.createSession();
      await warmTurns(context, target, session);
      rows.push(await fanOut(context, target, session, count, rounds));
    }
    return rows;
  });
}

/** @param {Context} context @param {Target} target @param {string} session
 * @param {number} count @param {number} rounds @returns {Promise<Row>} */
async function fanOut(context, target, session, count, rounds) {
  const shape = { chunks: 2000, size: 16, rate: 0, delay: 200 + 20 * count };
  const perSecond = [];
  const seconds = [];
  /** @type {number[]} */
  const latencies = [];
  let events = 0;
  let chunks = 0;
  let characters = 0;
  let intact = 0;
  let bytes = 0;
  await sleep(300);
  const cpuBefore = target.cpu();
  for (let turn = 0; turn < rounds; turn += 1) {
    const result = await runTurn(target, context.provider.log, session, shape, { count });
    const delivered = result.received.reduce((sum, one) => sum + one.chunks, 0);
    const lastAt = Math.max(...result.received.map((one) => one.lastAt));
    const elapsed = (lastAt - (result.record?.firstSentAt ?? NaN)) / 1000;
    perSecond.push(delivered / elapsed);
    seconds.push(elapsed);
    for (const one of result.received) {
      for (const value of one.latencies) latencies.push(value);
      events += one.events;
      characters += one.characters;
      intact += one.intact ? 1 : 0;
    }
    chunks += delivered;
    bytes += result.bytes;
  }
  await sleep(300);
  const cpu = target.cpu() - cpuBefore;
  const streams = count * rounds;
  return {
    workload: 'W3',
    case: `${count} subscribers`,
    chunksPerSecond: Math.round(median(perSecond)),
    turnSeconds: round(median(seconds), 3),
    cpuMsPer1000: round(cpu / (chunks / 1000)),
    latencyP50Ms: p50p99(latencies).p50,
    latencyP99Ms: p50p99(latencies).p99,
    eventsPerStream: Math.round(events / streams),
    chunksPerStream: Math.round(chunks / streams),
    charactersPerStream: Math.round(characters / streams),
    intact: `${intact}/${streams}`,
    bytesPerChunk: Math.round(bytes / chunks),
  };
}

const SESSIONS = 20;

/** W4: 20 sessions at once, each 40 chunks a second for 10 s.
 * @param {Context} context @returns {Promise<Row[]>} */
export async function w4(context) {
  return withTarget(context.name, context.provider.url, async (target) => {
    await target.startAndWait();
    /** @type {string[]} */
    const sessions = [];
    for (let index = 0; index < SESSIONS; index += 1) sessions.push(await target.createSession());
    for (const session of sessions) await warmTurns(context, target, session, 1);
    const rows = [await manySessions(context, target, sessions, 'a stream for each session')];
    if (target.sharedStream) {
      target.oneStream = true;
      rows.push(await manySessions(context, target, sessions, 'one stream for all'));
    }
    return rows;
  });
}

/** @param {Context} context @param {Target} target @param {string[]} sessions @param {string} label
 * @returns {Promise<Row>} */
async function manySessions(context, target, sessions, label) {
  const shape = { chunks: 400, size: 16, rate: 40, delay: 500 };
  const prompts = sessions.map(() => makePrompt(shape));
  const shared = target.oneStream ? target.subscribe(sessions[0]) : null;
  const open = () => sessions.map((session) => (shared ? null : target.subscribe(session)));
  let streams = target.subscribeWhen === 'before' ? open() : [];
  await Promise.all([shared?.opened, ...streams.map((stream) => stream?.opened)]);
  const cpuBefore = target.cpu();
  const startedAt = now();
  await Promise.all(sessions.map((session, index) => target.prompt(session, prompts[index].text)));
  if (target.subscribeWhen === 'after') streams = open();
  const waits = shared
    ? sessions.map((session) => waitForMarker(shared, target.doneMarker(session)))
    : streams.map((stream) => /** @type {Promise<any>} */ (stream?.done));
  await withTimeout(Promise.all(waits), 120_000, `${SESSIONS} turns on ${target.name}`);
  const seconds = (now() - startedAt) / 1000;
  const cpu = target.cpu() - cpuBefore;
  shared?.close();
  /** @type {number[]} */
  const latencies = [];
  /** @type {number[]} */
  const later = []; // without the first 2 s, in which the turns start
  let chunks = 0;
  let intact = 0;
  for (const [index, session] of sessions.entries()) {
    const stream = shared ?? streams[index];
    stream?.close();
    if (!stream) continue;
    const record = await context.provider.log.record(prompts[index].id);
    const one = examine(target.events(stream, session), record);
    for (const [position, value] of one.latencies.entries()) {
      latencies.push(value);
      if (one.indices[position] >= 80) later.push(value);
    }
    chunks += one.chunks;
    intact += one.intact ? 1 : 0;
  }
  const all = p50p99(latencies);
  const steady = p50p99(later);
  return {
    workload: 'W4',
    case: label,
    latencyP50Ms: all.p50,
    latencyP99Ms: all.p99,
    steadyP50Ms: steady.p50,
    steadyP99Ms: steady.p99,
    cpuMsPer1000: round(cpu / (chunks / 1000)),
    cpuPercent: round((cpu / seconds / 1000) * 100, 1),
    seconds: round(seconds, 1),
    chunks,
    intact: `${intact}/${sessions.length}`,
  };
}

/** @param {import('../lib/sse.mjs').SseCapture} capture @param {string} marker */
async function waitForMarker(capture, marker) {
  const bytes = Buffer.from(marker);
  let seen = 0;
  let tail = Buffer.alloc(0);
  for (;;) {
    while (seen < capture.chunks.length) {
      const joined = Buffer.concat([tail, capture.chunks[seen].bytes]);
      seen += 1;
      if (joined.includes(bytes)) return;
      tail = joined.subarray(Math.max(0, joined.length - bytes.length + 1));
    }
    if (capture.closed) throw new Error('the stream closed before the turn was over');
    await sleep(100);
  }
}
