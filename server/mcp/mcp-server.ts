/**
 * One MCP server of the configuration, for as long as we run: connected when somebody wants its tools, connected again
 * after trouble with longer and longer pauses, and never the reason why a turn fails (MC2). Owns its connection, what is
 * known of its tools, and why it cannot be used when it cannot.
 */
import type { FetchLike } from '@modelcontextprotocol/client';
import { redactCommand } from '../core/redact-command.ts';
import { waitForAbort } from '../runners/abort-wait.ts';
import type { Programs } from '../workspace/programs.ts';
import { failed, type ToolResult } from '../workspace/tool.ts';
import type { CallLimits, Link } from './link.ts';
import { readCallResult } from './result-text.ts';
import type { McpServerSettings } from './settings.ts';
import { type McpTool, readToolList, type ToolList } from './tool-list.ts';

export interface McpServerParts {
  programs: Programs;
  fetch: FetchLike;
  version: string;
  /** Epoch seconds. */
  now(): number;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

export type McpStatus = 'idle' | 'connecting' | 'ready' | 'unavailable';

export interface McpServer {
  readonly settings: McpServerSettings;
  status(): McpStatus;
  /** Why it is not available, in words without secrets; null when it is, or nobody knows yet. */
  why(): string | null;
  /** Takes what is secret of it out of a text. */
  hide(text: string): string;
  /** As last listed: also while the server is away, so that a model keeps the tools that it had. */
  list(): ToolList;
  /** Connects in the background, unless it is connected or has just failed. */
  wake(): void;
  /** Resolves when the first attempt to connect has ended; at once when there was one before. */
  firstTried(): Promise<void>;
  /** Calls a tool, connecting before if that is needed. Never rejects. */
  call(tool: McpTool, args: Record<string, unknown>, limits: Omit<CallLimits, 'timeoutS'>): Promise<ToolResult>;
  /** Ends the connection and, if we started it, the server. */
  close(): Promise<void>;
}

/** Pauses before the next attempt: the first, and the longest (seconds). */
const [FIRST_PAUSE_S, LONGEST_PAUSE_S] = [1, 300];
/** Who was connected for so long starts with the first pause again. */
const STEADY_S = 60;
/** Whoever asks for its tools so soon after a failure is told of that failure. */
const FRESH_S = 5;
/** Least time between two looks at a list that keeps changing. */
const RELIST_MS = 300;

export function createMcpServer(settings: McpServerSettings, parts: McpServerParts): McpServer {
  const { name, unusable, secrets } = settings;
  const stop = new AbortController();
  let link: Link | null = null;
  let list: ToolList = { tools: [], leftOut: [] };
  let why = unusable;
  let attempt: Promise<void> | null = null;
  let firstAttempt: Promise<void> | null = null;
  let retry: NodeJS.Timeout | null = null;
  let failures = 0;
  let failedAt = 0;
  let readyAt = 0;
  /** Of connections that are given up: programs may take a moment to end. */
  const closing = new Set<Promise<void>>();

  const hide = (text: string): string => secrets.reduce((shown, secret) => shown.replaceAll(secret, '[hidden]'), text);

  const discard = (gone: Link): void => {
    const closed = gone.close().catch(() => {});
    closing.add(closed);
    void closed.then(() => closing.delete(closed));
  };

  const fail = (words: string): void => {
    if (stop.signal.aborted) return;
    why = redactCommand(words, secrets);
    failures += 1;
    failedAt = parts.now();
    const pauseS = Math.min(FIRST_PAUSE_S * 2 ** (failures - 1), LONGEST_PAUSE_S);
    parts.log.warn({ mcp_server: name, why, again_in_s: pauseS }, 'an MCP server is not available');
    retry = setTimeout(connect, pauseS * 1000);
    retry.unref();
  };

  /** Gives up a connection that is of no use any more. */
  const drop = (gone: Link, words: string): void => {
    if (link !== gone) return;
    link = null;
    discard(gone);
    if (parts.now() - readyAt > STEADY_S) failures = 0;
    fail(words);
  };

  /** @returns why it could not be read; the list that was known stays then */
  const readList = async (from: Link): Promise<string | null> => {
    const listed = await from.listTools();
    if (!listed.ok) return listed.why;
    const known = JSON.stringify(list);
    list = readToolList(listed.tools, listed.isWhole, settings, hide);
    if (JSON.stringify(list) === known) return null;
    parts.log.info({ mcp_server: name, tools: list.tools.length }, 'tools of an MCP server');
    for (const left of list.leftOut) {
      parts.log.warn({ mcp_server: name, tool: left.name, reason: left.reason }, 'a tool is left out');
    }
    return null;
  };

  /** Reads the list again when it has changed: once for any number of changes meanwhile. */
  const relisting = { wanted: false, timer: null as NodeJS.Timeout | null };
  const relist = (): void => {
    relisting.wanted = true;
    if (relisting.timer !== null) return;
    relisting.timer = setTimeout(async () => {
      relisting.wanted = false;
      // What fails here shows with the next call.
      if (link) await readList(link);
      relisting.timer = null;
      if (relisting.wanted) relist();
    }, RELIST_MS);
    relisting.timer.unref();
  };

  const open = async (): Promise<void> => {
    // Whoever has no MCP servers does without the SDK, which is large.
    const { openLink } = await import('./link.ts');
    const opened = await openLink(settings, { ...parts, signal: stop.signal, onListChanged: relist });
    if (!opened.ok) return fail(opened.why);
    const trouble = await readList(opened.link);
    if (trouble !== null || stop.signal.aborted) {
      discard(opened.link);
      return fail(trouble ?? 'stopped');
    }
    link = opened.link;
    why = null;
    readyAt = parts.now();
    parts.log.info({ mcp_server: name }, 'an MCP server is connected');
    void opened.link.ended.then((words) => drop(opened.link, words));
  };

  const connect = (): void => {
    if (link || attempt || stop.signal.aborted || unusable !== null) return;
    if (retry) clearTimeout(retry);
    retry = null;
    attempt = open().finally(() => {
      attempt = null;
    });
    firstAttempt ??= attempt;
  };

  const wake = (): void => {
    if (failures === 0 || parts.now() - failedAt > FRESH_S) connect();
  };

  /** The connection, once it is there; null when it cannot be had now, or nobody waits for it any more. */
  const connected = async (signal: AbortSignal): Promise<Link | null> => {
    wake();
    if (attempt) {
      const abort = waitForAbort(signal);
      await Promise.race([attempt, abort.happened]);
      abort.release();
    }
    return link;
  };

  /** A call was given up: whoever does not even answer a ping then is stuck. */
  const examine = (used: Link): void => {
    void used.answers().then((does) => {
      if (!does) drop(used, 'it no longer answers');
    });
  };

  return {
    settings,
    status() {
      if (link) return 'ready';
      if (attempt) return 'connecting';
      return why === null ? 'idle' : 'unavailable';
    },
    why: () => (link ? null : why),
    hide,
    list: () => list,
    wake,
    async firstTried() {
      await firstAttempt;
    },

    async call(tool, args, { signal, onProgress }) {
      for (let tries = 1; ; tries += 1) {
        const used = await connected(signal);
        if (signal.aborted) return failed('The call was stopped before it was made.');
        if (!used) return failed(`The MCP server "${name}" is not available: ${why ?? 'unknown'}. Nothing was done.`);
        const end = await used.call(tool.ownName, args, { signal, onProgress, timeoutS: settings.timeoutS });
        switch (end.kind) {
          case 'answered':
            return readCallResult(end.result, hide);
          case 'refused':
            return failed(hide(end.message).slice(0, MAX_REFUSAL));
          case 'aborted':
            examine(used);
            return failed('The call was stopped. Whether it was done is not known.');
          case 'timeout':
            examine(used);
            return failed(`The call was stopped after ${settings.timeoutS} s. Whether it was done is not known.`);
          case 'broken':
            drop(used, end.why);
            // It has lost us, not the call: that is made again with a connection of its own.
            if (end.undone && tries === 1) {
              connect();
              continue;
            }
            return failed(
              `The MCP server "${name}" broke off during the call: ${redactCommand(end.why, secrets)}. Whether it was done is not known.`,
            );
        }
      }
    },

    async close() {
      stop.abort();
      if (retry) clearTimeout(retry);
      if (relisting.timer) clearTimeout(relisting.timer);
      if (link) discard(link);
      link = null;
      await attempt?.catch(() => {});
      await Promise.all(closing);
    },
  };
}

const MAX_REFUSAL = 8_000;
