/**
 * The lines between an agent and us: one JSON-RPC message each (ACP over stdio). Owns what is a message at all, and the
 * order: what an agent tells of its turn goes to its reader at once and as it is, before anything that came behind it. The
 * protocol's own library takes only the rest, since it drops what it does not know.
 *
 * An agent that asks and takes no answers costs bounded memory: few large answers are made at a time, and with too much
 * unanswered no more is read (AC6).
 */
import { type AnyMessage, methods, type Stream } from '@agentclientprotocol/sdk';
import type { Raw } from './raw.ts';

export interface FramesParts {
  /** Says a line to the agent. @returns false when it cannot be told anything any more */
  send(line: string): Promise<boolean>;
  /** Takes the parameters of a `session/update`. */
  onUpdate(params: unknown): void;
  /** Told of an answer, before anything that came behind it. */
  onAnswer(): void;
  /** Told of a line that is no message, or answers nothing that was asked. It is passed over. */
  onNoise(): void;
}

export interface Frames {
  /** What the protocol's library reads from and writes to. */
  stream: Stream;
  /** Takes a line of the agent. */
  receive(line: string): void;
  /** Null, or what is waited for before more is read. */
  room(): Promise<void> | null;
  /** Nothing more comes. */
  end(): void;
}

/** Requests of an agent that may wait for their answers, and characters of them all, before no more is read. */
const MOST_UNANSWERED = 4000;
const MOST_UNANSWERED_CHARACTERS = 32 * 1024 * 1024;
/** What may be answered with 4 MB; so many of these are done before the agent has taken an answer. */
const LARGE: ReadonlySet<unknown> = new Set([methods.client.fs.readTextFile, methods.client.terminal.output]);
const MOST_LARGE = 4;

export function createFrames({ send, onUpdate, onAnswer, onNoise }: FramesParts): Frames {
  /** Ids of what was asked and not answered. */
  const open = new Set<unknown>();
  /** What the agent has asked and taken no answer of: characters of the requests, by their id, which may come twice. */
  const unanswered = new Map<unknown, number[]>();
  const total = { requests: 0, characters: 0 };
  /** Of these the ones with large answers: ids of those that are being done, and those that have to wait. */
  const large: unknown[] = [];
  const waiting: Raw[] = [];
  let isBroken = false;
  let free = (): void => {};
  let reader: ReadableStreamDefaultController<AnyMessage> | null = null;

  const readable = new ReadableStream<AnyMessage>({
    start(controller) {
      reader = controller;
    },
    cancel() {
      reader = null;
    },
  });
  const writable = new WritableStream<AnyMessage>({
    async write(message) {
      const isCall = 'method' in message;
      if (isCall && 'id' in message) open.add(message.id);
      if (!(await send(JSON.stringify(message)))) {
        isBroken = true;
        free();
        throw new Error('the agent reads nothing any more');
      }
      if (!isCall) taken(message.id);
    },
  });

  const pass = (message: Raw): void => reader?.enqueue(message as unknown as AnyMessage);

  function asked(message: Raw, length: number): void {
    const { id, method } = message;
    unanswered.set(id, [...(unanswered.get(id) ?? []), length]);
    total.requests += 1;
    total.characters += length;
    const isLarge = LARGE.has(method);
    if (isLarge && large.length >= MOST_LARGE) return void waiting.push(message);
    if (isLarge) large.push(id);
    pass(message);
  }

  function taken(id: unknown): void {
    const [length, ...others] = unanswered.get(id) ?? [];
    if (length === undefined) return;
    if (others.length > 0) unanswered.set(id, others);
    else unanswered.delete(id);
    total.requests -= 1;
    total.characters -= length;
    const at = large.indexOf(id);
    const next = at < 0 ? undefined : waiting.shift();
    if (at >= 0) large.splice(at, 1, ...(next ? [next.id] : []));
    if (next) pass(next);
    if (hasRoom()) free();
  }

  const hasRoom = (): boolean =>
    isBroken || (total.requests < MOST_UNANSWERED && total.characters < MOST_UNANSWERED_CHARACTERS);

  return {
    stream: { readable, writable },
    receive(line) {
      const message = parse(line);
      if (message?.method === 'session/update' && message.id === undefined) return onUpdate(message.params);
      const isCall = typeof message?.method === 'string';
      if (isCall && message?.id !== undefined) return asked(message, line.length);
      const isAnswer = message !== null && !isCall && open.delete(message.id);
      if (isAnswer) onAnswer();
      if (isCall || isAnswer) pass(message!);
      else if (line.trim() !== '') onNoise();
    },
    room: () =>
      hasRoom()
        ? null
        : new Promise((resolve) => {
            free = resolve;
          }),
    end() {
      reader?.close();
      reader = null;
      isBroken = true;
      free();
    },
  };
}

function parse(line: string): Raw | null {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null || !('jsonrpc' in value) || value.jsonrpc !== '2.0') return null;
    // An id is said back as it came.
    const isFit = !('id' in value) || value.id === null || ['string', 'number'].includes(typeof value.id);
    return isFit ? { ...value } : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
