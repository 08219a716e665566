// @ts-check
import { randomBytes } from 'node:crypto';
import http from 'node:http';
import { now } from './clock.mjs';

/**
 * One WebSocket connection that only stores what arrives and when; frames are parsed afterwards. Same shape as
 * `SseCapture`. Frames: RFC 6455, section 5.2; a server's are not masked, and none here is fragmented.
 */
export class WsCapture {
  /**
   * @param {string} url of the upgrade, `http://…`
   * @param {{doneMarker?: string, onBytes?: (capture: WsCapture) => void, hello?: string, readyMarker?: string}} [options]
   *   hello: a text to be sent at once; readyMarker: what shows that it was answered, and settles `opened`
   */
  constructor(url, { doneMarker, onBytes, hello, readyMarker } = {}) {
    /** @type {{at: number, bytes: Buffer}[]} */
    this.chunks = [];
    this.closed = false;
    this.status = 0;
    this.doneMarker = doneMarker ? Buffer.from(doneMarker) : null;
    this.readyMarker = readyMarker ? Buffer.from(readyMarker) : null;
    this.tail = Buffer.alloc(0);
    /** @type {() => void} */
    let settleDone = () => {};
    this.done = new Promise((resolve) => {
      settleDone = () => resolve(undefined);
    });
    this.settleDone = settleDone;
    this.opened = new Promise((resolve, reject) => {
      const headers = {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': randomBytes(16).toString('base64'),
      };
      this.request = http.get(url, { agent: false, headers });
      this.request.on('error', (error) => {
        reject(error);
        this.finish();
      });
      this.request.on('response', (response) => reject(new Error(`no upgrade: ${response.statusCode}`)));
      this.request.on('upgrade', (_response, socket, head) => {
        this.socket = socket;
        this.status = 200;
        socket.setNoDelay(true);
        /** @param {Buffer} bytes */
        const take = (bytes) => {
          this.chunks.push({ at: now(), bytes });
          const joined = Buffer.concat([this.tail, bytes]);
          if (this.readyMarker && joined.includes(this.readyMarker)) {
            this.readyMarker = null;
            resolve(200);
          }
          if (this.doneMarker && joined.includes(this.doneMarker)) this.settleDone();
          const longest = Math.max(this.doneMarker?.length ?? 1, this.readyMarker?.length ?? 1);
          this.tail = joined.subarray(Math.max(0, joined.length - longest + 1));
          onBytes?.(this);
        };
        if (head.length) take(head);
        socket.on('data', take);
        socket.on('close', () => this.finish());
        socket.on('error', () => this.finish());
        if (hello !== undefined) socket.write(maskedText(hello));
        if (!this.readyMarker) resolve(200);
      });
    });
    this.opened.catch(() => {});
  }

  finish() {
    this.closed = true;
    this.settleDone();
  }

  close() {
    this.socket?.destroy();
    this.request?.destroy();
    this.finish();
  }

  /** Texts of the frames. @returns {Generator<{event: string, data: string, receivedAt: number}>} */
  *frames() {
    /** @type {Buffer} */
    let pending = Buffer.alloc(0);
    for (const { at, bytes } of this.chunks) {
      pending = pending.length ? Buffer.concat([pending, bytes]) : bytes;
      let from = 0;
      for (;;) {
        const frame = frameAt(pending, from);
        if (!frame) break;
        from = frame.end;
        if (frame.opcode === 1)
          yield { event: '', data: pending.toString('utf8', frame.start, frame.end), receivedAt: at };
      }
      pending = pending.subarray(from);
    }
  }

  get bytes() {
    return this.chunks.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }
}

/** @param {Buffer} bytes @param {number} at */
function frameAt(bytes, at) {
  if (bytes.length < at + 2) return null;
  const short = bytes[at + 1] & 0x7f;
  const head = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < at + head) return null;
  const length =
    short === 126 ? bytes.readUInt16BE(at + 2) : short === 127 ? Number(bytes.readBigUInt64BE(at + 2)) : short;
  const start = at + head;
  return bytes.length < start + length ? null : { opcode: bytes[at] & 0x0f, start, end: start + length };
}

/** A text frame as a client sends it. @param {string} text shorter than 65,536 bytes */
function maskedText(text) {
  const payload = Buffer.from(text);
  const mask = randomBytes(4);
  const head =
    payload.length < 126
      ? Buffer.from([0x81, 0x80 | payload.length])
      : Buffer.from([0x81, 0x80 | 126, payload.length >> 8, payload.length & 0xff]);
  const masked = Buffer.from(payload.map((byte, index) => byte ^ mask[index % 4]));
  return Buffer.concat([head, mask, masked]);
}
