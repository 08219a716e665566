/**
 * What an agent may ask of its client while it works on a prompt: permissions, files and terminals. Made anew for each
 * turn, so that nothing of one turn is done for another; owns what ties the three together, and no more.
 *
 * Parameters come unchecked and may be anything. A refusal is thrown as an error of JSON-RPC with words for the agent.
 */
import type { Commands } from '../../workspace/commands.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import type { Approvals, Decision } from '../approvals.ts';
import type { RunnerEvent, Turn } from '../runner.ts';
import { type AgentFiles, createAgentFiles } from './agent-files.ts';
import { type AgentTerminals, createAgentTerminals } from './agent-terminals.ts';
import { createJustAllowed, type JustAllowed } from './just-allowed.ts';
import { createPermissions, type PermissionOutcome } from './permissions.ts';
import type { TurnUpdates } from './updates.ts';

export interface ClientMethodsParts {
  turn: Pick<Turn, 'sessionId' | 'runId' | 'ask'>;
  /** Its name, for a person. */
  agent: string;
  /** Null: no files and no terminals. */
  workspace: Workspace | null;
  approvals: Approvals;
  /** Of the turn. */
  signal: AbortSignal;
  tell(events: RunnerEvent[]): void;
  updates: Pick<TurnUpdates, 'announce' | 'known' | 'answered' | 'terminalOutput'>;
  commands: Pick<Commands, 'run'>;
}

/** What its parts share beside that. */
export type ClientParts = ClientMethodsParts & {
  justAllowed: JustAllowed;
  /** Decides on one thing, asking the person where they have to be. */
  allow(
    tool: Parameters<Approvals['allow']>[0],
    args: unknown,
    cancelled: AbortSignal,
    description?: string,
  ): Promise<Decision>;
};

/** Questions of one turn that may be open at once. */
const MOST_OPEN = 64;

/** `cancelled` of a method aborts when the agent takes its request back, or is gone. */
export interface ClientMethods extends AgentFiles, AgentTerminals {
  requestPermission(params: unknown, cancelled: AbortSignal): Promise<PermissionOutcome>;
}

export function createClientMethods(given: ClientMethodsParts): ClientMethods {
  const { turn, approvals } = given;
  let open = 0;
  const parts: ClientParts = {
    ...given,
    justAllowed: createJustAllowed(),
    async allow(tool, args, cancelled, description) {
      if (open >= MOST_OPEN) return { ok: false, result: `${MOST_OPEN} questions are open; wait for their answers.` };
      open += 1;
      try {
        return await approvals.allow(tool, args, {
          sessionId: turn.sessionId,
          ask: (question, settled) => turn.ask(question, settled ? AbortSignal.any([settled, cancelled]) : cancelled),
          ...(description === undefined ? {} : { description }),
        });
      } finally {
        open -= 1;
      }
    },
  };
  return { requestPermission: createPermissions(parts), ...createAgentFiles(parts), ...createAgentTerminals(parts) };
}
