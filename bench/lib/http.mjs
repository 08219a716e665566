// @ts-check
import http from 'node:http';
import { now } from './clock.mjs';

/**
 * @typedef {{status: number, body: Buffer, sentAt: number, doneAt: number, ms: number}} Reply
 */

/** One keep-alive client for a server on this machine. */
export class Client {
  /** @param {string} baseUrl */
  constructor(baseUrl) {
    this.url = new URL(baseUrl);
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  }

  /**
   * Latency is from just before the request is written to its last body byte.
   * @param {string} method @param {string} path @param {unknown} [body]
   * @param {{timeoutMs?: number}} [options]
   * @returns {Promise<Reply>}
   */
  request(method, path, body, { timeoutMs = 60_000 } = {}) {
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    /** @type {http.OutgoingHttpHeaders} */
    const headers = { accept: 'application/json' };
    if (payload) {
      headers['content-type'] = 'application/json';
      headers['content-length'] = payload.length;
    }
    return new Promise((resolve, reject) => {
      const sentAt = now();
      const request = http.request(
        { host: this.url.hostname, port: this.url.port, method, path, headers, agent: this.agent },
        (response) => {
          /** @type {Buffer[]} */
          const parts = [];
          response.on('data', (part) => parts.push(part));
          response.on('error', reject);
          response.on('end', () => {
            const doneAt = now();
            resolve({
              status: response.statusCode ?? 0,
              body: Buffer.concat(parts),
              sentAt,
              doneAt,
              ms: doneAt - sentAt,
            });
          });
        },
      );
      request.setTimeout(timeoutMs, () => request.destroy(new Error(`timeout: ${method} ${path}`)));
      request.on('error', reject);
      request.end(payload);
    });
  }

  /**
   * As request(), but fails on an error status and parses the body.
   * @param {string} method @param {string} path @param {unknown} [body]
   * @returns {Promise<any>}
   */
  async json(method, path, body) {
    const reply = await this.request(method, path, body);
    if (reply.status >= 400) {
      throw new Error(`${method} ${path}: ${reply.status} ${reply.body.toString('utf8').slice(0, 300)}`);
    }
    return reply.body.length ? JSON.parse(reply.body.toString('utf8')) : null;
  }

  close() {
    this.agent.destroy();
  }
}
