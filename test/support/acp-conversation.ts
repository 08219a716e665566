/** A session of turns with one agent, as the server would run it: each turn is given the rows of those before it. */
import type { Message } from '../../server/core/terms.ts';
import type { Runner, Turn } from '../../server/runners/runner.ts';
import { newMark } from './commands.ts';
import { type Ran, rowsOf, runTurn } from './turns.ts';

export interface Conversation {
  /** The transcript. A test may change it, as an edit does. */
  rows: Message[];
  say(input: string, more?: Partial<Turn> & { runner?: Runner; signal?: AbortSignal }): Promise<Ran>;
}

export function startConversation(runner: Runner, turn: Partial<Turn> = {}): Conversation {
  const conversation: Conversation = {
    rows: [],
    async say(input, { runner: other, signal, ...more } = {}) {
      const runId = newMark();
      const ran = await runTurn(
        other ?? runner,
        { ...turn, ...more, runId, input, history: [...conversation.rows] },
        signal,
      );
      conversation.rows.push(...rowsOf(input, ran, runId, 1_772_500_000));
      return ran;
    },
  };
  return conversation;
}
