/** The real tools with approvals that ask, in a workspace and a home of the test: for tests of runners. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createAllowList } from '../../server/runners/allow-list.ts';
import { type Approvals, createApprovals } from '../../server/runners/approvals.ts';
import { createClarifyTool } from '../../server/runners/clarify.ts';
import { createWorkspaceTools, type ToolDefinition } from '../../server/workspace/tools.ts';
import { commandsIn } from './commands.ts';

export interface AskingBench {
  tools: readonly ToolDefinition[];
  approvals: Approvals;
  /** Absolute path of the workspace, empty at first. */
  workspace: string;
  /** How many files whose names begin with `made` there are. */
  made(): Promise<number>;
  /** Commands that run. */
  running(): number;
  close(): Promise<void>;
}

export async function createAskingBench(): Promise<AskingBench> {
  const home = await mkdtemp(path.join(os.tmpdir(), 'turnkeep-home-'));
  const workspace = await mkdtemp(path.join(os.tmpdir(), 'turnkeep-work-'));
  const commands = await commandsIn(home);
  const allowed = createAllowList({
    patterns: [],
    file: { addTo: async () => 'written' },
    log: { info: () => {}, warn: () => {} },
  });
  return {
    tools: [...createWorkspaceTools({ commands }), createClarifyTool()],
    approvals: createApprovals({ mode: 'manual', allowed, secrets: [] }),
    workspace,
    made: async () => (await readdir(workspace)).filter((name) => name.startsWith('made')).length,
    running: () => commands.running(),
    async close() {
      await commands.close();
      for (const folder of [home, workspace]) await rm(folder, { recursive: true, force: true });
    },
  };
}
