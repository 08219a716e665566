/**
 * Counts what code does, instead of timing it: how often each block of it ran. A busy machine makes no difference, so a
 * bound on the growth of the work can be sharp.
 */
import { Session } from 'node:inspector';

interface Coverage {
  result: { url: string; functions: { ranges: { startOffset: number; endOffset: number; count: number }[] }[] }[];
}

export interface WorkCounter {
  /** How often blocks ran while `work` did. */
  of(work: () => void): number;
  stop(): void;
}

/**
 * @param part a part of the path of every file whose blocks are counted. They are to be imported after this call, for code
 *   that has been compiled already counts none.
 */
export function countWork(part: string): WorkCounter {
  const session = new Session();
  session.connect();
  const ask = <T>(method: string, params: object = {}): T => {
    let answer: unknown;
    // Of an inspector in the same thread the answer is there when the call returns.
    session.post(method as 'Profiler.enable', params as never, (error: Error | null, result?: unknown) => {
      if (error) throw error;
      answer = result;
    });
    return answer as T;
  };
  ask('Profiler.enable');
  ask('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  const take = (): number =>
    ask<Coverage>('Profiler.takePreciseCoverage')
      .result.filter(({ url }) => url.includes(part))
      .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
      .reduce((sum, { count }) => sum + count, 0);
  return {
    of(work) {
      take(); // Counts begin anew with each look.
      work();
      return take();
    },
    stop() {
      ask('Profiler.stopPreciseCoverage');
      session.disconnect();
    },
  };
}
