/**
 * The lines between an agent and us: one JSON-RPC message each (ACP over stdio). Owns what is a message at all, and the
 * order: what an agent tells of its turn goes to its reader at once and as it is, before anything that came behind it. The
 * protocol's own library takes only the rest, since it drops what it does not know.
 */
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';

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
  /** Nothing more comes. */
  end(): void;
}

export function createFrames({ send, onUpdate, onAnswer, onNoise }: FramesParts): Frames {
  /** Ids of what was asked and not answered. */
  const open = new Set<unknown>();
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
      if ('method' in message && 'id' in message) open.add(message.id);
      if (!(await send(JSON.stringify(message)))) throw new Error('the agent reads nothing any more');
    },
  });

  return {
    stream: { readable, writable },
    receive(line) {
      const message = parse(line);
      if (message?.method === 'session/update' && message.id === undefined) return onUpdate(message.params);
      const isCall = typeof message?.method === 'string';
      const isAnswer = message !== null && !isCall && open.delete(message.id);
      if (isAnswer) onAnswer();
      if (isCall || isAnswer) reader?.enqueue(message as unknown as AnyMessage);
      else if (line.trim() !== '') onNoise();
    },
    end() {
      reader?.close();
      reader = null;
    },
  };
}

function parse(line: string): Record<string, unknown> | null {
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
