/** Agents on PATH: which of the known ones are there. Looks at files only and starts none of them. */
import { isProgram } from '../../../db/files/programs.ts';
import type { AgentTarget } from './agent-target.ts';
import type { KnownAgent } from './known-agents.ts';

/** Looks for agents, each under the first of its commands that is there. Never rejects. */
export async function findAgents(pathVariable: string, known: readonly KnownAgent[]): Promise<AgentTarget[]> {
  const find = async ({ name, commands }: KnownAgent): Promise<AgentTarget[]> => {
    for (const command of commands) {
      if (await isProgram(command[0], pathVariable)) return [{ name, command, env: {} }];
    }
    return [];
  };
  return (await Promise.all(known.map(find))).flat();
}
