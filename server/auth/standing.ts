/**
 * Open streams and the credentials they were opened with: a stream ends when its credential does (GW and SE6), and no
 * credential has more streams than its share. Owns which stream belongs to whom; looks every few seconds, for a
 * credential may be taken back by another process.
 */
import type { Subscriber } from '../live/subscriber.ts';
import type { Credentials, Identity } from './credentials.ts';

export interface Standing {
  /** Whether one more stream may be opened with this credential. */
  hasRoom(identity: Pick<Identity, 'share'>): boolean;
  /** Takes a stream in, or another answer that takes its time; it is let go when it ends. */
  hold(identity: Pick<Identity, 'key' | 'share'>, held: Held): void;
  /** Ends the streams whose credential stands no more. */
  look(): Promise<void>;
  stop(): void;
}

/** What ends with its credential. */
export type Held = Pick<Subscriber, 'close' | 'onEnd'>;

export interface StandingParts {
  credentials: Pick<Credentials, 'stands'>;
  /** Streams of one credential at once. */
  most: number;
  everyMs: number;
  log: { warn(fields: object, message: string): void };
}

export function createStanding({ credentials, most, everyMs, log }: StandingParts): Standing {
  const streams = new Map<string, Set<Held>>();
  const shares = new Map<string, number>();
  let timer: NodeJS.Timeout | null = null;

  const stop = (): void => {
    if (timer) clearInterval(timer);
    timer = null;
  };

  const look = async (): Promise<void> => {
    for (const [key, held] of [...streams]) {
      if (await credentials.stands(key)) continue;
      for (const subscriber of [...held]) subscriber.close('revoked');
    }
  };

  return {
    hasRoom: ({ share }) => (shares.get(share) ?? 0) < most,
    hold({ key, share }, subscriber) {
      const held = streams.get(key) ?? new Set();
      streams.set(key, held.add(subscriber));
      shares.set(share, (shares.get(share) ?? 0) + 1);
      timer ??= setInterval(
        () => void look().catch((error) => log.warn({ err: error }, 'credentials could not be looked at')),
        everyMs,
      ).unref();
      subscriber.onEnd(() => {
        held.delete(subscriber);
        const left = shares.get(share)! - 1;
        if (left > 0) shares.set(share, left);
        else shares.delete(share);
        if (held.size === 0 && streams.get(key) === held) streams.delete(key);
        if (streams.size === 0) stop();
      });
    },
    look,
    stop,
  };
}
