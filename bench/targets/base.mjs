// @ts-check
/**
 * What every target has in common: starting and stopping the server's process,
 * HTTP requests, and event streams. An adapter overrides the rest.
 *
 * @typedef {{role: 'user' | 'assistant', text: string}} SeedMessage
 * @typedef {{type: 'delta' | 'done' | 'other', text: string, receivedAt: number}} StreamEvent
 * @typedef {{providerUrl: string, home: string, port: number}} TargetOptions
 */
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import path from 'node:path';
import { now, sleep, withTimeout } from '../lib/clock.mjs';
import { Client } from '../lib/http.mjs';
import { cpuMs, isAlive, rssMb } from '../lib/proc.mjs';
import { SseCapture } from '../lib/sse.mjs';

export class Target {
  /** Name in result lines. */
  name = 'base';
  /** 'before' or 'after' POSTing a prompt, whichever the server's own UI does. */
  subscribeWhen = 'before';
  /** True when one event stream carries every session's events. */
  sharedStream = false;
  /** Set by W4 to read all sessions from one such stream. */
  oneStream = false;
  /** Whether sessions can be seeded while the server runs. */
  seedWhileRunning = false;
  /** Path that answers 200 as soon as the server is up. */
  healthPath = '/health';
  /** Extra remarks for result lines. @type {string[]} */
  notes = [];

  /** @param {TargetOptions} options */
  constructor({ providerUrl, home, port }) {
    this.providerUrl = providerUrl;
    this.home = home;
    this.port = port;
    this.baseUrl = `http://127.0.0.1:${port}`;
    this.client = new Client(this.baseUrl);
    /** @type {import('node:child_process').ChildProcess | null} */
    this.child = null;
    this.pid = 0;
    mkdirSync(home, { recursive: true });
  }

  /** @returns {{command: string, args: string[], env: NodeJS.ProcessEnv, cwd: string}} */
  startCommand() {
    throw new Error(`${this.name}: startCommand() is missing`);
  }

  /** Starts the process and returns at once; see ready(). */
  async start() {
    const { command, args, env, cwd } = this.startCommand();
    mkdirSync(cwd, { recursive: true });
    const log = openSync(path.join(this.home, 'server.log'), 'a');
    this.child = spawn(command, args, { cwd, env, stdio: ['ignore', log, log] });
    closeSync(log);
    this.exited = new Promise((resolve) => this.child?.once('exit', resolve));
    this.child.once('error', (error) => {
      this.startError = error;
    });
    this.pid = this.child.pid ?? 0;
    return { baseUrl: this.baseUrl, pid: this.pid };
  }

  /** Polls the health path every 5 ms. */
  async ready(timeoutMs = 120_000) {
    const limit = now() + timeoutMs;
    while (now() < limit) {
      if (this.startError) throw this.startError;
      try {
        const reply = await this.client.request('GET', this.healthPath, undefined, { timeoutMs: 250 });
        if (reply.status === 200) return;
      } catch {
        /* not listening yet */
      }
      if (this.startError) throw this.startError;
      if (!this.pid || !isAlive(this.pid)) throw new Error(`${this.name} ended at start; see ${this.home}/server.log`);
      await sleep(5);
    }
    throw new Error(`${this.name} not ready within ${timeoutMs} ms`);
  }

  async startAndWait() {
    await this.start();
    await this.ready();
    await this.warmUp();
    await this.settle();
  }

  /** Waits until what a server does after its start is over. */
  async settle(timeoutMs = 60_000) {
    const limit = now() + timeoutMs;
    for (let quiet = 0; quiet < 2 && now() < limit; ) {
      const before = this.cpu();
      await sleep(500);
      quiet = this.cpu() - before <= 40 ? quiet + 1 : 0;
    }
  }

  /** What a server has to do once before its first use; not measured. */
  async warmUp() {}

  /** @param {NodeJS.Signals} [signal] */
  async stop(signal = 'SIGTERM') {
    this.client.close();
    this.client = new Client(this.baseUrl);
    if (!this.child || !isAlive(this.pid)) return;
    this.child.kill(signal);
    try {
      await withTimeout(/** @type {Promise<unknown>} */ (this.exited), 8000, `${this.name} to end`);
    } catch {
      this.child.kill('SIGKILL');
      await this.exited;
    }
  }

  /** Resident MiB of the process tree. */
  rss() {
    return rssMb(this.pid);
  }

  /** CPU ms of the process tree so far. */
  cpu() {
    return cpuMs(this.pid);
  }

  // --- sessions -----------------------------------------------------------

  /** @returns {Promise<string>} */
  async createSession() {
    throw new Error('createSession() is missing');
  }

  /** @param {string} id @param {string} title @returns {Promise<unknown>} */
  async renameSession(id, title) {
    throw new Error(`renameSession(${id}, ${title}) is missing`);
  }

  /** @param {string} id @returns {Promise<unknown>} */
  async deleteSession(id) {
    throw new Error(`deleteSession(${id}) is missing`);
  }

  /** @param {string} id */
  readPath(id) {
    return `/${id}`;
  }

  /** Path for the last `count` messages, or null when the API cannot do that.
   * @param {string} id @param {number} count @returns {string | null} */
  tailPath(id, count) {
    return count < 0 ? id : null;
  }

  listPath() {
    return '/';
  }

  /** @param {string} id */
  getSession(id) {
    return this.client.json('GET', this.readPath(id));
  }

  listSessions() {
    return this.client.json('GET', this.listPath());
  }

  /** All assistant text in what getSession() returned.
   * @param {any} session @returns {string} */
  assistantText(session) {
    return String(session);
  }

  // --- turns --------------------------------------------------------------

  /** POSTs a prompt; resolves when the server has accepted it.
   * @param {string} id @param {string} text
   * @returns {Promise<{sentAt: number, acceptedAt: number}>} */
  async prompt(id, text) {
    throw new Error(`prompt(${id}, ${text}) is missing`);
  }

  /** @param {string} id */
  eventsPath(id) {
    return `/${id}`;
  }

  /** Stream that an idle viewer of a session keeps open. @param {string} id */
  idleEventsPath(id) {
    return this.eventsPath(id);
  }

  /** Stream that plays back an interrupted turn's events after a restart, or
   * null when the server has none. @param {string} id @returns {string | null} */
  replayPath(id) {
    return id === '' ? '' : null;
  }

  /** Bytes in the stream that mean "this session's turn is over". @param {string} id */
  doneMarker(id) {
    return id;
  }

  /** @param {string} event @param {string} data @param {string} id
   * @returns {{type: 'delta' | 'done' | 'other', text: string}} */
  classify(event, data, id) {
    return { type: 'other', text: `${event}${data}${id}` };
  }

  /**
   * Opens a session's stream. Await `.opened` for its start, `.done` for the
   * turn's end; `.events()` yields what arrived.
   * @param {string} id
   * @param {{onBytes?: (capture: SseCapture) => void}} [options]
   */
  subscribe(id, { onBytes } = {}) {
    const capture = new SseCapture(this.baseUrl + this.eventsPath(id), { doneMarker: this.doneMarker(id), onBytes });
    return Object.assign(capture, { events: () => this.events(capture, id) });
  }

  /** A stream that says nothing for now. @param {string} id @returns {SseCapture} */
  idleStream(id) {
    return new SseCapture(this.baseUrl + this.idleEventsPath(id));
  }

  /** @param {SseCapture} capture @param {string} id @returns {Generator<StreamEvent>} */
  *events(capture, id) {
    for (const { event, data, receivedAt } of capture.frames()) {
      yield { ...this.classify(event, data, id), receivedAt };
    }
  }

  // --- seeding ------------------------------------------------------------

  /** One session with these messages. @param {SeedMessage[]} messages @returns {Promise<string>} */
  async seedSession(messages) {
    throw new Error(`seedSession(${messages.length}) is missing`);
  }

  /** `count` sessions with `messagesEach` messages each.
   * @param {number} count @param {number} [messagesEach] @returns {Promise<string[]>} */
  async seedManySessions(count, messagesEach = 2) {
    throw new Error(`seedManySessions(${count}, ${messagesEach}) is missing`);
  }
}

const FILLER = 'The quick brown fox jumps over the lazy dog while the server keeps every word of it. '.repeat(16);
export const USER_CHARACTERS = 120;
export const ASSISTANT_CHARACTERS = 600;

/** The same transcript for every target: user 120 and assistant 600 characters.
 * @param {number} count @returns {SeedMessage[]} */
export function seedMessages(count) {
  return Array.from({ length: count }, (_, index) => {
    const role = index % 2 ? 'assistant' : 'user';
    const length = role === 'user' ? USER_CHARACTERS : ASSISTANT_CHARACTERS;
    return { role, text: `${index} ${FILLER}`.slice(0, length) };
  });
}
