/**
 * A turn that a sidecar calls pending and no admission knows: one of another program, or of ours when the state DB was
 * lost. Once nobody can be running it any more it is settled from its journal and the rows that any store has.
 */
import type { JournalStore } from '../../db/files/journal.ts';
import { type SidecarHeader, type SidecarRow, toSidecarRow } from '../../db/files/sidecar-store.ts';
import type { Stores } from '../../db/stores.ts';
import { type PendingPrompt, settleDeadTurn } from '../core/dead-turn.ts';
import { isRunId } from '../core/ids.ts';
import { isMarker } from '../core/marker.ts';
import { retryField } from '../core/retry-rules.ts';
import type { Message } from '../core/terms.ts';
import type { Transcript, Transcripts } from '../sessions/transcripts.ts';
import { readDeadJournal } from './dead-journal.ts';

/** Seconds in which a turn of another program may be running without having shown a sign of it (RE2). */
export const GRACE_S = 30;

export interface ForeignTurnParts {
  stores: Pick<Stores, 'admissions' | 'sessions'>;
  journals: JournalStore;
  transcripts: Transcripts;
  now(): number;
  /** A stable id of 32 hexadecimal digits for a turn that has none. */
  runIdFor(text: string): string;
  log: { info(fields: object, message: string): void };
}

export interface ForeignTurns {
  /** Whether the file names a turn that may have to be settled. Cheap. */
  isPending(transcript: Transcript): boolean;
  /**
   * Settles it, if it is nobody's. Under the lease and the lock of the session.
   * @param force also when it is so young that it may still run: the session goes on with a turn of ours
   */
  settle(sessionId: string, force: boolean): Promise<void>;
}

export function createForeignTurns(parts: ForeignTurnParts): ForeignTurns {
  const { stores, journals, transcripts, now } = parts;

  /** The turn is of one of our admissions: as that says. */
  async function isOfAdmission(sessionId: string, header: SidecarHeader): Promise<'no' | 'open' | 'ended'> {
    const { active_stream_id: runId } = header;
    if (typeof runId !== 'string' || !isRunId(runId)) return 'no';
    const admission = await stores.admissions.byRun(sessionId, runId);
    if (!admission) return 'no';
    return admission.status === 'terminal' ? 'ended' : 'open';
  }

  const pendingOf = (header: SidecarHeader): PendingPrompt => {
    const { active_stream_id: stream, pending_user_message: text, pending_started_at: startedAt } = header;
    return {
      runId:
        typeof stream === 'string' && isRunId(stream)
          ? stream
          : parts.runIdFor(JSON.stringify([stream, text, startedAt])),
      text: text ?? '',
      attachments: namesOf(header.pending_attachments),
      startedAt: isTime(startedAt) ? startedAt : null,
    };
  };

  /** A time that is far ahead says as little as none. */
  const isYoung = ({ active_stream_id: stream, pending_started_at: startedAt }: SidecarHeader): boolean =>
    isText(stream) && isTime(startedAt) && Math.abs(now() - startedAt) < GRACE_S;

  return {
    isPending: ({ header }) =>
      header !== null && (isText(header.active_stream_id) || isText(header.pending_user_message)),

    async settle(sessionId, force) {
      const transcript = await transcripts.read(sessionId);
      const { header } = transcript;
      if (!header || !this.isPending(transcript)) return;
      const ours = await isOfAdmission(sessionId, header);
      if (ours === 'open') return;
      if (ours === 'ended') return transcripts.save(sessionId, { rows: [], pending: null, now: now() });
      if (isYoung(header) && !force) return;
      // Its turn goes on in another session: this one is a record of what was before.
      if (header.pre_compression_snapshot === true || (await stores.sessions.isContinued(sessionId))) return;
      const pending = pendingOf(header);
      const journal = await readDeadJournal(journals, sessionId, pending.runId);
      await transcripts.rewrite(sessionId, (current) => settled(current, pending, journal), now());
      parts.log.info({ session_id: sessionId, run_id: pending.runId }, 'settled a turn of another program');
    },
  };

  function settled(
    { rows, header }: Transcript,
    pending: PendingPrompt,
    journal: Awaited<ReturnType<typeof readDeadJournal>>,
  ) {
    // Of a turn without a prompt there is nothing to restore; what it left in the stores is in the rows already.
    if (!isText(header?.pending_user_message)) return { rows, healing: null, ended: true };
    const messages = rows.map((row) => JSON.parse(row.json) as Message);
    const turn = settleDeadTurn({ rows: messages, pending, journal, cause: causeOf(header), now: now() });
    const known = new Set(rows.map((row) => row.id));
    const added: Message[] = [];
    const after = turn.rows.map((row): SidecarRow => {
      if (typeof row === 'number') return rows[row]!;
      // A row that stands was given its person's own text: what the agent made of it stays in the state DB.
      if (!known.has(row.id)) added.push(row);
      return turn.armed && isMarker(row) ? armed(row, pending.runId) : toSidecarRow(row);
    });
    return { rows: after, healing: { rows: added, inactive: [], flag: 'recovered' }, ended: true };
  }

  function armed(marker: Message, runId: string): SidecarRow {
    const retry = retryField({ runId, attempts: 0, firstSeen: now() });
    return { ...toSidecarRow(marker), stored: JSON.stringify({ ...marker, ...retry }) };
  }
}

/** Who lost what is known only as far as the file names a stream. */
const causeOf = (header: SidecarHeader | null) =>
  isText(header?.active_stream_id) ? ('lost_bookkeeping' as const) : ('unknown' as const);

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value > 0;

/** Attachments are names, or objects of another program that have one. */
function namesOf(attachments: unknown): string[] {
  if (!Array.isArray(attachments)) return [];
  return attachments.flatMap((one: unknown) => {
    if (typeof one === 'string') return [one];
    const name = typeof one === 'object' && one !== null && 'name' in one ? one.name : null;
    return typeof name === 'string' ? [name] : [];
  });
}
