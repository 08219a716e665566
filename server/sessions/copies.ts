/**
 * Sessions that have a transcript from their beginning: forks, and imported ones. The row and its messages are one
 * transaction; the sidecar follows, and is made from the state DB by the first read if a crash came between (ED4).
 */
import type { NewCopy, Stores } from '../../db/stores.ts';
import type { ReachCrashPoint } from '../authority/crash-points.ts';
import { formatSessionId } from '../core/ids.ts';
import type { Recovery } from '../recovery/recovery.ts';
import { type SessionView, toSessionView } from './view.ts';

export interface CopiesParts {
  stores: Pick<Stores, 'edits'>;
  recovery: Pick<Recovery, 'heal'>;
  reached: ReachCrashPoint;
  /** Epoch seconds. */
  now(): number;
  /** Six hexadecimal digits, new each time. */
  newIdSuffix(): string;
  onChange(sessionId: string, reason: string): void;
}

/** `created_at` is null for now. */
export type Copy = Omit<NewCopy, 'session_id' | 'now' | 'created_at'> & { created_at: number | null };

/** Makes a session with these rows under a fresh id. */
export type MakeCopy = (copy: Copy) => Promise<SessionView>;

export function createCopies({ stores, recovery, reached, now, newIdSuffix, onChange }: CopiesParts): MakeCopy {
  return async (copy) => {
    for (;;) {
      const at = now();
      const session_id = formatSessionId(at, newIdSuffix());
      const created_at = copy.created_at ?? at;
      const outcome = await stores.edits.copy({ ...copy, created_at, session_id, now: at });
      if (outcome.kind === 'id_taken') continue;
      reached('edited');
      await recovery.heal(session_id);
      reached('edit-saved');
      onChange(session_id, 'created');
      return toSessionView(outcome.session, null);
    }
  };
}
