/**
 * Sessions that have a transcript from their beginning: forks, and imported ones. The row and its messages are one
 * transaction; the sidecar follows, and is made from the state DB by the first read if a crash came between (ED4).
 */
import type { AttachmentStore } from '../../db/files/attachment-store.ts';
import type { NewCopy, Stores } from '../../db/stores.ts';
import type { ReachCrashPoint } from '../authority/crash-points.ts';
import { formatSessionId } from '../core/ids.ts';
import type { Recovery } from '../recovery/recovery.ts';
import { type SessionView, toSessionView } from './view.ts';

export interface CopiesParts {
  stores: Pick<Stores, 'edits' | 'sessions'>;
  attachments: Pick<AttachmentStore, 'share'>;
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

/**
 * Makes a session with these rows under a fresh id.
 * @param from the session whose attachments the rows name; null when there are none to be had
 */
export type MakeCopy = (copy: Copy, from: string | null) => Promise<SessionView>;

export function createCopies(parts: CopiesParts): MakeCopy {
  const { stores, attachments, recovery, reached, now, newIdSuffix, onChange } = parts;

  return async (copy, from) => {
    const given = copy.rows.flatMap((row) => row.attachments ?? []);
    for (;;) {
      const at = now();
      const session_id = formatSessionId(at, newIdSuffix());
      const created_at = copy.created_at ?? at;
      if (from !== null && given.length > 0) {
        if (await stores.sessions.get(session_id)) continue;
        // First: the rows must never name what is not there. What a crash leaves of it is of no session, and harmless.
        await attachments.share(from, session_id, given);
      }
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
