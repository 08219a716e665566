/**
 * From what an agent tells while it works (`session/update` of the Agent Client Protocol, version 1) to run events. Takes
 * anything, throws nothing, and keeps rules 2 to 4 of the runner contract: whatever comes, text, thoughts and calls stand
 * in messages that have begun, calls are announced before the first of their message ends, and usage comes before that.
 *
 * What the agent says of its session (its modes, commands, title, our own words) and kinds that are not known tell a
 * reader of a run nothing. Source: https://agentclientprotocol.com/protocol/v1/schema
 */
import type { Todo } from '../../core/terms.ts';
import { createTextJoiner } from '../../core/text.ts';
import type { RunnerEvent } from '../runner.ts';
import { createCalls, type KnownCall, type Said } from './calls.ts';
import { blockText } from './content.ts';
import { cutMiddle, oneLineOf, type Raw, recordOf, stringOf } from './raw.ts';
import { type CostLedger, createUsageReader } from './usage.ts';

/** Characters of one chunk; and of all the text, and all the thoughts, of a turn. */
const CHUNK_CHARACTERS = 512 * 1024;
const MOST_CHARACTERS = 4 * 1024 * 1024;
const MOST_TODOS = 100;
const TODO_CHARACTERS = 500;

/** Made for one turn. Every method returns the events to be told, in order. */
export interface TurnUpdates {
  /** One `update` of the running prompt, as it came. */
  take(update: unknown): RunnerEvent[];
  /** The call that a permission request is about (its `toolCall`): it is announced now. */
  announce(toolCall: unknown): RunnerEvent[];
  /** A question about this call is over: what the call takes counts from now. */
  answered(toolCall: unknown, said: Said): void;
  /** A call that has not ended, by the agent's id. */
  known(toolCallId: string): KnownCall | null;
  /** What a terminal of ours has put out, for the call that shows it. */
  terminalOutput(terminalId: string, text: string): RunnerEvent[];
  /** Whether a call is open: silence is no stall then. */
  busy(): boolean;
  /** The prompt has ended: open calls end as errors. @param usage as the response has it */
  promptEnded(usage: unknown): RunnerEvent[];
}

export interface UpdateParts {
  /** Epoch seconds. */
  now(): number;
  /** The folder of the session, whose files are named relative to it. */
  cwd: string | null;
  ledger: CostLedger;
}

type Voice = 'message.delta' | 'reasoning.delta';

export function createTurnUpdates({ now, cwd, ledger }: UpdateParts): TurnUpdates {
  let events: RunnerEvent[] = [];
  let isOpen = false;
  /** What the open message has of its text, and the agent's id of what was said last. */
  let hasText = false;
  let lastId: unknown;
  let lastTodos = '';
  const left = { 'message.delta': MOST_CHARACTERS, 'reasoning.delta': MOST_CHARACTERS };
  const joiners = { 'message.delta': createTextJoiner(), 'reasoning.delta': createTextJoiner() };
  const usage = createUsageReader(ledger);

  const emit = (event: RunnerEvent): void => void events.push(event);

  function begin(): void {
    if (isOpen) return;
    isOpen = true;
    hasText = false;
    emit({ type: 'message.start', payload: {} });
  }

  const calls = createCalls({
    now,
    cwd,
    emit,
    begins() {
      finish('message.delta');
      finish('reasoning.delta');
      begin();
    },
    ended() {
      isOpen = false;
    },
  });

  function tell(voice: Voice, text: string): void {
    if (text === '' || left[voice] < 0) return;
    begin();
    hasText ||= voice === 'message.delta';
    const shown =
      text.length <= left[voice] ? text : `${text.slice(0, left[voice])}\n\n[The rest is too long and left out.]`;
    left[voice] -= text.length;
    emit({ type: voice, payload: { text: shown.toWellFormed() } });
  }

  /** Half a character whose other half did not come. */
  const finish = (voice: Voice): void => tell(voice, joiners[voice].end());

  function say(voice: Voice, { content, messageId }: Raw): void {
    const text = blockText(content);
    if (text === '') return;
    calls.announceAll();
    // A new id is a new message; the thoughts before a text may have an id of their own.
    const isOther = typeof messageId === 'string' && typeof lastId === 'string' && messageId !== lastId;
    finish(voice === 'message.delta' ? 'reasoning.delta' : 'message.delta');
    if (isOther && hasText && calls.open() === 0) {
      finish(voice);
      isOpen = false;
    }
    lastId = messageId;
    tell(voice, joiners[voice].push(text.length > CHUNK_CHARACTERS ? cutMiddle(text, CHUNK_CHARACTERS) : text));
  }

  function plan(entries: unknown): void {
    if (!Array.isArray(entries)) return;
    const todos = entries.slice(0, MOST_TODOS).flatMap(todoOf);
    const text = JSON.stringify(todos);
    if (text === lastTodos) return;
    lastTodos = text;
    emit({ type: 'todo.updated', payload: { todos } });
  }

  function take(update: Raw): void {
    const kind = update.sessionUpdate;
    if (kind === 'agent_message_chunk') say('message.delta', update);
    else if (kind === 'agent_thought_chunk') say('reasoning.delta', update);
    else if (kind === 'tool_call' || kind === 'tool_call_update') calls.take(update, kind === 'tool_call');
    else if (kind === 'plan') plan(update.entries);
    else if (kind === 'usage_update') usage.take(update);
  }

  function promptEnded(response: unknown): void {
    finish('message.delta');
    finish('reasoning.delta');
    calls.announceAll();
    const used = usage.ofPrompt(response);
    if (!isOpen) calls.endAll();
    if (used) {
      begin();
      emit({ type: 'usage', payload: used });
    }
    calls.endAll();
    isOpen = false;
    lastId = undefined;
  }

  const told = (work: () => void): RunnerEvent[] => {
    work();
    const all = events;
    events = [];
    return all;
  };

  return {
    take: (update) => told(() => take(recordOf(update))),
    announce: (toolCall) => told(() => calls.announce(recordOf(toolCall))),
    answered: (toolCall, said) => calls.answered(recordOf(toolCall), said),
    known: calls.known,
    terminalOutput: (terminalId, text) => told(() => calls.terminalOutput(terminalId, text)),
    busy: () => calls.open() > 0,
    promptEnded: (response) => told(() => promptEnded(response)),
  };
}

function todoOf(entry: unknown): Todo[] {
  const { content, status } = recordOf(entry);
  const text = oneLineOf(stringOf(content), TODO_CHARACTERS);
  if (text === '') return [];
  return [{ content: text, status: status === 'completed' || status === 'in_progress' ? status : 'pending' }];
}
