/**
 * The runner of agents with the scripted agent (acp-agent.mjs): real processes, files and database in a home of the test,
 * and a workspace. When it is closed the process table must have nothing of it.
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'vitest';
import { createAgentSessionStore } from '../../db/agent-session-store.ts';
import { openStateDb } from '../../db/client.ts';
import { createAgentFolders } from '../../db/files/agent-folders.ts';
import { createPaths } from '../../db/files/paths.ts';
import { createRunningCommands } from '../../db/files/running-commands.ts';
import { identityOf, ownIdentity } from '../../server/lease/process-identity.ts';
import { type AcpRunner, type AcpRunnerParts, createAcpRunner } from '../../server/runners/acp/acp-runner.ts';
import type { AgentTarget } from '../../server/runners/acp/agent-target.ts';
import { createAllowList } from '../../server/runners/allow-list.ts';
import { createApprovals } from '../../server/runners/approvals.ts';
import type { Runner } from '../../server/runners/runner.ts';
import { createPrograms, type ProgramsParts } from '../../server/workspace/programs.ts';
import { openWorkspace } from '../../server/workspace/workspace.ts';
import { commandsIn, newMark } from './commands.ts';
import { processesWith } from './processes.ts';
import { stateDbOptions } from './state-db.ts';

export const SCRIPTED_AGENT = path.join(import.meta.dirname, 'acp-agent.mjs');

export interface AcpBench {
  acp: AcpRunner;
  /** The scripted agent as a runner, with these flags. */
  agent(...flags: string[]): Runner;
  /** Any command as a runner. */
  command(...command: string[]): Runner;
  home: string;
  /** Absolute path of the workspace, empty at first. */
  workspace: string;
  /** Processes of its agents and of what they started, as long as they bear the bench's word. */
  processes(): number[];
  /** Turns and commands that still go on. */
  running(): number;
  /** Bugs of ours that were reported. */
  bugs: unknown[];
  /** What was said for the log. */
  logs: { message: string; [field: string]: unknown }[];
  /** What the agent with `--log` in its flags was sent, oldest first. */
  log: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever was sent.
  sent(method: string): Promise<any[]>;
  close(): Promise<void>;
}

/** What starts programs that are noted in this home. */
export const programsIn = (home: string): ProgramsParts => ({
  notes: createRunningCommands(createPaths(home)),
  server: ownIdentity(),
  identityOf,
  graceMs: 300,
  newMark,
  onLeft: (mark) => {
    throw new Error(`processes of ${mark} are left`);
  },
});

export interface AcpBenchChange extends Partial<Omit<AcpRunnerParts, 'limits'>> {
  limits?: Partial<AcpRunnerParts['limits']>;
}

export async function createAcpBench({ limits, ...change }: AcpBenchChange = {}): Promise<AcpBench> {
  const home = await mkdtemp(path.join(os.tmpdir(), 'turnkeep-home-'));
  const workspace = await mkdtemp(path.join(os.tmpdir(), 'turnkeep-work-'));
  const log = path.join(home, 'sent.jsonl');
  const paths = createPaths(home);
  const state = await openStateDb(stateDbOptions(paths.stateDb));
  const commands = await commandsIn(home);
  const allowed = createAllowList({
    patterns: [],
    file: { addTo: async () => 'written' },
    log: { info: () => {}, warn: () => {} },
  });
  const bugs: unknown[] = [];
  const logs: AcpBench['logs'] = [];
  const keep = (fields: object, message: string): void => void logs.push({ ...fields, message });
  const acp = createAcpRunner({
    ready: async () => {},
    programs: createPrograms(programsIn(home)),
    secrets: [],
    env: { PATH: process.env.PATH ?? '', HOME: home },
    version: '0.0.0',
    store: createAgentSessionStore(state),
    folders: createAgentFolders(paths),
    openWorkspace,
    approvals: createApprovals({ mode: 'manual', allowed, secrets: [] }),
    commands,
    mcpServers: () => [],
    limits: {
      start_timeout_s: 20,
      stall_timeout_s: 20,
      cancel_timeout_s: 5,
      idle_s: 600,
      max_processes: 8,
      ...limits,
    },
    lastOffer: () => null,
    offered: () => {},
    now: () => Date.now() / 1000,
    onBug: (error) => bugs.push(error),
    log: { warn: keep, debug: keep },
    ...change,
  });
  const runnerOf = (target: AgentTarget): Runner => ({
    kind: 'acp',
    run: (turn, signal) => acp.run(turn, signal, target, null, null),
  });
  // Its home stands in the arguments of all that it starts: so it is found in the process table.
  const processes = (): number[] => processesWith(home);
  return {
    acp,
    agent: (...flags) =>
      runnerOf({ name: 'scripted', command: [process.execPath, SCRIPTED_AGENT, '--log', log, ...flags], env: {} }),
    command: (...command) => runnerOf({ name: 'scripted', command, env: {} }),
    home,
    workspace,
    processes,
    running: () => acp.running() + commands.running(),
    bugs,
    logs,
    log,
    async sent(method) {
      const lines = (await readFile(log, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
      return lines.map((line) => JSON.parse(line)).filter((message) => message.method === method);
    },
    async close() {
      await acp.close();
      await commands.close();
      state.close();
      expect(processes()).toEqual([]);
      expect(await readdir(paths.commands).catch(() => [])).toEqual([]);
      for (const folder of [home, workspace]) await rm(folder, { recursive: true, force: true });
      expect(bugs).toEqual([]);
    },
  };
}
