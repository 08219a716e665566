/** Waiting for room in a connection. */
import type { Writable } from 'node:stream';

/** Resolves when a stream takes more, or is gone: a reader that leaves while its socket is full never drains. */
export function whenDrained(stream: Writable): Promise<void> {
  if (stream.destroyed || !stream.writableNeedDrain) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', done);
      resolve();
    };
    stream.on('drain', done);
    stream.on('close', done);
  });
}
