/** A signal ends a backup or a restore in order: what is unfinished is removed, then the process ends. A second one ends it at once. */
import { CommandError } from '../commands/command.ts';
import { EXIT, NOTHING_LEFT } from './trouble.ts';

/** Does work that SIGINT and SIGTERM abort. @throws what the work throws; CommandError when it was aborted */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = (): void => {
    free();
    controller.abort(new CommandError(`Interrupted. ${NOTHING_LEFT}`, EXIT.interrupted));
  };
  const free = (): void => {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  try {
    return await work(controller.signal);
  } finally {
    free();
  }
}
