// @ts-check
/**
 * The least that a Node server can do for the same job: it relays the
 * provider's stream to every subscriber and answers reads from memory. No
 * storage, no validation, no routing table. Its figures are the physical limit
 * that other figures are compared with.
 *
 * FLOOR_BATCH=1 joins the events of one provider read in a single write.
 */

import { createHash, randomUUID } from 'node:crypto';
import http from 'node:http';

const provider = new URL(process.env.PROVIDER_URL ?? 'http://127.0.0.1:9900');
const batch = process.env.FLOOR_BATCH === '1';
const agent = new http.Agent({ keepAlive: true, maxSockets: 256 });

/** @typedef {{id: string, title: string, updatedAt: number, body: Buffer, tail: Buffer,
 *             messages: {role: string, text: string}[], subscribers: Set<http.ServerResponse>,
 *             sockets: Set<import('node:stream').Duplex>}} Session */
/** @type {Map<string, Session>} */
const sessions = new Map();
/** @type {Buffer | null} */
let listBody = null;

/** @param {string} title @param {Session['messages']} messages */
function addSession(title, messages) {
  const session = {
    id: randomUUID(),
    title,
    updatedAt: Date.now(),
    messages,
    body: Buffer.alloc(0),
    tail: Buffer.alloc(0),
    subscribers: new Set(),
    sockets: new Set(),
  };
  serialise(session);
  sessions.set(session.id, session);
  listBody = null;
  return session;
}

/** @param {Session} session */
function serialise(session) {
  session.body = Buffer.from(JSON.stringify({ messages: session.messages }));
  session.tail = Buffer.from(JSON.stringify({ messages: session.messages.slice(-50) }));
}

function list() {
  const first = [...sessions.values()].slice(-50).reverse();
  listBody ??= Buffer.from(
    JSON.stringify({ items: first.map(({ id, title, updatedAt }) => ({ id, title, updatedAt })) }),
  );
  return listBody;
}

/** @param {http.ServerResponse} response @param {Buffer} body @param {number} [status] */
function send(response, body, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
}

/** @param {http.ServerResponse} response @param {unknown} value @param {number} [status] */
const sendJson = (response, value, status) => send(response, Buffer.from(JSON.stringify(value)), status);

/** @param {Session} session @param {Buffer} bytes */
function broadcast(session, bytes) {
  for (const subscriber of session.subscribers) subscriber.write(bytes);
}

/** @param {string} event @param {object} data */
const encode = (event, data) => Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);

/** An unmasked text frame (RFC 6455, section 5.2). @param {string} type @param {object} data */
function wsFrame(type, data) {
  const payload = Buffer.from(JSON.stringify({ type, ...data }));
  const head =
    payload.length < 126
      ? Buffer.from([0x81, payload.length])
      : Buffer.from([0x81, 126, payload.length >> 8, payload.length & 0xff]);
  return Buffer.concat([head, payload]);
}

/** @param {Session} session @param {string} type @param {object} data */
function toSockets(session, type, data) {
  if (session.sockets.size === 0) return;
  const frame = wsFrame(type, data);
  for (const socket of session.sockets) socket.write(frame);
}

/** @param {Session} session @param {string} text */
function runTurn(session, text) {
  session.messages.push({ role: 'user', text });
  const body = JSON.stringify({ model: 'bench-model', stream: true, messages: [{ role: 'user', content: text }] });
  const request = http.request(
    {
      host: provider.hostname,
      port: provider.port,
      path: '/v1/chat/completions',
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    },
    (response) => {
      let pending = '';
      let answer = '';
      response.setEncoding('utf8');
      response.on('data', (part) => {
        const lines = (pending + part).split('\n');
        pending = lines.pop() ?? '';
        const events = [];
        for (const line of lines) {
          if (!line.startsWith('data: {')) continue;
          const delta = JSON.parse(line.slice(6)).choices[0]?.delta?.content;
          if (!delta) continue;
          answer += delta;
          events.push(encode('message.delta', { text: delta }));
          toSockets(session, 'message.delta', { text: delta });
        }
        if (batch && events.length) broadcast(session, Buffer.concat(events));
        else for (const event of events) broadcast(session, event);
      });
      response.on('end', () => {
        session.messages.push({ role: 'assistant', text: answer });
        serialise(session);
        broadcast(session, encode('message.complete', {}));
        toSockets(session, 'message.complete', {});
      });
    },
  );
  request.on('error', () => broadcast(session, encode('message.complete', { error: true })));
  request.end(body);
}

/** @param {http.IncomingMessage} request @param {(body: any) => void} use */
function withJson(request, use) {
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (part) => {
    text += part;
  });
  request.on('end', () => use(text ? JSON.parse(text) : {}));
}

const server = http.createServer((request, response) => {
  const [path, query = ''] = (request.url ?? '/').split('?');
  const [, , , id = '', action = ''] = path.split('/');
  const { method } = request;
  if (path === '/health') return sendJson(response, { status: 'ok' });
  if (path === '/api/sessions' && method === 'GET') return send(response, list());
  if (path === '/api/sessions' && method === 'POST')
    return sendJson(response, { id: addSession('New session', []).id }, 201);
  if (id === 'import') {
    return withJson(request, ({ title, messages, count = 1 }) => {
      const added = Array.from({ length: count }, () => addSession(title, [...messages]).id);
      sendJson(response, { id: added[0], ids: added }, 201);
    });
  }
  const session = sessions.get(id);
  if (!session) return sendJson(response, { error: 'not found' }, 404);
  if (action === 'events') {
    request.socket.setNoDelay(true);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    response.write(': open\n\n');
    session.subscribers.add(response);
    response.on('close', () => session.subscribers.delete(response));
    return undefined;
  }
  if (action === 'prompts') {
    return withJson(request, ({ text }) => {
      runTurn(session, text);
      sendJson(response, { accepted: true }, 202);
    });
  }
  if (action === 'messages') return send(response, query === 'limit=50' ? session.tail : session.body);
  if (method === 'PATCH') {
    return withJson(request, ({ title }) => {
      session.title = title;
      listBody = null;
      sendJson(response, { id, title });
    });
  }
  if (method === 'DELETE') {
    sessions.delete(id);
    listBody = null;
    return sendJson(response, {});
  }
  return sendJson(response, { id, title: session.title });
});
server.on('upgrade', (request, socket) => {
  const session = sessions.get((request.url ?? '').split('/')[2] ?? '');
  if (!session) {
    socket.destroy();
    return;
  }
  const accept = createHash('sha1')
    .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
  /** @type {import('node:net').Socket} */ (socket).setNoDelay(true);
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  session.sockets.add(socket);
  socket.on('close', () => session.sockets.delete(socket));
  socket.on('error', () => socket.destroy());
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1');
