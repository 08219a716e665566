/** Services for the built-in agent in tests: a fixed clock, no waiting, and chats in memory. */
import type { BuiltinServices } from '../../server/runners/builtin/services.ts';
import { createClarifyTool } from '../../server/runners/clarify.ts';
import { createWorkspaceTools } from '../../server/workspace/tools.ts';
import { openWorkspace } from '../../server/workspace/workspace.ts';
import { EVERYTHING_ALLOWED } from './everything-allowed.ts';

/** 2026-03-03 13:00:02 UTC, a Tuesday. */
export const NOW = 1_772_542_802;

export function builtinServices(part: Partial<BuiltinServices> = {}): BuiltinServices {
  let ids = 0;
  return {
    tools: [...createWorkspaceTools(), createClarifyTool()],
    approvals: EVERYTHING_ALLOWED,
    openWorkspace: (root) => openWorkspace(root),
    now: () => NOW,
    timeZone: 'Europe/Berlin',
    searchChats: async () => [],
    transcript: async () => null,
    listModels: async () => [{ id: 'builtin', label: 'Built-in agent', provider: 'builtin', source: 'builtin' }],
    serverInfo: () => ({ version: '1.2.3', home: '/home/me/.turnkeep', url: 'http://127.0.0.1:8787' }),
    sleep: async () => {},
    newToolId: () => `tool_${++ids}`,
    ...part,
  };
}

/** A sleep that really waits, and ends at once when the signal aborts. */
export function realSleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
