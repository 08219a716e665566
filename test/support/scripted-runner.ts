/**
 * A runner that a test plays by hand: each turn waits for the test to say what the agent does next, so that a test
 * stands at any moment of a turn without sleeping.
 */
import type { Runner, RunnerEnd, RunnerEvent, Turn } from '../../server/runners/runner.ts';

export interface PlayedTurn {
  turn: Turn;
  signal: AbortSignal;
  /** The agent says this. */
  say(...events: RunnerEvent[]): void;
  text(text: string): void;
  complete(): void;
  fail(error: Extract<RunnerEnd, { kind: 'failed' }>['error']): void;
}

export interface ScriptedRunner {
  runner: Runner;
  /** All turns that were begun, in order. */
  turns: PlayedTurn[];
  /** Resolves when turn number `index` (from 0) has begun. */
  turn(index: number): Promise<PlayedTurn>;
}

/**
 * @param play answers turns by itself; without it every turn waits for the test
 * @param isDeaf goes on after a stop, as an agent does that does not listen
 */
export function createScriptedRunner(
  play?: (turn: PlayedTurn) => void,
  { isDeaf = false }: { isDeaf?: boolean } = {},
): ScriptedRunner {
  const turns: PlayedTurn[] = [];
  const waiting: (() => void)[] = [];
  const runner: Runner = {
    kind: 'scripted',
    async *run(turn, signal) {
      const queue: (RunnerEvent | RunnerEnd)[] = [];
      let wake: () => void = () => {};
      const add = (...items: (RunnerEvent | RunnerEnd)[]): void => {
        queue.push(...items);
        wake();
      };
      const played: PlayedTurn = {
        turn,
        signal,
        say: (...events) => add(...events),
        text: (text) => add({ type: 'message.delta', payload: { text } }),
        complete: () => add({ kind: 'completed' }),
        fail: (error) => add({ kind: 'failed', error }),
      };
      turns.push(played);
      for (const tell of waiting.splice(0)) tell();
      signal.addEventListener('abort', () => wake());
      play?.(played);
      for (;;) {
        if (signal.aborted && !isDeaf) return { kind: 'completed' };
        const item = queue.shift();
        if (!item) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        } else if ('kind' in item) {
          return item;
        } else {
          yield item;
        }
      }
    },
  };
  return {
    runner,
    turns,
    async turn(index) {
      while (turns.length <= index) await new Promise<void>((resolve) => waiting.push(resolve));
      return turns[index]!;
    },
  };
}

/** A runner that answers every prompt with `echo: <prompt>` in two deltas. */
export const createEchoRunner = (): ScriptedRunner =>
  createScriptedRunner((turn) => {
    turn.say({ type: 'message.start', payload: {} });
    turn.text('echo: ');
    turn.text(turn.turn.input);
    turn.complete();
  });
