/**
 * The prompts of one turn in one session of an agent: the first, and one more for each time that something was said to the
 * turn. Owns how long silence may last and how a prompt is stopped; what comes while no prompt is in flight is dropped (AC6).
 */

import { setTimeout as delay } from 'node:timers/promises';
import { methods } from '@agentclientprotocol/sdk';
import { timerMs } from '../../core/timer-ms.ts';
import { createStallWatch } from '../model/stall-watch.ts';
import type { RunnerEnd, RunnerEvent, Turn } from '../runner.ts';
import type { LiveAgentSession } from './agent-sessions.ts';
import { type ClientMethodsParts, createClientMethods } from './client-methods.ts';
import { type AgentConnection, type Answer, whyGone } from './connection.ts';
import * as failure from './failure.ts';
import { recordOf } from './raw.ts';
import type { TurnEvents } from './turn-events.ts';
import { createTurnUpdates } from './updates.ts';

export interface AgentPromptsParts extends Pick<ClientMethodsParts, 'agent' | 'workspace' | 'approvals' | 'commands'> {
  turn: Turn;
  stop: AbortSignal;
  events: TurnEvents;
  connection: AgentConnection;
  session: LiveAgentSession;
  cwd: string;
  /** Seconds of silence while the agent has nothing to do, and for its end after a cancel. */
  stallTimeoutS: number;
  cancelTimeoutS: number;
  now(): number;
}

/** How a prompt ended. `no_session`: the agent does not know its session, and has told and asked nothing. */
export type PromptEnd = { kind: 'no_session' } | { kind: 'ended'; end: RunnerEnd; answered: boolean };

export interface AgentPrompts {
  /** Prompts; resolves when the agent does nothing for it any more. @param blocks of the protocol's content */
  prompt(blocks: readonly object[]): Promise<PromptEnd>;
  /** Ends what is left of the turn, such as terminals. */
  close(): Promise<void>;
}

export function createAgentPrompts(parts: AgentPromptsParts): AgentPrompts {
  const { agent, turn, events, connection, session, cwd, now, workspace, approvals, commands } = parts;
  const updates = createTurnUpdates({ now, cwd, ledger: session.ledger });
  const watch = createStallWatch(parts.stop, parts.stallTimeoutS);
  const stopped = new Promise<'stopped'>((resolve) => watch.onStop(() => resolve('stopped')));
  let isInFlight = false;
  /** Whether anything was told that is an answer. */
  let hasShown = false;
  /** Whether anything was asked: then it has begun, and the prompt is not to be given a second time. */
  let hasAsked = false;
  let asking = 0;

  /** Silence counts only while the agent does nothing, and nothing is done for it. */
  const heard = (): void => {
    if (!isInFlight || asking > 0 || updates.busy()) watch.arrived();
    else watch.waiting();
  };
  const tell = (told: RunnerEvent[]): void => {
    hasShown ||= told.some(isAnswer);
    events.tell(told);
    heard();
  };
  const asked = createClientMethods({
    turn,
    agent,
    workspace,
    approvals,
    commands,
    updates,
    signal: watch.signal,
    tell: (told) => {
      if (isInFlight) tell(told);
    },
  });

  connection.listen({
    agentSessionId: session.id,
    room: () => (isInFlight ? events.room() : null),
    update(update) {
      const { sessionUpdate, currentModeId } = recordOf(update);
      // What it has changed by itself is chosen again by the next turn that wants another.
      if (sessionUpdate === 'current_mode_update' && typeof currentModeId === 'string')
        session.chosen.mode = currentModeId;
      if (isInFlight) tell(updates.take(update));
    },
    answered() {
      isInFlight = false;
    },
    async asked(work) {
      if (!isInFlight) return null;
      hasAsked = true;
      asking += 1;
      heard();
      try {
        return { value: await work(asked) };
      } finally {
        asking -= 1;
        heard();
      }
    },
  });

  /** Has the agent stop, or ends it. @returns whether it did so by itself */
  const cancel = async (answered: Promise<unknown>): Promise<boolean> => {
    connection.notify(methods.agent.session.cancel, { sessionId: session.id });
    const timer = new AbortController();
    const late = delay(timerMs(parts.cancelTimeoutS), false, { signal: timer.signal }).catch(() => false);
    const isSoon = await Promise.race([answered.then(() => connection.isOpen()), late]);
    timer.abort();
    if (!isSoon) await connection.close();
    return isSoon;
  };

  const endOf = (answer: Exclude<Answer, { kind: 'gone' | 'late' }>): RunnerEnd => {
    if (answer.kind === 'refused') return connection.failureOf(answer);
    const { stopReason } = recordOf(answer.result);
    if (stopReason === 'refusal') return failure.refusal(agent);
    // Some stop by themselves after a no of the person: that is an end like any other.
    if (stopReason === 'cancelled' && !hasShown) return failure.stoppedItself(agent);
    if (stopReason === 'max_tokens')
      events.tell([status('length', `${agent} reached its output limit; the answer may be cut.`)]);
    if (stopReason === 'max_turn_requests') {
      events.tell([status('max_steps', `${agent} stopped at the most steps that it takes in one turn.`)]);
    }
    return hasShown ? { kind: 'completed' } : failure.emptyReply(agent);
  };

  return {
    async prompt(prompt) {
      isInFlight = true;
      heard();
      const answered = connection.request(methods.agent.session.prompt, { sessionId: session.id, prompt }, null);
      const answer = await Promise.race([answered, stopped]);
      if (answer === 'stopped') {
        const isStalled = watch.stopped() === 'stalled';
        if (isStalled) events.tell(updates.promptEnded(undefined));
        isInFlight = false;
        const end = isStalled ? failure.stalled(agent, parts.stallTimeoutS) : failure.INTERRUPTED;
        return { kind: 'ended', end, answered: await cancel(answered) };
      }
      if (answer.kind === 'gone' || answer.kind === 'late') {
        isInFlight = false;
        events.tell(updates.promptEnded(undefined));
        return { kind: 'ended', end: await whyGone(agent, connection, 'turn'), answered: false };
      }
      const isUnknown = answer.kind === 'refused' && answer.code === failure.NOT_FOUND && !hasShown && !hasAsked;
      const usage = answer.kind === 'answered' ? recordOf(answer.result).usage : undefined;
      tell(updates.promptEnded(usage));
      return isUnknown ? { kind: 'no_session' } : { kind: 'ended', end: endOf(answer), answered: true };
    },

    async close() {
      connection.listen(null);
      watch.release();
      await asked.close();
    },
  };
}

const isAnswer = (event: RunnerEvent): boolean =>
  event.type === 'tool.start' || (event.type === 'message.delta' && event.payload.text.trim() !== '');

const status = (kind: string, text: string): RunnerEvent => ({ type: 'status', payload: { kind, text } });
