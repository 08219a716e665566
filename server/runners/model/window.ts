/**
 * The window of a model, seen from one turn (CX1, CX2, CX5): how full it is before each step, and what is done when it runs
 * full. The older turns are summarised; where that is not possible the oldest are left out, and the person is told.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isSummaryRow, knownFill, withoutOldest } from '../../core/compaction.ts';
import { tokensOf } from '../../core/context-size.ts';
import type { Message } from '../../core/terms.ts';
import type { RunnerEvent, Turn } from '../runner.ts';
import type { Conversation } from './conversation.ts';
import { tokensOfPrompt } from './prompt-size.ts';

export interface Window {
  /** Tokens that the next request is thought to have. */
  used(): number;
  /** What a provider counted for the request that was just answered. */
  counted(inputTokens: number): void;
  /** Before a step: makes room at the threshold. */
  makeRoom(): AsyncGenerator<RunnerEvent, void, void>;
  /** After a provider refused a request for its length. @returns whether it is worth asking again, which it is once */
  shrink(): AsyncGenerator<RunnerEvent, boolean, void>;
}

export interface WindowParts {
  turn: Pick<Turn, 'compact' | 'input'>;
  conversation: Conversation;
  /** For a person. */
  model: string;
  /** Tokens of it; null where nobody knows: then only a refusal tells that it is full. */
  length: number | null;
  /** The part of it from which on room is made. */
  compactAt: number;
  /** Tokens of the tools that go with each request. */
  tools: number;
  signal: AbortSignal;
}

/** The part of a window that older turns may have after a compaction, and all together with the turn that runs. */
const [KEEP_PART, AFTER_PART] = [0.25, 0.5];
/** The same of a request that was refused, where that is all that is known. */
const KEEP_OF_REFUSED = 1 / 8;

export function createWindow({ turn, conversation, model, length, compactAt, tools, signal }: WindowParts): Window {
  const estimate = (): number => tokensOfPrompt(conversation.prompt()) + tools;
  const known = knownFill(conversation.history());
  /** How many more tokens there are than we think: our estimate never lowers what was counted. */
  let more = known === null ? 0 : Math.max(0, known + tokensOf(turn.input) - estimate());
  let hasCompacted = false;
  let wasRefused = false;

  const used = (): number => estimate() + more;
  const hasOlder = (): boolean => conversation.history().some((row) => !isSummaryRow(row));
  const ofHistory = (): number => conversation.history().reduce((sum, row) => sum + tokensOf(row.content), 0);

  async function rebase(history: readonly Message[]): Promise<void> {
    await conversation.rebase(history);
    more = 0; // What was counted was another conversation.
  }

  async function* compact(
    keepTokens: number,
    most: number | null,
    urgent: boolean,
  ): AsyncGenerator<RunnerEvent, 'compacted' | 'failed' | 'not_tried', void> {
    if (!turn.compact || !hasOlder()) return 'not_tried';
    const asked = turn.compact({ keepTokens: Math.max(0, Math.floor(keepTokens)), most, urgent });
    // Refused at once, because one has failed just now: the person heard of that then.
    if ((await Promise.race([asked, nextTurn('under way')])) === null) return 'not_tried';
    yield status('compacting', `The window of ${model} is nearly full: what is older is being summarised.`);
    const history = await asked;
    if (history === null || signal.aborted) return 'failed';
    await rebase(history);
    yield status('compacted', `${model} goes on from a summary of what is older. What you see stays whole.`);
    return 'compacted';
  }

  /** Leaves out the oldest turns. @returns whether there were any */
  async function* leaveOut(excess: number): AsyncGenerator<RunnerEvent, boolean, void> {
    const { rows, turns } = withoutOldest(conversation.history(), excess);
    if (turns === 0) return false;
    await rebase(rows);
    const what = turns === 1 ? 'turn is' : `${turns} turns are`;
    yield status('context_cut', `The conversation is too long for ${model}: its oldest ${what} left out this time.`);
    return true;
  }

  return {
    used,
    counted(inputTokens) {
      more = Math.max(0, inputTokens - estimate());
    },

    async *makeRoom() {
      if (length === null || used() <= length * compactAt) return;
      if (!hasCompacted) {
        hasCompacted = true;
        const ofTurn = used() - ofHistory();
        const outcome = yield* compact(Math.min(length * KEEP_PART, length * AFTER_PART - ofTurn), null, false);
        if (signal.aborted) return;
        if (outcome === 'failed' && used() <= length) {
          yield status('compaction_failed', 'What is older could not be summarised; the turn goes on with all of it.');
        }
      }
      if (used() > length) yield* leaveOut(used() - length * compactAt);
    },

    async *shrink() {
      if (wasRefused) return false;
      wasRefused = true;
      const refused = used();
      const keep = Math.min(refused * KEEP_OF_REFUSED, (length ?? Number.MAX_VALUE) * KEEP_PART);
      if ((yield* compact(keep, Math.floor(refused / 2), true)) === 'compacted') return true;
      if (signal.aborted) return false;
      return yield* leaveOut(refused / 2);
    },
  };
}

const status = (kind: string, text: string): RunnerEvent => ({ type: 'status', payload: { kind, text } });
