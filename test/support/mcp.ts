/** MCP servers of ours (mcp-server.mjs) as a configuration names them, and what holds them as our server does. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { createPaths } from '../../db/files/paths.ts';
import { createRunningCommands } from '../../db/files/running-commands.ts';
import { identityOf, ownIdentity } from '../../server/lease/process-identity.ts';
import { createMcpServers, type McpServers } from '../../server/mcp/mcp-servers.ts';
import { readMcpServers } from '../../server/mcp/settings.ts';
import { createPrograms, type Programs } from '../../server/workspace/programs.ts';
import type { ToolDefinition, ToolResult } from '../../server/workspace/tool.ts';
import { newMark } from './commands.ts';
import { temporaryFolder } from './home.ts';
import { toolContext, type WatchedContext } from './tool-context.ts';

export const MCP_SCRIPT = fileURLToPath(new URL('./mcp-server.mjs', import.meta.url));

/** A section of `mcp_servers` for one that speaks over stdio. */
export const stdioServer = (...flags: string[]) => ({ command: process.execPath, args: [MCP_SCRIPT, ...flags] });

export interface HttpMcp {
  url: string;
  process: ChildProcess;
  stop(): Promise<void>;
}

/** One that speaks HTTP, in a process of its own. */
export async function startHttpMcp(...flags: string[]): Promise<HttpMcp> {
  const child = spawn(process.execPath, [MCP_SCRIPT, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  onTestFinished(stop);
  const url = await new Promise<string>((resolve) =>
    child.stdout.once('data', (chunk) => resolve(String(chunk).trim())),
  );
  return { url, process: child, stop };
}

export interface McpBench {
  servers: McpServers;
  programs: Programs;
  home: string;
  /** What was logged, as one text. */
  logged(): string;
  /** What a turn gets: what it is told, and tools. */
  turn(signal?: AbortSignal): Promise<{ told: string[]; tools: ToolDefinition[] }>;
  /** The tools of a turn, by their names. */
  tools(): Promise<Map<string, ToolDefinition>>;
  /** Calls a tool of a turn. */
  call(name: string, args?: object, context?: WatchedContext): Promise<ToolResult>;
}

/** Holds the servers of a section as our server does, and ends them with the test. */
export async function mcpBench(
  sections: Parameters<typeof readMcpServers>[0],
  variables: Record<string, string> = {},
): Promise<McpBench> {
  const home = await temporaryFolder();
  const logs: unknown[] = [];
  const log = (fields: object, message: string): void => void logs.push({ ...fields, message });
  const programs = createPrograms({
    notes: createRunningCommands(createPaths(home)),
    server: ownIdentity(),
    identityOf,
    graceMs: 200,
    newMark,
    onLeft: (mark) => {
      throw new Error(`processes of ${mark} are left`);
    },
  });
  const commandEnv = { PATH: process.env.PATH ?? '' };
  const { servers: settings, problem } = readMcpServers(sections, { variables, commandEnv, userHome: home });
  if (problem !== null) throw new Error(problem);
  const servers = createMcpServers(settings, {
    programs,
    fetch: (address, init) => fetch(address, init),
    version: '0',
    now: () => Date.now() / 1000,
    log: { info: log, warn: log },
  });
  onTestFinished(async () => {
    await servers.close();
    await programs.close();
  });
  const turn: McpBench['turn'] = async (signal = new AbortController().signal) => {
    const told: string[] = [];
    const asked = servers.forTurn(signal);
    for (;;) {
      const { value, done } = await asked.next();
      if (done) return { told, tools: value };
      if (value.type === 'status') told.push(value.payload.text);
    }
  };
  const tools = async () => new Map((await turn()).tools.map((tool) => [tool.name, tool]));
  return {
    servers,
    programs,
    home,
    logged: () => JSON.stringify(logs),
    turn,
    tools,
    async call(name, args = {}, context = toolContext(null)) {
      const tool = (await tools()).get(name);
      if (!tool) throw new Error(`there is no tool ${name}`);
      return tool.execute(args, context);
    },
  };
}

/** What a server was sent, by its `--log`. */
export async function sentTo(file: string): Promise<{ method: string; params?: Record<string, unknown> }[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** How a value of the configuration names a variable. */
export const variable = (name: string): string => `\${${name}}`;

export const logFile = async (): Promise<string> => path.join(await temporaryFolder(), 'sent.ndjson');
