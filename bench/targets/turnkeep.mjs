// @ts-check
/** Turnkeep itself, as `npm start` runs it. Sessions are seeded with the server stopped, through its own stores. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { WsCapture } from '../lib/ws.mjs';
import { RestTarget } from './rest.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export class TurnkeepTarget extends RestTarget {
  name = 'turnkeep';

  /** @param {import('./base.mjs').TargetOptions} options */
  constructor(options) {
    super(options);
    writeFileSync(
      path.join(this.home, 'config.yaml'),
      `model: {provider: custom, base_url: '${this.providerUrl}/v1', default: bench-model}\nqueue: {max: 1000}\n`,
    );
  }

  environment() {
    return { PATH: process.env.PATH, HOME: this.home, TURNKEEP_LOG_LEVEL: 'warn' };
  }

  startCommand() {
    const args = [path.join(ROOT, 'dist/server/main.js'), 'serve', '--home', this.home, '--port', String(this.port)];
    return { command: process.execPath, args, env: this.environment(), cwd: this.home };
  }

  /** The text is in the payload of the envelope. @param {string} event @param {string} data */
  classify(event, data) {
    const kind = super.classify(event, '{}');
    return kind.type === 'delta' ? { ...kind, text: String(JSON.parse(data).payload.text) } : kind;
  }

  /** The stream of a session from its very first event: what an interrupted turn's reader would ask for. @param {string} id */
  replayPath(id) {
    return `/api/sessions/${encodeURIComponent(id)}/events?cursor=0`;
  }

  /** @param {import('./base.mjs').SeedMessage[]} messages */
  async seedSession(messages) {
    return this.#seed(1, messages.length)[0];
  }

  /** @param {number} count @param {number} [messagesEach] */
  async seedManySessions(count, messagesEach = 2) {
    return this.#seed(count, messagesEach);
  }

  /** @param {number} sessions @param {number} messagesEach @returns {string[]} */
  #seed(sessions, messagesEach) {
    const script = path.join(ROOT, 'bench/seed.mjs');
    const args = ['--import', import.meta.resolve('tsx'), script, this.home, String(sessions), String(messagesEach)];
    const output = execFileSync(process.execPath, args, {
      env: this.environment(),
      maxBuffer: 64 * 1024 * 1024,
    });
    return JSON.parse(output.toString('utf8'));
  }
}

/** The same over the WebSocket gateway. */
export class TurnkeepWsTarget extends TurnkeepTarget {
  name = 'turnkeep-ws';

  /** @param {string} id @param {{onBytes?: (capture: any) => void}} [options] @returns {any} */
  subscribe(id, { onBytes } = {}) {
    const hello = JSON.stringify({
      jsonrpc: '2.0',
      id: 'r',
      method: 'session.resume',
      params: { session_id: id, omit_messages: true },
    });
    const capture = new WsCapture(`${this.baseUrl}/api/ws`, {
      hello,
      readyMarker: '"id":"r","result"',
      doneMarker: '"type":"message.complete"',
      onBytes,
    });
    return Object.assign(capture, { events: () => this.events(/** @type {any} */ (capture), id) });
  }

  /** @param {string} id @returns {any} */
  idleStream(id) {
    return this.subscribe(id);
  }

  /** @param {string} _event @param {string} data @returns {{type: 'delta' | 'done' | 'other', text: string}} */
  classify(_event, data) {
    const { params } = JSON.parse(data);
    if (params?.type === 'message.delta') return { type: 'delta', text: String(params.payload.text) };
    return { type: params?.type === 'message.complete' ? 'done' : 'other', text: '' };
  }
}
