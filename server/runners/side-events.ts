/** Events that come while something else is awaited: kept in order until the loop of a turn takes them. */
import type { RunnerEvent } from './runner.ts';

export interface SideEvents {
  tell(event: RunnerEvent): void;
  /** Resolves with null as soon as there is something to take. */
  some(): Promise<null>;
  /** What there is, oldest first. */
  take(): RunnerEvent[];
}

export function createSideEvents(): SideEvents {
  let kept: RunnerEvent[] = [];
  let wake = (): void => {};
  return {
    tell(event) {
      kept.push(event);
      wake();
    },
    some: () =>
      new Promise((resolve) => {
        wake = () => resolve(null);
        if (kept.length > 0) wake();
      }),
    take() {
      const taken = kept;
      kept = [];
      return taken;
    },
  };
}
