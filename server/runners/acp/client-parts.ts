/** What the methods of one turn share (client-methods.ts): whom they ask, within bounds, and what was just allowed. */
import type { Commands } from '../../workspace/commands.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import type { Approvals, Decision } from '../approvals.ts';
import type { RunnerEvent, Turn } from '../runner.ts';
import { createJustAllowed, type JustAllowed } from './just-allowed.ts';
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

export type ClientParts = ClientMethodsParts & {
  justAllowed: JustAllowed;
  /**
   * Decides on one thing, asking the person where they have to be.
   * @param cancelled aborts when the agent takes its request back
   * @param about the call of the agent that it is, and words for the person
   */
  allow(
    tool: Parameters<Approvals['allow']>[0],
    args: unknown,
    cancelled: AbortSignal,
    about?: { toolId: string | undefined; description: string },
  ): Promise<Decision>;
};

/** Questions of one turn that may be open at once. */
const MOST_OPEN = 64;

export function createClientParts(given: ClientMethodsParts): ClientParts {
  const { turn, approvals } = given;
  let open = 0;
  return {
    ...given,
    justAllowed: createJustAllowed(),
    async allow(tool, args, cancelled, about) {
      if (open >= MOST_OPEN) return { ok: false, result: `${MOST_OPEN} questions are open; wait for their answers.` };
      open += 1;
      try {
        const call = about?.toolId === undefined ? {} : { tool_id: about.toolId };
        return await approvals.allow(tool, args, {
          sessionId: turn.sessionId,
          ask: (question, settled) =>
            turn.ask({ ...question, ...call }, settled ? AbortSignal.any([settled, cancelled]) : cancelled),
          ...(about && { description: about.description }),
        });
      } finally {
        open -= 1;
      }
    },
  };
}
