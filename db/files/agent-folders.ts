/** Folders of agents in sessions without a workspace: each its own, and gone with its session. They are in no backup. */
import { rm } from 'node:fs/promises';
import { makeFolder } from './atomic.ts';
import type { Paths } from './paths.ts';

export interface AgentFolders {
  /** @returns the absolute path of the session's folder, which is there */
  make(sessionId: string): Promise<string>;
  remove(sessionId: string): Promise<void>;
}

export function createAgentFolders(paths: Pick<Paths, 'agentFolder'>): AgentFolders {
  return {
    async make(sessionId) {
      const folder = paths.agentFolder(sessionId);
      await makeFolder(folder);
      return folder;
    },
    remove: (sessionId) => rm(paths.agentFolder(sessionId), { recursive: true, force: true, maxRetries: 5 }),
  };
}
