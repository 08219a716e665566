/**
 * The lazy retry: a marker that was set while nothing could be read says so, and reads look again until the output
 * appears, or until it counts as lost (RE5). One read of a session tries at a time; the others are answered with what stands.
 * What is counted stands in the stored marker; where that is lost the marker itself says that it waits, and since when.
 */
import type { JournalStore } from '../../db/files/journal.ts';
import { type SidecarRow, toSidecarRow } from '../../db/files/sidecar-store.ts';
import { type DeadJournal, withJournal } from '../core/dead-turn.ts';
import { isMarkerId } from '../core/ids.ts';
import { markerError } from '../core/marker.ts';
import type { RawRow } from '../core/reconcile/row.ts';
import { isGivenUp, MAX_ATTEMPTS, type Retry, retryField, retryOf, withoutRetry } from '../core/retry-rules.ts';
import type { MarkerRecovery, Message } from '../core/terms.ts';
import type { Rewrite, Transcript, Transcripts } from '../sessions/transcripts.ts';
import { readDeadJournal } from './dead-journal.ts';

export interface JournalRetryParts {
  journals: JournalStore;
  transcripts: Transcripts;
  now(): number;
  log: { info(fields: object, message: string): void };
}

export interface JournalRetries {
  /**
   * Looks for the output that a marker waits for.
   * @returns what is to be done about it; null while the journal is still arriving, which costs nothing
   */
  look(sessionId: string, transcript: Transcript): Promise<Look | null>;
  /** Does it. Under the lease and the lock of the session; nothing when the marker is no longer as it was. */
  apply(sessionId: string, look: Look): Promise<void>;
}

/** What was found for one marker; no journal when the output counts as lost by now. */
export interface Look {
  markerId: string;
  retry: Retry;
  journal: DeadJournal | null;
}

interface Armed {
  at: number;
  stored: RawRow;
  retry: Retry;
}

export function createJournalRetries({ journals, transcripts, now, log }: JournalRetryParts): JournalRetries {
  return {
    async look(sessionId, transcript) {
      const armed = transcript.armed ? armedRow(transcript) : null;
      if (!armed) return null;
      const { retry } = armed;
      const markerId = transcript.rows[armed.at]!.id;
      // Given up: the journal is not looked at again.
      if (isGivenUp(retry, now())) return { markerId, retry, journal: null };
      const journal = await readDeadJournal(journals, sessionId, retry.runId);
      if (journal.state !== 'there') return null;
      const look = { markerId, retry, journal };
      return after(transcript, look) && look;
    },

    async apply(sessionId, look) {
      await transcripts.rewrite(sessionId, (current) => after(current, look), now());
      log.info({ session_id: sessionId, run_id: look.retry.runId }, 'looked again for the output of a dead turn');
    },
  };
}

/** The last marker that waits. */
function armedRow({ rows }: Transcript): Armed | null {
  for (let at = rows.length - 1; at >= 0; at -= 1) {
    const row = rows[at]!;
    if (!isMarkerId(row.id) && row.stored === undefined) continue;
    const stored = JSON.parse(row.stored ?? row.json) as RawRow;
    const retry = retryOf(stored);
    if (retry) return { at, stored, retry };
  }
  return null;
}

/** The transcript after one look; null when there is nothing new in it. */
function after(transcript: Transcript, { markerId, journal, retry: seen }: Look): Rewrite | null {
  const { rows } = transcript;
  const armed = armedRow(transcript);
  if (!armed || rows[armed.at]!.id !== markerId || armed.retry.attempts !== seen.attempts) return null;
  const { at, retry } = armed;
  const marker = JSON.parse(rows[at]!.json) as Message;
  const waits = marker.error?.recovery === 'pending';
  const place = (row: SidecarRow, shown: Message | null): Rewrite => ({
    rows: rows.with(at, row),
    healing: shown && { rows: [shown], inactive: [] },
    ended: false,
  });
  const again = (row: Message, more: Retry): SidecarRow => ({
    ...toSidecarRow(row),
    stored: JSON.stringify({ ...withoutRetry(armed.stored), ...row, ...retryField(more) }),
  });
  if (!journal) {
    const lost = waits ? told(marker, 'given_up') : marker;
    return place(toSidecarRow(lost), waits ? lost : null);
  }

  const before = rows.slice(0, at);
  const start = before.findLastIndex((row) => row.role === 'user') + 1;
  const standing = before.slice(start).map((row) => JSON.parse(row.json) as Message);
  const output = withJournal(standing, start, journal.rows);
  const added = output.filter((row): row is Message => typeof row !== 'number');
  const hasSaid = added.length > 0 || standing.some((row) => row.role === 'assistant' && row.content !== '');

  if (added.length > 0 || journal.error || (journal.ended && hasSaid)) {
    const isOver = journal.completed && hasSaid;
    const last = isOver ? [] : [journal.error ?? told(marker, 'recovered')];
    const toLast = (row: Message) => (journal.ended ? toSidecarRow(row) : again(row, retry));
    const turn = output.map((row) => (typeof row === 'number' ? rows[row]! : toSidecarRow(row)));
    return {
      rows: [...before.slice(0, start), ...turn, ...last.map(toLast), ...rows.slice(at + 1)],
      healing: { rows: [...added, ...last], inactive: last[0]?.id === marker.id ? [] : [marker.id] },
      ended: false,
    };
  }

  if (!waits) return null;
  const attempts = retry.attempts + 1;
  if (attempts < MAX_ATTEMPTS) return place(again(marker, { ...retry, attempts }), null);
  const lost = told(marker, 'given_up');
  return place(toSidecarRow(lost), lost);
}

/** The same marker with what is known now. */
function told(marker: Message, recovery: MarkerRecovery): Message {
  const error = markerError(marker.error?.cause ?? 'unknown', recovery);
  return { ...marker, content: error.message, status: 'error', error };
}
