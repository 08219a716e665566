// @ts-check
import http from 'node:http';
import { now } from './clock.mjs';

/** @typedef {{event: string, data: string, receivedAt: number}} Frame */

/**
 * One SSE connection that only stores what arrives and when. Frames are parsed
 * afterwards, so that the client does not slow down what it measures.
 */
export class SseCapture {
  /**
   * @param {string} url
   * @param {{doneMarker?: string, onBytes?: (capture: SseCapture) => void}} [options]
   *   doneMarker: bytes that show the turn's end; they settle `done`
   */
  constructor(url, { doneMarker, onBytes } = {}) {
    /** @type {{at: number, bytes: Buffer}[]} */
    this.chunks = [];
    this.marker = doneMarker ? Buffer.from(doneMarker) : null;
    this.tail = Buffer.alloc(0);
    this.closed = false;
    /** @type {() => void} */
    let settleDone = () => {};
    /** Settles when the marker was seen or the connection closed. */
    this.done = new Promise((resolve) => {
      settleDone = () => resolve(undefined);
    });
    this.settleDone = settleDone;
    this.opened = new Promise((resolve, reject) => {
      this.request = http.get(url, { agent: false, headers: { accept: 'text/event-stream' } }, (response) => {
        this.status = response.statusCode ?? 0;
        resolve(this.status);
        response.on('data', (bytes) => {
          this.chunks.push({ at: now(), bytes });
          this.lookForMarker(bytes);
          onBytes?.(this);
        });
        response.on('close', () => this.finish());
        response.on('error', () => this.finish());
      });
      this.request.on('error', (error) => {
        reject(error);
        this.finish();
      });
    });
    this.opened.catch(() => {});
  }

  /** @param {Buffer} bytes */
  lookForMarker(bytes) {
    if (!this.marker) return;
    const joined = Buffer.concat([this.tail, bytes]);
    if (joined.includes(this.marker)) this.settleDone();
    this.tail = joined.subarray(Math.max(0, joined.length - this.marker.length + 1));
  }

  finish() {
    this.closed = true;
    this.settleDone();
  }

  close() {
    this.request?.destroy();
    this.finish();
  }

  /** @returns {Generator<Frame>} */
  *frames() {
    /** @type {Buffer} */
    let pending = Buffer.alloc(0);
    for (const { at, bytes } of this.chunks) {
      pending = pending.length ? Buffer.concat([pending, bytes]) : bytes;
      let from = 0;
      for (let end = pending.indexOf('\n\n', from); end >= 0; end = pending.indexOf('\n\n', from)) {
        const frame = parseFrame(pending.toString('utf8', from, end));
        from = end + 2;
        if (frame) yield { ...frame, receivedAt: at };
      }
      pending = pending.subarray(from);
    }
  }

  get bytes() {
    return this.chunks.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }
}

/** @param {string} text */
function parseFrame(text) {
  let event = 'message';
  const data = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('event:')) event = line.slice(6).trim();
    else if (line.startsWith('data:')) data.push(line.startsWith('data: ') ? line.slice(6) : line.slice(5));
  }
  return data.length ? { event, data: data.join('\n') } : null;
}
