/**
 * Writes of the drain, of a run and of its settle under storage trouble: tried again in place, from 0.25 s doubling to
 * 5 s, with everything that waits for them kept (CL3). Only a server that shuts down gives up.
 */
import { storageTroubleKind } from '../../db/storage-trouble.ts';

export type Persist = <T>(what: string, write: () => Promise<T>) => Promise<T>;

/** The server stopped before a write succeeded; what is durable so far is recovered at the next start. */
export class GaveUp extends Error {
  override name = 'GaveUp';
}

export interface PersistParts {
  /** Resolves after the pause or when the signal aborts. @param ms milliseconds */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Aborts when the server gives up waiting. */
  stop: AbortSignal;
  onTrouble?(kind: string): void;
  log: { warn(fields: object, message: string): void };
}

const FIRST_MS = 250;
const LONGEST_MS = 5_000;

export function createPersist({ sleep, stop, onTrouble, log }: PersistParts): Persist {
  return async (what, write) => {
    for (let pause = FIRST_MS; ; pause = Math.min(pause * 2, LONGEST_MS)) {
      try {
        return await write();
      } catch (error) {
        const kind = storageTroubleKind(error);
        if (kind === null) throw error;
        if (stop.aborted) throw new GaveUp(`${what}: ${kind}`, { cause: error });
        onTrouble?.(kind);
        log.warn({ what, kind, retry_in_ms: pause, err: error }, 'storage trouble, trying again');
      }
      await sleep(pause, stop);
      if (stop.aborted) throw new GaveUp(what);
    }
  };
}
