/**
 * The one stream connection of the page: opens it, parses it, notices when it is dead, and comes back with patience.
 * Owns its connection and its timers; knows nothing of what the events mean.
 */
import { refusalOf } from './api.js';

/** How long a page may be out of sight before its connection is given up: a browser has few for each server. */
const REST_AFTER_MS = 30_000;
/** The server says something every 10 seconds: after this long without a word the connection is dead. */
const SILENCE_MS = 25_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

/**
 * Reads frames of server-sent events from text that comes in pieces of any size.
 * @param onFrame gets `{id, type, data}` for each complete frame that has data; id is null when it has none
 * @returns a function that takes the next piece
 */
export function createFrameReader(onFrame) {
  let rest = '';
  let frame = { id: null, type: 'message', data: [] };
  const line = (text) => {
    if (text === '') {
      if (frame.data.length) onFrame({ ...frame, data: frame.data.join('\n') });
      frame = { id: null, type: 'message', data: [] };
      return;
    }
    const colon = text.indexOf(':');
    if (colon === 0) return;
    const name = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? '' : text.slice(colon + 1).replace(/^ /, '');
    if (name === 'id') frame.id = value;
    else if (name === 'event') frame.type = value;
    else if (name === 'data') frame.data.push(value);
  };
  return (text) => {
    rest += text;
    // A CR at the end may be the first half of a CRLF.
    const usable = rest.endsWith('\r') ? rest.length - 1 : rest.length;
    const lines = rest.slice(0, usable).split(/\r\n|\n|\r/);
    rest = lines.pop() + rest.slice(usable);
    for (const one of lines) line(one);
  };
}

/**
 * How long to wait before the next try, in milliseconds.
 * @param failures tries that failed in a row
 * @param random a number from 0 to 1, so that many pages do not come back at the same moment
 */
export const waitBefore = (failures, random) =>
  Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(failures, 10)) * (0.75 + random / 4);

/**
 * @param address gives the address to connect to, with the cursor as it is now
 * @param onFrame each frame
 * @param onState `{kind: 'connecting' | 'live' | 'reconnecting' | 'offline' | 'resting', at?, code?}`; `at` is when the
 *   next try is due (`Date.now()`), `code` why the server refused
 * @param listensHidden whether the connection is kept while the page is out of sight
 * @param onUnauthorized the server wants a credential; the stream has stopped
 */
export function createStream({ address, onFrame, onState, onUnauthorized, listensHidden = () => true }) {
  /** Changes with each connection: what an older one still says is not heard. */
  let current = 0;
  let controller = null;
  let failures = 0;
  let retryTimer = null;
  let silenceTimer = null;
  let restTimer = null;
  let lastWord = 0;
  let stopped = true;

  const drop = () => {
    current += 1;
    controller?.abort();
    controller = null;
    clearTimeout(retryTimer);
    clearTimeout(silenceTimer);
    retryTimer = null;
  };

  const isHidden = () => document.visibilityState === 'hidden';

  /** Out of sight nobody reads along; everything is there again when the page is. */
  const rest = () => {
    if (stopped || !isHidden() || listensHidden()) return;
    drop();
    onState({ kind: 'resting' });
  };

  const failed = (connection, { atLeastMs = 0, code = '' } = {}) => {
    if (connection !== current) return;
    drop();
    const wait = Math.max(atLeastMs, waitBefore(failures, Math.random()));
    failures += 1;
    const kind = navigator.onLine === false ? 'offline' : 'reconnecting';
    onState({ kind, at: Date.now() + wait, code });
    retryTimer = setTimeout(connect, wait);
  };

  const heard = (connection) => {
    lastWord = Date.now();
    clearTimeout(silenceTimer);
    silenceTimer = setTimeout(() => failed(connection), SILENCE_MS);
  };

  async function connect() {
    drop();
    const connection = current;
    controller = new AbortController();
    const { signal } = controller;
    heard(connection);
    if (failures === 0) onState({ kind: 'connecting' });
    try {
      const response = await fetch(address(), {
        headers: { accept: 'text/event-stream' },
        cache: 'no-store',
        credentials: 'same-origin',
        signal,
      });
      if (connection !== current) return;
      if (!response.ok) {
        const refusal = await refusalOf(response);
        if (connection !== current) return;
        if (refusal.status === 401) {
          stop();
          onUnauthorized();
          return;
        }
        failed(connection, { atLeastMs: (refusal.retryAfter ?? 0) * 1000, code: refusal.code });
        return;
      }
      await read(response.body, connection);
      failed(connection);
    } catch {
      // The network failed or the connection was dropped; `failed` knows which.
      failed(connection);
    }
  }

  async function read(body, connection) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let isLive = false;
    const before = failures;
    const take = createFrameReader((frame) => {
      if (connection !== current) return;
      try {
        onFrame(frame);
      } catch (error) {
        // A bug of the page, told as one; the connection is made anew, as for any event that got lost. It may be hit
        // again each time, so this connection does not count as one that went well.
        failures = before;
        reportError(error);
        throw error;
      }
    });
    for (;;) {
      const { done, value } = await reader.read();
      if (done || connection !== current) return;
      heard(connection);
      if (!isLive) {
        isLive = true;
        failures = 0;
        onState({ kind: 'live' });
      }
      take(decoder.decode(value, { stream: true }));
    }
  }

  function stop() {
    stopped = true;
    drop();
  }

  const retryNow = () => {
    if (!stopped && retryTimer !== null) connect();
  };
  // A machine that slept has timers that are late and a connection that only looks alive.
  const woke = () => {
    clearTimeout(restTimer);
    if (stopped) return;
    if (isHidden()) restTimer = setTimeout(rest, REST_AFTER_MS);
    else if (!controller || Date.now() - lastWord > SILENCE_MS) connect();
    else retryNow();
  };
  // Of another network the old connection may hear nothing for long, and of none as well: a new one knows at once. A
  // server on this very machine is there without any.
  const networkChanged = () => {
    if (!stopped && !isHidden()) connect();
  };
  window.addEventListener('online', networkChanged);
  window.addEventListener('offline', networkChanged);
  document.addEventListener('visibilitychange', woke);
  window.addEventListener('pageshow', woke);

  return {
    /** Opens the connection, or opens it anew: after another session was opened, or events were missing. */
    restart() {
      stopped = false;
      failures = 0;
      void connect();
    },
    retryNow,
    /** Goes on although the page is out of sight, where `listensHidden` says so now. */
    wake: () => !stopped && !controller && connect(),
    stop,
  };
}
