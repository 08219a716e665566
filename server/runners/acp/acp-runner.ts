/**
 * Turns with agents of others that speak the Agent Client Protocol (AC1). Owns which turn of a session may use its agent: a
 * turn that was stopped returns at once, what it started is brought to its end behind it, and the next one waits for that.
 */
import { timerMs } from '../../core/timer-ms.ts';
import type { Programs } from '../../workspace/programs.ts';
import type { RunnerEnd, RunnerEvent, Turn } from '../runner.ts';
import type { AgentTarget } from './agent-target.ts';
import { INTERRUPTED } from './failure.ts';
import { type PlayParts, playTurn } from './play-turn.ts';
import { createTurnEvents } from './turn-events.ts';
import { createWarmAgents, type WarmAgentsParts } from './warm-agents.ts';

export interface AcpRunnerParts
  extends Omit<PlayParts, 'agents'>,
    Pick<WarmAgentsParts, 'secrets' | 'env' | 'version'> {
  programs: Pick<Programs, 'start' | 'close'>;
  /** Resolves when agents that an earlier server left are ended: two must not work in one place. */
  ready(): Promise<void>;
  limits: PlayParts['limits'] & {
    /** Seconds that an agent is kept which does nothing. */
    idle_s: number;
    max_processes: number;
  };
  /** Told of what should not happen: a bug of ours, never a failure of an agent. */
  onBug(error: unknown): void;
}

export interface AcpRunner {
  /**
   * As `Runner.run`.
   * @param model in the agent's own words; null: what it takes by itself
   * @param mode the same
   */
  run(
    turn: Turn,
    signal: AbortSignal,
    target: AgentTarget,
    model: string | null,
    mode: string | null,
  ): AsyncGenerator<RunnerEvent, RunnerEnd, void>;
  /** Ends the agent of a session that is gone, and removes what it had. */
  forget(sessionId: string): Promise<void>;
  /** Turns that are not over on both sides. */
  running(): number;
  /** Ends all agents and waits until they are gone. Called when no turn runs. */
  close(): Promise<void>;
}

export function createAcpRunner(parts: AcpRunnerParts): AcpRunner {
  const { programs, secrets, env, version, limits, log } = parts;
  const agents = createWarmAgents({
    programs,
    secrets,
    env,
    version,
    startTimeoutS: limits.start_timeout_s,
    idleS: limits.idle_s,
    most: limits.max_processes,
    log,
  });
  /** The last turn of each session that is not over on both sides. */
  const unfinished = new Map<string, Promise<RunnerEnd>>();

  const begin = (sessionId: string, play: () => Promise<RunnerEnd>): Promise<RunnerEnd> => {
    const before = unfinished.get(sessionId) ?? Promise.resolve();
    const played = Promise.all([before, parts.ready()])
      .then(play)
      .catch((error: unknown) => {
        // The port's promise is that a runner never throws; whoever runs the server still has to hear of it.
        parts.onBug(error);
        return BUG;
      });
    unfinished.set(sessionId, played);
    void played.then(() => {
      if (unfinished.get(sessionId) === played) unfinished.delete(sessionId);
    });
    return played;
  };

  return {
    async *run(turn, signal, target, model, mode) {
      const left = new AbortController();
      const stop = AbortSignal.any([signal, left.signal]);
      const events = createTurnEvents();
      const play = { turn, stop, events, target, model, mode };
      let end: RunnerEnd | null = null;
      void begin(turn.sessionId, () => playTurn(play, { ...parts, agents })).then((ended) => {
        end = ended;
        events.wake();
      });
      signal.addEventListener('abort', events.wake, { once: true });
      try {
        for (;;) {
          // No race: each would leave something with a promise that lives as long as the turn.
          if (end === null && !signal.aborted) await events.some();
          if (signal.aborted) return INTERRUPTED;
          const ended: RunnerEnd | null = end;
          yield* events.take();
          if (ended) return ended;
        }
      } finally {
        signal.removeEventListener('abort', events.wake);
        left.abort();
        events.close();
      }
    },

    async forget(sessionId) {
      // Its last turn need not wait for an agent that is not needed any more.
      await agents.end(sessionId);
      await unfinished.get(sessionId);
      await agents.end(sessionId);
      await parts.folders.remove(sessionId);
    },

    running: () => unfinished.size,

    async close() {
      const all = Promise.all(unfinished.values());
      let timer: NodeJS.Timeout | undefined;
      const patience = new Promise((resolve) => {
        timer = setTimeout(resolve, timerMs(limits.cancel_timeout_s));
      });
      await Promise.race([all, patience]);
      clearTimeout(timer);
      await programs.close();
      await all;
    },
  };
}

const BUG: RunnerEnd = {
  kind: 'failed',
  error: {
    code: 'agent_crashed',
    message: 'The turn failed inside the server, not at the agent. The log says more. Try again.',
    retryable: true,
  },
};
