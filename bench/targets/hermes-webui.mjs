// @ts-check
/**
 * Hermes WebUI (Python). HERMES_WEBUI_DIR is its checkout. Chat goes through
 * its gateway backend, which speaks /v1/chat/completions to the fake provider,
 * so that no Hermes agent is needed.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { seedMessages, Target } from './base.mjs';

export class HermesWebuiTarget extends Target {
  name = 'hermes-webui';
  subscribeWhen = 'after'; // POST /api/chat/start names the stream to read
  source = process.env.HERMES_WEBUI_DIR ?? 'hermes-webui';
  notes = ['gateway chat backend (legacy completions transport), no Hermes agent'];

  /** @param {import('./base.mjs').TargetOptions} options */
  constructor(options) {
    super(options);
    /** @type {Map<string, string>} */
    this.streamIds = new Map();
    this.work = path.join(this.home, 'workspace');
    mkdirSync(this.work, { recursive: true });
  }

  startCommand() {
    return {
      command: process.env.PYTHON ?? 'python3',
      args: ['server.py'],
      cwd: this.source,
      env: {
        PATH: process.env.PATH,
        HOME: this.home,
        HERMES_HOME: path.join(this.home, '.hermes'),
        HERMES_WEBUI_STATE_DIR: path.join(this.home, 'state'),
        HERMES_WEBUI_DEFAULT_WORKSPACE: this.work,
        HERMES_WEBUI_HOST: '127.0.0.1',
        HERMES_WEBUI_PORT: String(this.port),
        HERMES_WEBUI_CHAT_BACKEND: 'gateway',
        HERMES_WEBUI_GATEWAY_BASE_URL: this.providerUrl,
        HERMES_WEBUI_GATEWAY_API_KEY: 'bench',
      },
    };
  }

  async createSession() {
    return (await this.client.json('POST', '/api/session/new', {})).session.session_id;
  }

  /** @param {string} id @param {string} title */
  renameSession(id, title) {
    return this.client.json('POST', '/api/session/rename', { session_id: id, title });
  }

  /** @param {string} id */
  deleteSession(id) {
    return this.client.json('POST', '/api/session/delete', { session_id: id });
  }

  /** @param {string} id */
  readPath(id) {
    return `/api/session?session_id=${id}&messages=1&resolve_model=0`;
  }

  /** @param {string} id @param {number} count */
  tailPath(id, count) {
    return `${this.readPath(id)}&msg_limit=${count}`;
  }

  /** As its UI asks; there is no paging of ordinary sessions. */
  listPath() {
    return '/api/sessions?sidebar_source=webui&exclude_hidden=1';
  }

  /** @param {any} body */
  assistantText(body) {
    return body.session.messages
      .filter((/** @type {any} */ message) => message.role === 'assistant')
      .map((/** @type {any} */ message) => message.content)
      .join('\n');
  }

  /** @param {string} id @param {string} text */
  async prompt(id, text) {
    const body = { session_id: id, message: text, model: 'bench-model' };
    const reply = await this.client.request('POST', '/api/chat/start', body);
    if (reply.status >= 400) throw new Error(`prompt: ${reply.status} ${reply.body}`);
    this.streamIds.set(id, JSON.parse(reply.body.toString('utf8')).stream_id);
    return { sentAt: reply.sentAt, acceptedAt: reply.doneAt };
  }

  /** @param {string} id */
  eventsPath(id) {
    return `/api/chat/stream?stream_id=${this.streamIds.get(id)}`;
  }

  /** @param {string} id */
  idleEventsPath(id) {
    return `/api/session/stream?session_id=${id}`;
  }

  /** Its run journal. @param {string} id */
  replayPath(id) {
    return `${this.eventsPath(id)}&after_seq=0`;
  }

  doneMarker() {
    return 'event: stream_end';
  }

  /** @param {string} event @param {string} data @returns {{type: 'delta' | 'done' | 'other', text: string}} */
  classify(event, data) {
    if (event === 'token') return { type: 'delta', text: JSON.parse(data).text };
    return { type: event === 'stream_end' ? 'done' : 'other', text: '' };
  }

  /** @param {import('./base.mjs').SeedMessage[]} messages */
  async seedSession(messages) {
    return this.writeSidecar(messages, Date.now() / 1000);
  }

  /** @param {number} count @param {number} [messagesEach] */
  async seedManySessions(count, messagesEach = 2) {
    const messages = seedMessages(messagesEach);
    const start = Date.now() / 1000 - count;
    return Array.from({ length: count }, (_, index) => this.writeSidecar(messages, start + index));
  }

  /** Its on-disk format: one JSON file a session; the index is rebuilt at start.
   * @param {import('./base.mjs').SeedMessage[]} messages @param {number} time seconds */
  writeSidecar(messages, time) {
    const id = randomBytes(6).toString('hex');
    const rows = messages.map(({ role, text }, index) => ({
      role,
      content: text,
      timestamp: time - (messages.length - index) * 0.01,
      id: index + 1,
    }));
    const folder = path.join(this.home, 'state', 'sessions');
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      path.join(folder, `${id}.json`),
      JSON.stringify({
        session_id: id,
        title: `Seeded ${id}`,
        workspace: this.work,
        created_workspace: this.work,
        model: 'bench-model',
        model_provider: null,
        created_at: time - messages.length * 0.01,
        updated_at: time,
        pinned: false,
        archived: false,
        project_id: null,
        profile: 'default',
        message_count: rows.length,
        messages: rows,
        tool_calls: [],
        context_messages: rows,
      }),
    );
    return id;
  }
}
