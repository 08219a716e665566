// @ts-check
/**
 * A server with a plain REST and SSE API. `generic` points it at any server by
 * environment variables or a JSON file; `floor` uses it as it is.
 */
import { Target } from './base.mjs';

export class RestTarget extends Target {
  /** `{id}` is replaced by the session's id, `{limit}` by a count. */
  paths = {
    create: '/api/sessions',
    list: '/api/sessions?limit=50',
    session: '/api/sessions/{id}',
    read: '/api/sessions/{id}/messages?limit=100000',
    tail: '/api/sessions/{id}/messages?limit={limit}',
    prompts: '/api/sessions/{id}/prompts',
    events: '/api/sessions/{id}/events',
    import: '/api/sessions/import',
    /** Events of an interrupted turn after a restart; '' when there is no such stream. */
    replay: '',
  };
  /** SSE event names, and the field of their JSON data that has the text. */
  eventNames = { delta: 'message.delta', done: 'message.complete', textField: 'text' };

  /** @param {string} template @param {string} [id] @param {number} [limit] */
  fill(template, id = '', limit = 0) {
    return template.replace('{id}', encodeURIComponent(id)).replace('{limit}', String(limit));
  }

  async createSession() {
    return idOf(await this.client.json('POST', this.paths.create, {}));
  }

  /** @param {string} id @param {string} title */
  renameSession(id, title) {
    return this.client.json('PATCH', this.fill(this.paths.session, id), { title });
  }

  /** @param {string} id */
  deleteSession(id) {
    return this.client.json('DELETE', this.fill(this.paths.session, id));
  }

  /** @param {string} id */
  readPath(id) {
    return this.fill(this.paths.read, id);
  }

  /** @param {string} id @param {number} count @returns {string | null} */
  tailPath(id, count) {
    return this.fill(this.paths.tail, id, count);
  }

  listPath() {
    return this.paths.list;
  }

  /** @param {any} body */
  assistantText(body) {
    const messages = Array.isArray(body) ? body : (body.messages ?? body.items ?? body.data ?? []);
    return messages
      .filter((/** @type {any} */ m) => m.role === 'assistant')
      .map(textOf)
      .join('\n');
  }

  /** @param {string} id @param {string} text */
  async prompt(id, text) {
    const reply = await this.client.request('POST', this.fill(this.paths.prompts, id), { text });
    if (reply.status >= 400) throw new Error(`prompt: ${reply.status} ${reply.body}`);
    return { sentAt: reply.sentAt, acceptedAt: reply.doneAt };
  }

  /** @param {string} id */
  eventsPath(id) {
    return this.fill(this.paths.events, id);
  }

  /** @param {string} id @returns {string | null} */
  replayPath(id) {
    return this.paths.replay ? this.fill(this.paths.replay, id) : null;
  }

  doneMarker() {
    return `event: ${this.eventNames.done}`;
  }

  /** @param {string} event @param {string} data @returns {{type: 'delta' | 'done' | 'other', text: string}} */
  classify(event, data) {
    if (event === this.eventNames.delta) {
      return { type: 'delta', text: String(JSON.parse(data)[this.eventNames.textField] ?? '') };
    }
    return { type: event === this.eventNames.done ? 'done' : 'other', text: '' };
  }

  /** @param {import('./base.mjs').SeedMessage[]} messages */
  async seedSession(messages) {
    return idOf(await this.client.json('POST', this.paths.import, { title: 'Seeded', messages }));
  }
}

/** @param {any} body */
function idOf(body) {
  const session = body.session ?? body;
  return String(session.id ?? session.session_id ?? session.sessionId);
}

/** @param {any} message */
function textOf(message) {
  if (typeof message.text === 'string') return message.text;
  if (typeof message.content === 'string') return message.content;
  const parts = message.parts ?? message.content ?? [];
  return parts.map((/** @type {any} */ part) => part.text ?? '').join('');
}
