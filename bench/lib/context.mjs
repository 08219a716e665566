// @ts-check
/** What every workload needs: a provider process, fresh homes and ports. */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { targets } from '../targets/index.mjs';
import { Client } from './http.mjs';

/** The provider's request log, over HTTP. */
export class ProviderLog {
  /** @param {string} url */
  constructor(url) {
    this.url = url;
    this.client = new Client(url);
  }

  /** @param {string} id @returns {Promise<import('../provider.mjs').RequestRecord | null>} */
  record(id) {
    return this.client.json('GET', `/_bench/requests?id=${id}`);
  }
}

/** Starts the fake provider in a process of its own. */
export async function forkProvider() {
  const script = fileURLToPath(new URL('../provider.mjs', import.meta.url));
  const child = fork(script, [], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  const [line] = await once(/** @type {import('node:stream').Readable} */ (child.stdout), 'data');
  const { port } = JSON.parse(String(line));
  const log = new ProviderLog(`http://127.0.0.1:${port}`);
  return { child, log, url: log.url };
}

/** @returns {Promise<number>} */
async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {net.AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return port;
}

/** @type {Set<import('../targets/base.mjs').Target>} */
const running = new Set();

for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) {
  process.once(signal, () => {
    for (const target of running) target.child?.kill('SIGKILL');
    process.exit(1);
  });
}

/**
 * Makes a target with an empty home, runs `use`, stops the server and removes
 * the home again.
 * @template T
 * @param {string} name @param {string} providerUrl
 * @param {(target: import('../targets/base.mjs').Target) => Promise<T>} use
 * @returns {Promise<T>}
 */
export async function withTarget(name, providerUrl, use) {
  const Class = targets[name];
  if (!Class) throw new Error(`no target "${name}"; there are ${Object.keys(targets).join(', ')}`);
  const home = mkdtempSync(path.join(os.tmpdir(), `bench-${name}-`));
  const target = new Class({ providerUrl, home, port: await freePort() });
  running.add(target);
  try {
    return await use(target);
  } finally {
    await target.stop();
    running.delete(target);
    if (!process.env.BENCH_KEEP) rmSync(home, { recursive: true, force: true });
  }
}

/**
 * Starts the target with what `seed` puts in it.
 * @template T
 * @param {import('../targets/base.mjs').Target} target @param {() => Promise<T>} seed
 */
export async function startSeeded(target, seed) {
  await target.startAndWait();
  if (target.seedWhileRunning) return seed();
  await target.stop();
  const seeded = await seed();
  await target.startAndWait();
  return seeded;
}

/** Milliseconds for a fixed piece of work: shows how busy the machine is. */
export function calibrate() {
  const block = Buffer.alloc(1 << 20, 'x');
  const startedAt = performance.now();
  for (let round = 0; round < 64; round += 1) createHash('sha256').update(block).digest();
  return performance.now() - startedAt;
}
