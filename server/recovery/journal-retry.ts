/**
 * The lazy retry: a marker that was set while nothing could be read says so, and reads look again until the output
 * appears, or until it counts as lost (RE5). One read of a session tries at a time; the others are answered with what stands.
 */
import type { JournalStore } from '../../db/files/journal.ts';
import { toSidecarRow } from '../../db/files/sidecar-store.ts';
import { type DeadJournal, withJournal } from '../core/dead-turn.ts';
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
  /** Whether the end of the transcript waits for output. Cheap: it looks back as far as the last ordinary answer. */
  isArmed(transcript: Transcript): boolean;
  /** Looks once. Under the lease and the lock of the session. */
  attempt(sessionId: string): Promise<void>;
}

interface Armed {
  at: number;
  stored: RawRow;
  retry: Retry;
}

export function createJournalRetries({ journals, transcripts, now, log }: JournalRetryParts): JournalRetries {
  return {
    isArmed: (transcript) => armedRow(transcript) !== null,

    async attempt(sessionId) {
      const armed = armedRow(await transcripts.read(sessionId));
      if (!armed) return;
      const { retry } = armed;
      // Given up by its age: the journal is not looked at again.
      const journal = isGivenUp(retry, now()) ? null : await readDeadJournal(journals, sessionId, retry.runId);
      if (journal && journal.state !== 'there') return; // Still arriving: costs nothing.
      await transcripts.rewrite(sessionId, (current) => after(current, journal), now());
      log.info({ session_id: sessionId, run_id: retry.runId }, 'looked again for the output of a dead turn');
    },
  };
}

/** The marker that waits, from the end back to the last ordinary answer. */
function armedRow({ rows }: Transcript): Armed | null {
  for (let at = rows.length - 1; at >= 0; at -= 1) {
    const row = rows[at]!;
    if (row.stored?.includes('_journal_retry')) {
      const stored = JSON.parse(row.stored) as RawRow;
      const retry = retryOf(stored);
      if (retry) return { at, stored, retry };
    }
    if (row.role === 'assistant' && !row.json.includes('"status":"error"')) return null;
  }
  return null;
}

/** The transcript after one look. @param journal null when it was given up before */
function after(transcript: Transcript, journal: DeadJournal | null): Rewrite | null {
  const armed = armedRow(transcript);
  if (!armed) return null;
  const { rows } = transcript;
  const { at, retry } = armed;
  const marker = JSON.parse(rows[at]!.json) as Message;
  const [before, behind] = [rows.slice(0, at), rows.slice(at + 1)];
  const start = before.findLastIndex((row) => row.role === 'user') + 1;
  const standing = before.slice(start).map((row) => JSON.parse(row.json) as Message);

  if (journal && (journal.rows.length > 0 || journal.error)) {
    const output = withJournal(standing, start, journal.rows);
    const added = output.filter((row): row is Message => typeof row !== 'number');
    const last = journal.completed ? [] : [journal.error ?? told(marker, 'recovered')];
    const turn = output.map((row) => (typeof row === 'number' ? rows[row]! : toSidecarRow(row)));
    return {
      rows: [...before.slice(0, start), ...turn, ...last.map(toSidecarRow), ...behind],
      healing: { rows: [...added, ...last], inactive: last[0]?.id === marker.id ? [] : [marker.id] },
      ended: false,
    };
  }

  if (journal?.completed && standing.some((row) => row.role === 'assistant' && row.content !== '')) {
    return { rows: [...before, ...behind], healing: { rows: [], inactive: [marker.id] }, ended: false };
  }

  const attempts = retry.attempts + 1;
  if (journal && attempts < MAX_ATTEMPTS) {
    const stored = JSON.stringify({ ...withoutRetry(armed.stored), ...retryField({ ...retry, attempts }) });
    return { rows: rows.with(at, { ...rows[at]!, stored }), healing: null, ended: false };
  }
  const lost = told(marker, 'given_up');
  return { rows: rows.with(at, toSidecarRow(lost)), healing: { rows: [lost], inactive: [] }, ended: false };
}

/** The same marker with what is known now. */
function told(marker: Message, recovery: MarkerRecovery): Message {
  const error = markerError(marker.error?.cause ?? 'unknown', recovery);
  return { ...marker, content: error.message, status: 'error', error };
}
