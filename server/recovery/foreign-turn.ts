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
import { causeOf, isText, isYoung, runOf } from '../core/pending-turn.ts';
import { contentText } from '../core/reconcile/row.ts';
import { retryField } from '../core/retry-rules.ts';
import type { Message } from '../core/terms.ts';
import { wellFormed } from '../core/text.ts';
import type { Transcript, Transcripts } from '../sessions/transcripts.ts';
import { readDeadJournal } from './dead-journal.ts';

export interface ForeignTurnParts {
  stores: Pick<Stores, 'admissions' | 'sessions'>;
  journals: JournalStore;
  transcripts: Transcripts;
  now(): number;
  /** A stable id of 32 hexadecimal digits for a turn that has none. */
  runIdFor(text: string): string;
  log: { info(fields: object, message: string): void };
}

/**
 * `none`: no turn is named. `ours`: an admission has it and says the rest. `ended`: its admission has ended, the fields stayed.
 * `young`: it may still run. `continued`: it goes on in another session. `due`: it is nobody's, and is to be settled.
 */
export type PendingVerdict = 'none' | 'ours' | 'ended' | 'young' | 'continued' | 'due';

export interface ForeignTurns {
  /** Whether the file names a turn, whosoever it is. Cheap. */
  isPending(transcript: Transcript): boolean;
  /** Whose it is, and what is to be done: reads, and writes nothing. */
  judge(sessionId: string, transcript: Transcript): Promise<PendingVerdict>;
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
    if (admission.status !== 'terminal') return 'open';
    // The fields of an ended run may have been taken over for another prompt.
    const text = textOf(header.pending_user_message);
    return text === '' || text === admission.text ? 'ended' : 'no';
  }

  const pendingOf = (header: SidecarHeader): PendingPrompt => {
    const { active_stream_id: stream, pending_user_message: text, pending_started_at: startedAt } = header;
    const attachments = namesOf(header.pending_attachments);
    return { ...runOf(stream, text, startedAt, parts.runIdFor), text: textOf(text), attachments };
  };

  const isPending = ({ header }: Transcript): boolean =>
    header !== null && (isText(header.active_stream_id) || textOf(header.pending_user_message) !== '');

  async function judge(sessionId: string, transcript: Transcript): Promise<PendingVerdict> {
    const { header } = transcript;
    if (!header || !isPending(transcript)) return 'none';
    const ours = await isOfAdmission(sessionId, header);
    if (ours !== 'no') return ours === 'open' ? 'ours' : 'ended';
    if (isText(header.active_stream_id) && isYoung(header.pending_started_at, now())) return 'young';
    // Its turn goes on in another session: this one is a record of what was before.
    const isRecord = header.pre_compression_snapshot === true || (await stores.sessions.isContinued(sessionId));
    return isRecord ? 'continued' : 'due';
  }

  return {
    isPending,
    judge,

    async settle(sessionId, force) {
      const transcript = await transcripts.read(sessionId);
      const verdict = await judge(sessionId, transcript);
      if (verdict === 'ended') return transcripts.save(sessionId, { rows: [], pending: null, now: now() });
      if (verdict !== 'due' && !(verdict === 'young' && force)) return;
      const header = transcript.header!;
      const pending = pendingOf(header);
      const journal = await readDeadJournal(journals, sessionId, pending.runId);
      const isSame = (current: Transcript): boolean =>
        current.header !== null && turnKey(current.header) === turnKey(header);
      await transcripts.rewrite(
        sessionId,
        // Another turn may have begun there since.
        (current) => (isSame(current) ? settled(current, pending, journal) : null),
        now(),
      );
      parts.log.info({ session_id: sessionId, run_id: pending.runId }, 'settled a turn of another program');
    },
  };

  function settled(
    { rows, header }: Transcript,
    pending: PendingPrompt,
    journal: Awaited<ReturnType<typeof readDeadJournal>>,
  ) {
    // Of a turn without a prompt there is nothing to restore; what it left in the stores is in the rows already.
    if (textOf(header?.pending_user_message) === '') return { rows, healing: null, ended: true };
    const messages = rows.map((row) => JSON.parse(row.json) as Message);
    const turn = settleDeadTurn({
      rows: messages,
      pending,
      journal,
      cause: causeOf(header?.active_stream_id),
      now: now(),
    });
    const known = new Set(rows.map((row) => row.id));
    const added: Message[] = [];
    const after = turn.rows.map((row): SidecarRow => {
      if (typeof row === 'number') return rows[row]!;
      // A row that stands was given its person's own text: what the agent made of it stays in the state DB.
      if (!known.has(row.id)) added.push(row);
      return turn.armed && isMarker(row) ? armed(row, pending.runId) : toSidecarRow(row);
    });
    return { rows: after, healing: { rows: added, inactive: [], flags: ['recovered'] }, ended: true };
  }

  function armed(marker: Message, runId: string): SidecarRow {
    const retry = retryField({ runId, attempts: 0, firstSeen: now() });
    return { ...toSidecarRow(marker), stored: JSON.stringify({ ...marker, ...retry }) };
  }
}

/** What tells one pending turn from another. */
const turnKey = (header: SidecarHeader): string =>
  JSON.stringify([header.active_stream_id, header.pending_user_message, header.pending_started_at]);

/** What a person wrote, in whatever form their program keeps it. */
const textOf = (value: unknown): string =>
  typeof value === 'number' ? String(value) : wellFormed(contentText(value, '[image]'));

/** Attachments are names, or objects of another program that have one. */
function namesOf(attachments: unknown): string[] {
  if (!Array.isArray(attachments)) return [];
  return attachments.flatMap((one: unknown) => {
    if (typeof one === 'string') return [one];
    const name = typeof one === 'object' && one !== null && 'name' in one ? one.name : null;
    return typeof name === 'string' ? [name] : [];
  });
}
