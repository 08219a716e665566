// @ts-check
/** W5 transcripts, W6 session lists, W7 create, rename and delete. */

import { now } from '../lib/clock.mjs';
import { startSeeded, withTarget } from '../lib/context.mjs';
import { p50p99, round } from '../lib/stats.mjs';
import { seedMessages } from '../targets/base.mjs';

/**
 * @typedef {import('./streaming.mjs').Row} Row
 * @typedef {import('./streaming.mjs').Context} Context
 * @typedef {import('../targets/base.mjs').Target} Target
 */

const REQUESTS = 200;
const LIMIT_MS = 8000; // a slow server gets fewer requests, at least 10

/** Sequential GETs of one path. @param {Target} target @param {string} path @param {number} [requests] */
async function timeReads(target, path, requests = REQUESTS) {
  const times = [];
  let bytes = 0;
  const warmUntil = now() + LIMIT_MS / 4;
  for (let turn = 0; turn < requests / 10 && now() < warmUntil; turn += 1) await target.client.request('GET', path);
  const until = now() + LIMIT_MS;
  const cpuBefore = target.cpu();
  for (let turn = 0; turn < requests && (turn < 10 || now() < until); turn += 1) {
    const reply = await target.client.request('GET', path);
    if (reply.status !== 200) throw new Error(`${path}: ${reply.status}`);
    times.push(reply.ms);
    bytes = reply.body.length;
  }
  const cpu = target.cpu() - cpuBefore;
  const { p50, p99, n } = p50p99(times);
  return { p50Ms: p50, p99Ms: p99, requests: n, bytes, cpuMsPerRequest: round(cpu / n, 3) };
}

/** W5: a transcript of 100, 1,000 and 10,000 messages, whole and its last 50.
 * @param {Context} context @returns {Promise<Row[]>} */
export async function w5(context) {
  return withTarget(context.name, context.provider.url, async (target) => {
    const counts = [100, 1000, 10_000];
    const ids = await startSeeded(target, async () => {
      const made = [];
      for (const count of counts) made.push(await target.seedSession(seedMessages(count)));
      return made;
    });
    const rows = [];
    for (const [index, count] of counts.entries()) {
      rows.push({
        workload: 'W5',
        case: `${count} messages, whole`,
        ...(await timeReads(target, target.readPath(ids[index]))),
      });
      const tail = target.tailPath(ids[index], 50);
      if (tail) rows.push({ workload: 'W5', case: `${count} messages, last 50`, ...(await timeReads(target, tail)) });
    }
    return rows;
  });
}

/** W6: the session list as the UI asks for it, of 100, 1,000 and 10,000
 * sessions; unchanged between requests, and right after a rename.
 * @param {Context} context @returns {Promise<Row[]>} */
export async function w6(context) {
  /** @type {Row[]} */
  const rows = [];
  for (const count of [100, 1000, 10_000]) {
    await withTarget(context.name, context.provider.url, async (target) => {
      await startSeeded(target, () => target.seedManySessions(count));
      rows.push({ workload: 'W6', case: `${count} sessions`, ...(await timeReads(target, target.listPath())) });
      rows.push({ workload: 'W6', case: `${count} sessions, after a rename`, ...(await timeAfterRename(target)) });
    });
  }
  return rows;
}

/** @param {Target} target */
async function timeAfterRename(target) {
  const id = await target.createSession();
  const times = [];
  const until = now() + LIMIT_MS;
  for (let turn = 0; turn < 30 && (turn < 5 || now() < until); turn += 1) {
    await target.renameSession(id, `Renamed ${turn}`);
    times.push((await target.client.request('GET', target.listPath())).ms);
  }
  const { p50, p99, n } = p50p99(times);
  return { p50Ms: p50, p99Ms: p99, requests: n };
}

/** W7: create, rename and delete, one after the other, with few and with 1,000
 * sessions there. @param {Context} context @returns {Promise<Row[]>} */
export async function w7(context) {
  /** @type {Row[]} */
  const rows = [];
  for (const existing of [0, 1000]) {
    await withTarget(context.name, context.provider.url, async (target) => {
      if (existing) await startSeeded(target, () => target.seedManySessions(existing));
      else await target.startAndWait();
      for (let turn = 0; turn < 5; turn += 1) await cycle(target);
      const times = [];
      const cpuBefore = target.cpu();
      const startedAt = now();
      for (let turn = 0; turn < REQUESTS && now() - startedAt < LIMIT_MS; turn += 1) times.push(await cycle(target));
      const seconds = (now() - startedAt) / 1000;
      const { p50, p99, n } = p50p99(times);
      rows.push({
        workload: 'W7',
        case: `${existing} sessions there`,
        cyclesPerSecond: round(n / seconds, 1),
        p50Ms: p50,
        p99Ms: p99,
        cycles: n,
        cpuMsPerCycle: round((target.cpu() - cpuBefore) / n, 2),
      });
    });
  }
  return rows;
}

/** @param {Target} target */
async function cycle(target) {
  const startedAt = now();
  const id = await target.createSession();
  await target.renameSession(id, 'Renamed');
  await target.deleteSession(id);
  return now() - startedAt;
}
