/**
 * One connection to an MCP server, from the start to its end: the handshake, the list of tools, calls. What comes back is
 * read by ourselves: the SDK would refuse a whole list for one bad tool, and a result for a schema that lies about it.
 */
import {
  Client,
  type FetchLike,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type StandardSchemaV1,
} from '@modelcontextprotocol/client';
import { withTimeLimit } from '../time-limit.ts';
import type { Programs } from '../workspace/programs.ts';
import { failureWords } from './failure-words.ts';
import { CONNECTION_CLOSED, createHttpTransport, createSseTransport } from './http-transport.ts';
import type { McpServerSettings } from './settings.ts';
import { createStdioTransport, MAX_MESSAGE_BYTES, type OpenTransport } from './stdio-transport.ts';
import { MAX_LISTED } from './tool-list.ts';

export interface LinkParts {
  programs: Programs;
  fetch: FetchLike;
  /** Of this server, as it tells it to others. */
  version: string;
  /** Gives up the attempt. */
  signal: AbortSignal;
  /** The server says that its tools are others now. */
  onListChanged(): void;
}

export interface CallLimits {
  signal: AbortSignal;
  timeoutS: number;
  onProgress(progress: unknown): void;
}

export type CallEnd =
  | { kind: 'answered'; result: unknown }
  /** The server refused the call; its words. */
  | { kind: 'refused'; message: string }
  | { kind: 'timeout' | 'aborted' }
  /** The connection is of no use any more. `undone`: the server has certainly not begun. */
  | { kind: 'broken'; why: string; undone: boolean };

export interface Link {
  /** The pages of `tools/list`, `isWhole`: all of them; `why` in words, where they cannot be had. */
  listTools(): Promise<{ ok: true; tools: unknown[]; isWhole: boolean } | { ok: false; why: string }>;
  /** Never rejects. When it is given up, the server is told. */
  call(tool: string, args: Record<string, unknown>, limits: CallLimits): Promise<CallEnd>;
  /** Whether the server still answers, in a few seconds or as long as a call may take. */
  answers(): Promise<boolean>;
  /** Resolves with why, in words, when it is closed by anybody. */
  ended: Promise<string>;
  /** Closes it; a program of ours has ended then, with all that it started. */
  close(): Promise<void>;
}

const MAX_PAGES = 100;
const PING_MS = 5_000;
const SDK_SLACK_MS = 10_000;

/** Takes whatever a server answers. */
const anything: StandardSchemaV1<unknown, unknown> = {
  '~standard': { version: 1, vendor: 'turnkeep', validate: (value) => ({ value }) },
};

/** Connects. @returns the link, or why there is none, in words */
export async function openLink(
  settings: McpServerSettings,
  parts: LinkParts,
): Promise<{ ok: true; link: Link } | { ok: false; why: string }> {
  const { transport } = settings;
  if (parts.signal.aborted) return { ok: false, why: 'stopped' };
  const limit = withTimeLimit(settings.connectTimeoutS, parts.signal);
  const first =
    transport.kind === 'stdio'
      ? createStdioTransport(transport, parts.programs)
      : createHttpTransport(transport, parts.fetch);
  const opened = await handshake(first, settings, parts, limit);
  if (opened.ok || transport.kind === 'stdio' || !SPEAKS_OTHERWISE.has(opened.status ?? 0)) return opened;
  return handshake(createSseTransport(transport, parts.fetch), settings, parts, limit);
}

/** What servers from before streamable HTTP answer to it. */
const SPEAKS_OTHERWISE = new Set([400, 404, 405]);

async function handshake(
  { transport, why }: OpenTransport,
  settings: McpServerSettings,
  parts: LinkParts,
  limit: AbortSignal,
): Promise<{ ok: true; link: Link } | { ok: false; why: string; status?: number | undefined }> {
  const client = new Client({ name: 'turnkeep', version: parts.version });
  // What it is told about comes as a failed call or the end of the connection as well; the words may hold secrets.
  client.onerror = () => {};
  client.setNotificationHandler('notifications/tools/list_changed', () => parts.onListChanged());
  const ended = new Promise<string>((resolve) => {
    client.onclose = () => resolve(why() ?? 'the connection was closed');
  });
  // The SDK's own limit must not come before ours: what it says then is less.
  const timeout = settings.connectTimeoutS * 1000 + SDK_SLACK_MS;
  const connecting = client.connect(transport, { signal: limit, timeout });
  try {
    await Promise.race([connecting, rejection(limit)]);
  } catch (error) {
    connecting.catch(() => {});
    const isLate = limit.aborted && !parts.signal.aborted;
    // Asked before it is closed by us, which has reasons of its own.
    const words = isLate ? `it did not answer within ${settings.connectTimeoutS} s` : why();
    await transport.close().catch(() => {});
    const status = error instanceof SdkHttpError ? error.status : undefined;
    return { ok: false, why: words ?? why() ?? failureWords(error, settings.connectTimeoutS), status };
  }

  const isHttp = settings.transport.kind === 'http';
  return {
    ok: true,
    link: {
      ended,
      async listTools() {
        try {
          return { ok: true, ...(await listAll(client, settings)) };
        } catch (error) {
          const hasNone = error instanceof ProtocolError && error.code === ProtocolErrorCode.MethodNotFound;
          return hasNone
            ? { ok: true, tools: [], isWhole: true }
            : { ok: false, why: why() ?? failureWords(error, settings.connectTimeoutS) };
        }
      },
      async call(tool, args, { signal, timeoutS, onProgress }) {
        try {
          const result = await client.request(
            { method: 'tools/call', params: { name: tool, arguments: args } },
            anything,
            {
              signal,
              timeout: timeoutS * 1000,
              onprogress: onProgress,
            },
          );
          return { kind: 'answered', result };
        } catch (error) {
          if (signal.aborted) return { kind: 'aborted' };
          return callFailure(error, timeoutS, why(), isHttp);
        }
      },
      answers: () =>
        client.request({ method: 'ping' }, anything, { timeout: Math.min(PING_MS, settings.timeoutS * 1000) }).then(
          () => true,
          // Whoever says that it knows no ping has answered.
          (error) => error instanceof ProtocolError && error.code !== CONNECTION_CLOSED,
        ),
      close: () => client.close().then(() => transport.close()),
    },
  };
}

function callFailure(error: unknown, timeoutS: number, why: string | null, isHttp: boolean): CallEnd {
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) return { kind: 'timeout' };
  if (error instanceof ProtocolError) {
    if (error.code !== CONNECTION_CLOSED) return { kind: 'refused', message: error.message };
    return { kind: 'broken', why: why ?? 'the connection ended before the answer', undone: false };
  }
  // So a server answers that does not know our session: it was started anew.
  const undone = isHttp && error instanceof SdkHttpError && (error.status === 404 || error.status === 400);
  return { kind: 'broken', why: why ?? failureWords(error, timeoutS), undone };
}

/** All pages together are no more than one message may be (MC4). */
async function listAll(
  client: Client,
  { connectTimeoutS }: McpServerSettings,
): Promise<{ tools: unknown[]; isWhole: boolean }> {
  const tools: unknown[] = [];
  const cursors = new Set<string>();
  let characters = 0;
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES && tools.length <= MAX_LISTED; page += 1) {
    const request = { method: 'tools/list', ...(cursor === undefined ? {} : { params: { cursor } }) };
    const result = await client.request(request, anything, { timeout: connectTimeoutS * 1000 });
    const { tools: some, nextCursor } = { ...(result as { tools?: unknown; nextCursor?: unknown }) };
    if (Array.isArray(some)) {
      characters += JSON.stringify(some).length;
      if (characters > MAX_MESSAGE_BYTES) break;
      tools.push(...some.slice(0, MAX_LISTED + 1));
    }
    // A cursor that comes again would lead in a circle.
    const isLast = typeof nextCursor !== 'string' || nextCursor === '' || cursors.has(nextCursor);
    if (isLast) return { tools, isWhole: true };
    cursors.add(nextCursor);
    cursor = nextCursor;
  }
  return { tools, isWhole: false };
}

/** Rejects when the signal aborts. */
function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const give = (): void => reject(new Error('given up'));
    if (signal.aborted) give();
    else signal.addEventListener('abort', give, { once: true });
  });
}
