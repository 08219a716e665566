// @ts-check
/**
 * A fake OpenAI-compatible provider for benchmarks. It has no model: the last
 * user message says what to stream, for example
 *
 *   bench:id=a1,chunks=2000,size=16,rate=0,delay=200
 *
 * rate is in chunks per second, 0 meaning as fast as the socket drains; delay
 * is the wait before the first chunk in ms. A request without such a script, or
 * for a model whose name has "small" or "title" in it, gets a short answer.
 *
 * Also serves GET /_bench/requests?id=a1: when the request for that script was
 * received, when its first and last chunks were sent, and the text's SHA-256.
 *
 * Run alone: node provider.mjs --port 9900   (prints its port as JSON)
 */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { pathToFileURL } from 'node:url';
import { now, sleep } from './lib/clock.mjs';
import { makeChunk } from './lib/stamp.mjs';

/**
 * @typedef {{id: string, chunks: number, size: number, rate: number, delay: number}} Script
 * @typedef {{id: string, receivedAt: number, firstSentAt: number, lastSentAt: number,
 *            chunks: number, characters: number, sha256: string, aborted: boolean}} RequestRecord
 */

const SCRIPT = /bench:([a-z0-9=,_.-]+)/i;
const MODELS = ['bench-model', 'bench-small'];

/** @param {string} text @returns {Script | null} */
export function parseScript(text) {
  const match = SCRIPT.exec(text);
  if (!match) return null;
  const fields = Object.fromEntries(match[1].split(',').map((pair) => pair.split('=')));
  return {
    id: fields.id ?? '',
    chunks: Number(fields.chunks ?? 20),
    size: Number(fields.size ?? 16),
    rate: Number(fields.rate ?? 0),
    delay: Number(fields.delay ?? 0),
  };
}

/** @param {any} body */
function lastUserText(body) {
  const messages = Array.isArray(body.messages) ? body.messages : [];
  const last = messages.filter((/** @type {any} */ m) => m.role === 'user').pop();
  if (!last) return '';
  if (typeof last.content === 'string') return last.content;
  return (last.content ?? []).map((/** @type {any} */ part) => part.text ?? '').join('\n');
}

/** @param {http.IncomingMessage} request */
async function readJson(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return parts.length ? JSON.parse(Buffer.concat(parts).toString('utf8')) : {};
}

/** @param {http.ServerResponse} response @param {unknown} value @param {number} [status] */
function sendJson(response, value, status = 200) {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
}

/** @param {string} model @param {object} delta @param {string | null} finish */
const frame = (model, delta, finish, extra = {}) =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-bench',
    object: 'chat.completion.chunk',
    created: 1700000000,
    model,
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...extra,
  })}\n\n`;

/** @param {number} tokens */
const usage = (tokens) => ({ usage: { prompt_tokens: 10, completion_tokens: tokens, total_tokens: tokens + 10 } });

/**
 * @param {http.ServerResponse} response @param {string} model @param {Script} script
 * @param {RequestRecord} record
 */
async function stream(response, model, script, record) {
  const hash = createHash('sha256');
  response.socket?.setNoDelay(true);
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.write(frame(model, { role: 'assistant', content: '' }, null));
  let closed = false;
  let resume = () => {};
  response.on('drain', () => resume());
  response.on('close', () => {
    closed = true;
    resume();
  });
  if (script.delay) await sleep(script.delay);
  const startedAt = now();
  for (let index = 0; index < script.chunks && !closed; index += 1) {
    if (script.rate) {
      const wait = startedAt + (index * 1000) / script.rate - now();
      if (wait > 0.5) await sleep(wait);
    }
    const sentAt = now();
    const text = makeChunk(index, script.size, sentAt);
    if (index === 0) record.firstSentAt = sentAt;
    record.lastSentAt = sentAt;
    record.chunks += 1;
    record.characters += text.length;
    hash.update(text);
    const room = response.write(frame(model, { content: text }, null));
    if (!room && !closed)
      await new Promise((resolve) => {
        resume = () => resolve(undefined);
      });
  }
  record.sha256 = hash.digest('hex');
  record.aborted = closed;
  if (closed) return;
  response.write(frame(model, {}, 'stop', usage(script.chunks)));
  response.end('data: [DONE]\n\n');
}

/** @param {http.ServerResponse} response @param {string} model @param {boolean} streaming */
function answerShortly(response, model, streaming) {
  const content = 'Bench title';
  if (!streaming) {
    const message = { role: 'assistant', content };
    sendJson(response, {
      id: 'chatcmpl-bench',
      object: 'chat.completion',
      created: 1700000000,
      model,
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      ...usage(2),
    });
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(frame(model, { role: 'assistant', content }, null));
  response.write(frame(model, {}, 'stop', usage(2)));
  response.end('data: [DONE]\n\n');
}

/** @param {number} port 0 for any free port */
export async function startProvider(port = 0) {
  /** @type {Map<string, RequestRecord>} */
  const records = new Map();
  const server = http.createServer((request, response) => {
    handle(request, response).catch((error) => {
      if (!response.headersSent) sendJson(response, { error: String(error) }, 500);
      else response.destroy();
    });
  });

  /** @param {http.IncomingMessage} request @param {http.ServerResponse} response */
  async function handle(request, response) {
    const receivedAt = now();
    const url = new URL(request.url ?? '/', 'http://127.0.0.1');
    if (url.pathname === '/_bench/requests') {
      const id = url.searchParams.get('id');
      sendJson(response, id ? (records.get(id) ?? null) : [...records.values()]);
    } else if (url.pathname === '/v1/models') {
      sendJson(response, { object: 'list', data: MODELS.map((id) => ({ id, object: 'model', owned_by: 'bench' })) });
    } else if (url.pathname === '/v1/chat/completions' && request.method === 'POST') {
      const body = await readJson(request);
      const model = String(body.model ?? 'bench-model');
      // A request for a few tokens is for a title, whatever it quotes of the conversation.
      const brief = Number(body.max_tokens ?? body.max_completion_tokens ?? Infinity) <= 500;
      const script = brief || /small|title/.test(model) ? null : parseScript(lastUserText(body));
      if (!script || !body.stream) {
        answerShortly(response, model, Boolean(body.stream));
        return;
      }
      const record = {
        id: script.id,
        receivedAt,
        firstSentAt: 0,
        lastSentAt: 0,
        chunks: 0,
        characters: 0,
        sha256: '',
        aborted: false,
      };
      records.set(script.id, record);
      await stream(response, model, script, record);
    } else if (url.pathname === '/health') {
      sendJson(response, { status: 'ok' });
    } else {
      sendJson(response, { error: 'not found' }, 404);
    }
  }

  server.keepAliveTimeout = 60_000;
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { server, port: address.port };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const at = process.argv.indexOf('--port');
  const { port } = await startProvider(at > 0 ? Number(process.argv[at + 1]) : 0);
  process.stdout.write(`${JSON.stringify({ port })}\n`);
  process.on('disconnect', () => process.exit(0));
}
