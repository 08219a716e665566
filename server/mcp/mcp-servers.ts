/**
 * All MCP servers of the configuration, as tools of an agent and as a list for people (MC1, MC2). Nothing here delays the
 * start of our server; a turn waits for a server once, until the first attempt to connect to it has ended.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { waitForAbort } from '../runners/abort-wait.ts';
import type { RunnerEvent } from '../runners/runner.ts';
import { createLiveOutput } from '../workspace/live-output.ts';
import type { ToolDefinition } from '../workspace/tool.ts';
import { createMcpServer, type McpServer, type McpServerParts, type McpStatus } from './mcp-server.ts';
import type { McpServerSettings } from './settings.ts';
import type { McpTool } from './tool-list.ts';

export interface McpServerView {
  name: string;
  kind: 'stdio' | 'http';
  status: McpStatus;
  /** Why it is unavailable, for a person. */
  error?: string;
  tools: { name: string; own_name: string; description: string }[];
  left_out: { name: string; reason: string }[];
}

export interface McpServers {
  /** Begins to connect to all of them, in the background. */
  start(): void;
  /**
   * The tools for one turn. Waits until each server was tried, or the signal aborts; tells for whom it waits, and whose
   * tools are missing and why. Never throws.
   */
  forTurn(signal: AbortSignal): AsyncGenerator<RunnerEvent, ToolDefinition[], void>;
  view(): McpServerView[];
  /** Ends all connections and the servers that we started. */
  close(): Promise<void>;
}

export function createMcpServers(settings: readonly McpServerSettings[], parts: McpServerParts): McpServers {
  const servers = settings.map((one) => createMcpServer(one, parts));

  return {
    start() {
      for (const server of servers) server.wake();
    },

    async *forTurn(signal) {
      for (const server of servers) server.wake();
      const abort = waitForAbort(signal);
      const tried = Promise.race([abort.happened, Promise.all(servers.map((server) => server.firstTried()))]);
      const isSlow = await Promise.race([tried.then(() => false), delay(QUIET_MS, true, { ref: false })]);
      if (isSlow) yield waitingStatus(servers.filter((server) => server.status() === 'connecting'));
      await tried;
      abort.release();
      const tools = new Map<string, ToolDefinition>();
      for (const server of servers) {
        const { tools: own } = server.list();
        for (const tool of own) tools.set(tool.name, definitionOf(tool, server));
        const why = server.why();
        if (own.length === 0 && why !== null) yield missingStatus(server, why);
      }
      return [...tools.values()];
    },

    view: () => servers.map(viewOf),

    async close() {
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

/** How long a turn waits without a word (milliseconds). */
const QUIET_MS = 1_000;

const status = (text: string): RunnerEvent => ({ type: 'status', payload: { kind: 'mcp', text } });

const waitingStatus = (servers: readonly McpServer[]): RunnerEvent =>
  status(`Waiting for MCP servers to start: ${servers.map(({ settings }) => settings.name).join(', ')}.`);

const missingStatus = ({ settings }: McpServer, why: string): RunnerEvent =>
  status(`The tools of the MCP server "${settings.name}" are missing: ${why}.`);

function viewOf(server: McpServer): McpServerView {
  const { tools, leftOut } = server.list();
  const why = server.why();
  return {
    name: server.settings.name,
    kind: server.settings.transport.kind,
    status: server.status(),
    ...(why === null ? {} : { error: why }),
    tools: tools.map(({ name, ownName, description }) => ({ name, own_name: ownName, description })),
    left_out: leftOut,
  };
}

/** How often progress is shown (milliseconds). */
const SHOW_MS = 300;
const MAX_PREVIEW = 80;

/** A server says itself whether a tool only reads; that is no reason not to ask. */
function definitionOf(tool: McpTool, server: McpServer): ToolDefinition {
  return {
    name: tool.name,
    description: tool.description,
    effect: 'call',
    parameters: tool.parameters,
    preview(args) {
      const text = JSON.stringify(args) ?? '';
      return text === '{}' ? tool.ownName : `${tool.ownName} ${text}`.slice(0, MAX_PREVIEW).toWellFormed();
    },
    async execute(args, { signal, output }) {
      const live = createLiveOutput(output);
      const beat = setInterval(() => live.flush(), SHOW_MS);
      try {
        return await server.call(tool, args as Record<string, unknown>, {
          signal,
          onProgress: (progress) => live.push(Buffer.from(progressLine(progress, server.hide))),
        });
      } finally {
        clearInterval(beat);
        live.flush();
      }
    },
  };
}

const MAX_LINE = 1_000;

function progressLine(told: unknown, hide: (text: string) => string): string {
  const { progress, total, message } = { ...(told as { progress?: unknown; total?: unknown; message?: unknown }) };
  const done = typeof total === 'number' ? `${String(progress)}/${total}` : String(progress);
  const line = hide(typeof message === 'string' ? `${done} ${message}` : done);
  return `${line.slice(0, MAX_LINE).replace(/\s*[\r\n]+\s*/g, ' ')}\n`;
}
