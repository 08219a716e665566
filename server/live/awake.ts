/** Waiting that a sleep of the machine does not shorten. */

/** A sleep costs a wait at most this much: its time is counted in slices, and only one of them runs at once. */
const SLICE_S = 1;

/** Calls once this machine has been awake for so many seconds. Keeps no process alive. @returns what cancels it */
export function afterAwake(seconds: number, call: () => void): () => void {
  let left = seconds;
  let timer: NodeJS.Timeout | null = null;
  const tick = (): void => {
    if (left <= 0) {
      call();
      return;
    }
    const slice = Math.min(left, SLICE_S);
    left -= slice;
    timer = setTimeout(tick, slice * 1000).unref();
  };
  tick();
  return () => {
    if (timer) clearTimeout(timer);
  };
}
