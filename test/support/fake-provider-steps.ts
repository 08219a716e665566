/**
 * The steps of a scripted answer and how they are played onto a response: every good and bad thing that a provider
 * does on the wire.
 */
import type { ServerResponse } from 'node:http';
import type { Dialect } from './fake-provider-dialects.ts';

/** A point where an answer waits until the test lets it go on. */
export interface Hold {
  /** Resolves when the answer has come to this point. */
  readonly reached: Promise<void>;
  release(): void;
}

export interface ScriptedCall {
  id?: string;
  name: string;
  /** A value becomes JSON; text is sent as it is, broken or not. */
  args?: unknown;
}

export type Step =
  /** One chunk of text for each item. */
  | { text: string | string[] }
  | { reasoning: string | string[] }
  /** The arguments come in `pieces` (default 3) chunks. */
  | { tool_calls: ScriptedCall[]; pieces?: number }
  /** `"tool_calls": []` in a chunk. */
  | { empty_tool_calls: true }
  | { usage: Record<string, unknown> }
  /** The finish reason; without this step it is `stop` or `tool_calls`. */
  | { finish: string }
  /** Any JSON as a frame. */
  | { frame: unknown }
  /** Bytes as they are. */
  | { raw: string | Uint8Array }
  /** `{"error": …}` in the stream. */
  | { error: unknown }
  /** A frame that stops in the middle of its JSON. */
  | { broken_frame: true }
  /** Text whose first character of several bytes is cut between two packets. */
  | { split_utf8: string }
  /** A chunk with the JSON escape of half a surrogate pair. */
  | { lone_surrogate: true }
  /** That many numbered chunks in a single write. */
  | { burst: number }
  /** From here on each byte is a packet of its own. */
  | { byte_by_byte: true }
  | { hold: Hold }
  /** Milliseconds; for use from other processes, tests take `hold`. */
  | { delay: number }
  /** The whole answer is a status with a JSON body (or text). */
  | { status: number; body?: unknown; headers?: Record<string, string> }
  /** The whole answer is a page with status 200. */
  | { html: string }
  /** The connection is destroyed: in the middle of an HTTP chunk, or before any header. */
  | { cut: 'mid-chunk' | 'before-headers' }
  /** Nothing more, and no end. */
  | { hang: true }
  /** The stream ends here, with nothing added; `[DONE]` alone if `done`. */
  | { end: 'without-finish' | 'done-only' };

/** Makes a hold. */
export function createHold(): Hold & { passed: Promise<void>; reach(): void } {
  let reach = (): void => {};
  let release = (): void => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const passed = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { reached, passed, reach: () => reach(), release: () => release() };
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** What is known of the answer that is being played. */
export interface Playing {
  dialect: Dialect;
  response: ServerResponse;
  /** Resolves when the connection is gone. */
  gone: Promise<void>;
  isGone(): boolean;
}

/** Plays the steps; returns when the answer has ended or the connection is gone. */
export async function playSteps(steps: readonly Step[], { dialect, response, gone, isGone }: Playing): Promise<void> {
  let byByte = false;
  let called = false;
  let finish: string | null = null;
  let usage: Record<string, unknown> | null = null;

  const begin = (): void => {
    if (response.headersSent) return;
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
    response.flushHeaders();
  };
  const packet = (bytes: string | Uint8Array): Promise<void> =>
    Promise.race([gone, new Promise<void>((resolve) => response.write(bytes, () => resolve()))]);
  const send = async (bytes: string | Uint8Array): Promise<void> => {
    begin();
    if (!byByte) return packet(bytes);
    for (const byte of Buffer.from(bytes)) {
      if (isGone()) return;
      await packet(Uint8Array.of(byte));
    }
  };
  for (const step of steps) {
    if (isGone()) return;
    if ('text' in step) for (const content of [step.text].flat()) await send(dialect.text(content));
    else if ('reasoning' in step) {
      for (const text of [step.reasoning].flat()) await send(dialect.reasoning(text));
    } else if ('tool_calls' in step) {
      called = true;
      for (const packet of dialect.calls(step.tool_calls, step.pieces ?? 3)) await send(packet);
    } else if ('empty_tool_calls' in step) await send(dialect.emptyCalls());
    else if ('usage' in step) usage = step.usage;
    else if ('finish' in step) finish = step.finish;
    else if ('frame' in step) await send(dialect.frame(step.frame));
    else if ('raw' in step) await send(step.raw);
    else if ('error' in step) await send(dialect.error(step.error));
    else if ('broken_frame' in step) await send(dialect.broken);
    else if ('split_utf8' in step) {
      const bytes = Buffer.from(dialect.text(step.split_utf8));
      const cut = bytes.findIndex((byte) => byte >= 0xc0) + 1;
      await send(bytes.subarray(0, cut));
      await tick();
      await send(bytes.subarray(cut));
    } else if ('lone_surrogate' in step) {
      await send(dialect.text('@@').replace('@@', 'half \\ud83d gone'));
    } else if ('burst' in step) {
      const chunks = Array.from({ length: step.burst }, (_, n) => dialect.text(`[${n}]`));
      await send(chunks.join(''));
    } else if ('byte_by_byte' in step) byByte = true;
    else if ('hold' in step) {
      begin();
      const hold = step.hold as ReturnType<typeof createHold>;
      hold.reach();
      await Promise.race([gone, hold.passed]);
    } else if ('delay' in step) {
      begin();
      await Promise.race([gone, new Promise((resolve) => setTimeout(resolve, step.delay))]);
    } else if ('status' in step) {
      const isText = typeof step.body === 'string';
      response.writeHead(step.status, { 'content-type': isText ? 'text/plain' : 'application/json', ...step.headers });
      response.end(isText ? step.body : JSON.stringify(step.body ?? {}));
      return;
    } else if ('html' in step) {
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end(step.html);
      return;
    } else if ('cut' in step) {
      const { socket } = response;
      if (step.cut === 'mid-chunk') {
        begin();
        // The head of an HTTP chunk that promises more bytes than will come.
        await new Promise<void>((resolve) => socket?.write('40\r\ndata: {"choices":[{"del', () => resolve()));
      }
      socket?.destroy();
      return;
    } else if ('hang' in step) {
      await gone;
      return;
    } else if ('end' in step) {
      if (step.end === 'done-only') await send(dialect.done);
      begin();
      response.end();
      return;
    }
  }
  if (isGone()) return;
  for (const packet of dialect.end({ finish, called, usage })) await send(packet);
  response.end();
}
