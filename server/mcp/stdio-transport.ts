/**
 * The transport to an MCP server that is a program of its own: messages are lines of JSON on its input and output. The
 * SDK has one too, but knows nothing of process groups, of what a program leaves behind, or of a start after a kill.
 */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { Program, Programs, Started } from '../workspace/programs.ts';
import { endWords, notStartedWords } from './failure-words.ts';
import type { McpServerSettings } from './settings.ts';

/** Most bytes of one message, as text. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

export interface OpenTransport {
  transport: Transport;
  /** Why it broke off, for a person; null while it has not, or where nothing is known beyond what the SDK tells. */
  why(): string | null;
}

/** @param settings of a server with a command */
export function createStdioTransport(
  settings: Extract<McpServerSettings['transport'], { kind: 'stdio' }>,
  programs: Programs,
): OpenTransport {
  let starting: Promise<Started> | null = null;
  let program: Program | null = null;
  /** One after the other: the SDK takes an answer at once and a notification a moment later, and would lose one before it. */
  let delivered: Promise<void> = Promise.resolve();
  let why: string | null = null;
  let isClosed = false;

  const transport: Transport = {
    async start() {
      starting = programs.start({
        command: settings.command,
        args: settings.args,
        env: settings.env,
        folder: settings.folder,
        maxLineBytes: MAX_MESSAGE_BYTES,
        onLine(line) {
          for (const message of messagesOf(line)) {
            delivered = delivered.then(() => transport.onmessage?.(message));
          }
        },
      });
      const started = await starting;
      if (!started.ok) {
        why = notStartedWords(started.code);
        throw new Error('the program was not started');
      }
      program = started.program;
      void program.ended.then((end) => {
        why = endWords(end, started.program.lastWords());
        void delivered.then(close);
      });
    },
    async send(message) {
      if (!(await program?.send(JSON.stringify(message)))) throw new Error('the program takes nothing any more');
    },
    async close() {
      close();
      const started = await starting;
      if (started?.ok) await started.program.close();
    },
  };
  const close = (): void => {
    if (isClosed) return;
    isClosed = true;
    transport.onclose?.();
  };
  return { transport, why: () => why };
}

/** What is no message is passed over: many programs print a greeting to their output. */
function messagesOf(line: string): JSONRPCMessage[] {
  if (!/^\s*[[{]/.test(line)) return [];
  try {
    const value: unknown = JSON.parse(line);
    const items = Array.isArray(value) ? value : [value];
    return items.filter((item) => typeof item === 'object' && item !== null && item.jsonrpc === '2.0');
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}
