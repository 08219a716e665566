/** Points at which code under test is stopped and let go by hand, so that a race has the order that a test wants. */

export interface Steps {
  /** From now on whoever comes to this point waits there. */
  hold(point: string): void;
  /** Resolves when somebody waits at this point. */
  reached(point: string): Promise<void>;
  /** Lets everybody go on who waits there, and holds the next one again. */
  go(point: string): void;
  /** Lets everybody go on, and holds nobody any more. */
  free(point: string): void;
  /** For the code under test: waits if this point is held. */
  pass(point: string): Promise<void>;
}

export function createSteps(): Steps {
  const held = new Set<string>();
  const waiting = new Map<string, (() => void)[]>();
  const watching = new Map<string, (() => void)[]>();
  const take = (from: Map<string, (() => void)[]>, point: string): (() => void)[] => {
    const all = from.get(point) ?? [];
    from.delete(point);
    return all;
  };
  const add = (to: Map<string, (() => void)[]>, point: string, tell: () => void): void => {
    to.set(point, [...(to.get(point) ?? []), tell]);
  };
  const go = (point: string): void => {
    for (const tell of take(waiting, point)) tell();
  };
  return {
    hold: (point) => void held.add(point),
    async reached(point) {
      if (waiting.has(point)) return;
      await new Promise<void>((resolve) => add(watching, point, resolve));
    },
    go,
    free(point) {
      held.delete(point);
      go(point);
    },
    async pass(point) {
      if (!held.has(point)) return;
      await new Promise<void>((resolve) => {
        add(waiting, point, resolve);
        for (const tell of take(watching, point)) tell();
      });
    },
  };
}
