// @ts-check
/**
 * opencode (npm package opencode-ai). OPENCODE_BIN is its native binary
 * (node_modules/opencode-linux-x64/bin/opencode); default: `opencode`.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ASSISTANT_CHARACTERS, seedMessages, Target, USER_CHARACTERS } from './base.mjs';

export class OpencodeTarget extends Target {
  name = 'opencode';
  healthPath = '/global/health';
  sharedStream = true;
  binary = process.env.OPENCODE_BIN ?? 'opencode';
  notes = ['/event carries the events of all sessions of a directory'];

  /** @param {import('./base.mjs').TargetOptions} options */
  constructor(options) {
    super(options);
    this.work = path.join(this.home, 'work');
    mkdirSync(this.work, { recursive: true });
    // opencode installs a plugin package into its configuration folder at the
    // first start, so that this folder is shared by all runs.
    this.configHome = process.env.OPENCODE_CONFIG_HOME ?? path.join(os.tmpdir(), 'bench-opencode-config');
    mkdirSync(this.configHome, { recursive: true });
  }

  /** @returns {object} what would be in opencode.json */
  config() {
    const limit = { context: 1_000_000, output: 100_000 };
    const models = Object.fromEntries(['bench-model', 'bench-small'].map((name) => [name, { name, limit }]));
    return {
      $schema: 'https://opencode.ai/config.json',
      autoupdate: false,
      share: 'disabled',
      model: 'bench/bench-model',
      small_model: 'bench/bench-small',
      provider: {
        bench: {
          npm: '@ai-sdk/openai-compatible', // bundled in the binary
          name: 'bench',
          options: { baseURL: `${this.providerUrl}/v1`, apiKey: 'bench' },
          models,
        },
      },
    };
  }

  environment() {
    return {
      PATH: process.env.PATH,
      HOME: this.home,
      XDG_CONFIG_HOME: this.configHome,
      OPENCODE_CONFIG_CONTENT: JSON.stringify(this.config()),
      XDG_DATA_HOME: path.join(this.home, 'data'),
      XDG_CACHE_HOME: path.join(this.home, 'cache'),
      XDG_STATE_HOME: path.join(this.home, 'state'),
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    };
  }

  startCommand() {
    const args = ['serve', '--port', String(this.port), '--hostname', '127.0.0.1'];
    return { command: this.binary, args, env: this.environment(), cwd: this.work };
  }

  /** The first request for a directory boots its "instance". */
  async warmUp() {
    await this.listSessions();
  }

  async createSession() {
    return (await this.client.json('POST', '/session', {})).id;
  }

  /** @param {string} id @param {string} title */
  renameSession(id, title) {
    return this.client.json('PATCH', `/session/${id}`, { title });
  }

  /** @param {string} id */
  deleteSession(id) {
    return this.client.json('DELETE', `/session/${id}`);
  }

  /** @param {string} id */
  readPath(id) {
    return `/session/${id}/message`;
  }

  /** @param {string} id @param {number} count */
  tailPath(id, count) {
    return `/session/${id}/message?limit=${count}`;
  }

  /** As its web UI asks: newest root sessions. */
  listPath() {
    return '/session?roots=true&limit=50';
  }

  /** @param {any} messages */
  assistantText(messages) {
    return messages
      .filter((/** @type {any} */ message) => message.info.role === 'assistant')
      .flatMap((/** @type {any} */ message) => message.parts.map((/** @type {any} */ part) => part.text ?? ''))
      .join('');
  }

  /** @param {string} id @param {string} text */
  async prompt(id, text) {
    const body = { parts: [{ type: 'text', text }] };
    const reply = await this.client.request('POST', `/session/${id}/prompt_async`, body);
    if (reply.status >= 400) throw new Error(`prompt: ${reply.status} ${reply.body}`);
    return { sentAt: reply.sentAt, acceptedAt: reply.doneAt };
  }

  eventsPath() {
    return '/event';
  }

  /** @param {string} id */
  doneMarker(id) {
    return `"type":"session.idle","properties":{"sessionID":"${id}"`;
  }

  /** @param {string} _event @param {string} data @param {string} id
   * @returns {{type: 'delta' | 'done' | 'other', text: string}} */
  classify(_event, data, id) {
    const { type, properties } = JSON.parse(data);
    if (properties?.sessionID !== id) return { type: 'other', text: '' };
    if (type === 'message.part.delta') return { type: 'delta', text: properties.delta };
    return { type: type === 'session.idle' ? 'done' : 'other', text: '' };
  }

  /** @param {import('./base.mjs').SeedMessage[]} messages */
  async seedSession(messages) {
    return (await this.seedManySessions(1, messages.length))[0];
  }

  /**
   * Writes straight into the server's SQLite database with its own `db`
   * command. The server must have run once (it makes the tables).
   * @param {number} count @param {number} [messagesEach]
   */
  async seedManySessions(count, messagesEach = 2) {
    this.seeded = (this.seeded ?? 0) + 1;
    const tag = `seed${String(this.seeded).padStart(2, '0')}xxxxxxxx`;
    const filler = seedMessages(2)[1].text.slice(2).repeat(2).slice(0, ASSISTANT_CHARACTERS);
    const start = Date.now() - count * 1000 - messagesEach * 10;
    const sessionId = `'ses_' || printf('%012x', s.i) || '${tag}'`;
    const messageId = `'msg_' || printf('%06x%06x', s.i, m.i) || '${tag}'`;
    const created = `${start} + s.i * 1000 + m.i * 10`;
    const sessions = `s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i + 1 < ${count})`;
    const messages = `m(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM m WHERE i + 1 < ${messagesEach})`;
    const text = `substr(m.i || ' ${filler}', 1, CASE m.i % 2 WHEN 0 THEN ${USER_CHARACTERS} ELSE ${ASSISTANT_CHARACTERS} END)`;
    const user = `json_object('role', 'user', 'time', json_object('created', ${created}), 'agent', 'build',
      'model', json('{"providerID":"bench","modelID":"bench-model"}'), 'summary', json('{"diffs":[]}'))`;
    const assistant = `json_object('parentID', 'msg_' || printf('%06x%06x', s.i, m.i - 1) || '${tag}', 'role', 'assistant',
      'mode', 'build', 'agent', 'build', 'path', json('${JSON.stringify({ cwd: this.work, root: '/' })}'), 'cost', 0,
      'tokens', json('{"total":15,"input":10,"output":5,"reasoning":0,"cache":{"write":0,"read":0}}'),
      'modelID', 'bench-model', 'providerID', 'bench',
      'time', json_object('created', ${created}, 'completed', ${created}), 'finish', 'stop')`;
    this.query(`WITH RECURSIVE ${sessions} INSERT INTO session
      (id, project_id, slug, directory, path, title, version, agent, model, time_created, time_updated)
      SELECT ${sessionId}, 'global', 'seed-' || s.i, '${this.work}', '${this.work.slice(1)}', 'Seeded ' || s.i, 'bench', 'build',
      '{"id":"bench-model","providerID":"bench","variant":"default"}', ${start} + s.i * 1000, ${start} + s.i * 1000 FROM s`);
    this.query(`WITH RECURSIVE ${sessions}, ${messages} INSERT INTO message (id, session_id, time_created, time_updated, data)
      SELECT ${messageId}, ${sessionId}, ${created}, ${created},
      CASE m.i % 2 WHEN 0 THEN ${user} ELSE ${assistant} END FROM s, m`);
    this.query(`WITH RECURSIVE ${sessions}, ${messages} INSERT INTO part (id, message_id, session_id, time_created, time_updated, data)
      SELECT 'prt_' || printf('%06x%06x', s.i, m.i) || '${tag}', ${messageId}, ${sessionId}, ${created}, ${created},
      json_object('type', 'text', 'text', ${text}) FROM s, m`);
    return Array.from({ length: count }, (_, index) => `ses_${index.toString(16).padStart(12, '0')}${tag}`);
  }

  /** @param {string} sql */
  query(sql) {
    return execFileSync(this.binary, ['db', sql], { cwd: this.work, env: this.environment(), encoding: 'utf8' });
  }
}
