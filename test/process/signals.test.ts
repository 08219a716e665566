/** What a signal asks for, by the time that has passed since the first. */
import { describe, expect, it } from 'vitest';
import { createSignalHandler } from '../../server/signals.ts';

function handler() {
  let now = 0;
  const exits: number[] = [];
  let closed: () => void = () => {};
  const onSignal = createSignalHandler({
    close: () => new Promise<void>((resolve) => (closed = resolve)),
    exit: (code) => void exits.push(code),
    monotonic: () => now,
    log: { info: () => {}, error: () => {} },
  });
  return { exits, onSignal, at: (ms: number) => (now = ms), close: () => closed() };
}

describe('signals', () => {
  it('[HT9] two signals of one key press are one wish: the server stops in order', async () => {
    const { exits, onSignal, at, close } = handler();
    onSignal('SIGINT');
    at(5);
    onSignal('SIGINT');
    expect(exits).toEqual([]);
    close();
    await expect.poll(() => exits).toEqual([0]);
  });

  it('[HT9] a later signal ends the process at once', () => {
    const { exits, onSignal, at } = handler();
    onSignal('SIGTERM');
    at(1_500);
    onSignal('SIGTERM');
    expect(exits).toEqual([1]);
  });
});
