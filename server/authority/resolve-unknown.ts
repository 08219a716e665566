/**
 * Ending a turn of unknown fate, by a person's decision. What it had shown is brought into its transcript in the same
 * step, once: its rows are the fold of its journal as everywhere (EV4), and where the journal says no end, a marker does.
 * The row ends as interrupted, whatever its agent had said last; the journal is made to say the same.
 */
import type { JournalRead, JournalStore } from '../../db/files/journal.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import type { Stores, TurnEnd } from '../../db/stores.ts';
import { completionOf } from '../core/completion.ts';
import { journalTime, type MessageComplete, type StampedEvent } from '../core/events.ts';
import { createFold } from '../core/fold.ts';
import { isPromptId } from '../core/ids.ts';
import type { Retry } from '../core/retry-rules.ts';
import type { Admission, Message } from '../core/terms.ts';
import type { Leases } from '../lease/leases.ts';
import { runLiveEvent } from '../live/live-event.ts';
import type { LiveRegistry } from '../live/registry.ts';
import { endOf } from '../recovery/dead-journal.ts';
import { sealJournal, startOf } from '../recovery/seal-journal.ts';
import type { SessionLock } from '../sessions/session-lock.ts';
import type { Transcripts } from '../sessions/transcripts.ts';
import type { Doubts } from './doubts.ts';

export interface ResolveUnknownParts {
  stores: Pick<Stores, 'admissions' | 'messages'>;
  journals: JournalStore;
  transcripts: Transcripts;
  lock: SessionLock;
  leases: Leases;
  registry: LiveRegistry;
  doubts: Doubts;
  now(): number;
  /** The row has ended, and everything that is known of it is kept. */
  onResolved(sessionId: string, admissionId: string): void;
  log: { warn(fields: object, message: string): void };
}

type Resolved = Awaited<ReturnType<Stores['admissions']['resolve']>>;

/** Ends one row, if it is of unknown fate. @throws AppError session_not_owned */
export type ResolveUnknown = (sessionId: string, admissionId: string) => Promise<Resolved>;

interface Ending {
  end: TurnEnd;
  saved: { rows: readonly Message[]; retry?: Retry };
  sealed: StampedEvent;
}

export function createResolveUnknown(parts: ResolveUnknownParts): ResolveUnknown {
  const { stores, journals, transcripts, lock, leases, registry, doubts, now, log } = parts;

  /** What is known of the turn, with its journal brought to its end. */
  async function endingOf(admission: Admission): Promise<Ending> {
    const { session_id, run_id, admission_id: admissionId } = admission;
    const read = await journals.read(session_id, run_id);
    const records = read?.records ?? [];
    const fold = createFold(run_id);
    for (const { event } of records) fold.apply(event, event.created_at);
    if (records.length === 0) fold.apply(startOf(admission), admission.started_at!);
    // Before its sidecar named it a run had no journal that could have been lost.
    const isLost = records.length === 0 && (await transcripts.read(session_id)).header?.active_stream_id === run_id;
    const committed = await stores.messages.list(session_id);
    fold.adopt(committed.filter((row) => row.run_id === run_id && !isPromptId(row.id)));
    const last = records.at(-1)?.event;
    const said = last?.type === 'message.complete' ? last : null;
    const at = said?.created_at ?? journalTime(now());
    fold.end(said ? endOf(interrupted(said.payload)) : { kind: 'dead', cause: CAUSE, armed: isLost }, at);
    const rows = fold.rows().slice(1);
    const complete = completionOf({
      admissionId,
      outcome: 'interrupted',
      rows,
      usage: said?.payload.usage ?? fold.usage(),
      error: rows.at(-1)?.error ?? null,
      ...(said ? {} : { cause: CAUSE }),
    });
    const isSaid = said?.payload.outcome === 'interrupted';
    // Another end was shown to nobody: the line that says it is kept aside.
    const found = read && said ? withoutLast(read) : read;
    const sealed = isSaid ? said : await sealJournal(journals, admission, found, complete, at);
    const { message_id, usage } = complete;
    const flag = said ? {} : { flag: 'recovered' };
    const retry: Retry = { runId: run_id, attempts: 0, firstSeen: sealed.created_at };
    return {
      end: { error: complete.error ?? null, message_id, last_seq: sealed.seq, rows, usage, ...flag },
      saved: { rows: fold.rows(), ...(complete.error?.recovery === 'pending' ? { retry } : {}) },
      sealed,
    };
  }

  async function commit(admission: Admission): Promise<Resolved> {
    const { session_id: sessionId, admission_id: admissionId } = admission;
    // It had been ended properly once: its rows, its journal and its counts are what they should be.
    const ending = admission.last_seq === null ? await endingOf(admission) : null;
    const tell = async (): Promise<void> => {
      // Without awaiting: readers that catch up from here on find it in the journal, those that are live get it now.
      registry.peek(sessionId)?.publishEnd(admission.generation!, ending && runLiveEvent(ending.sealed));
      await saveSidecar(admission, ending);
      parts.onResolved(sessionId, admissionId);
    };
    const write = () => stores.admissions.resolve(sessionId, admissionId, now(), ending?.end);
    const outcome = await doubts.during([admissionId], write, async () => {
      const found = await stores.admissions.get(sessionId, admissionId);
      if (doubts.take(admissionId) && found?.status === 'terminal') await lock(sessionId, tell);
    });
    if (outcome.kind === 'resolved') await tell();
    return outcome;
  }

  /** The state DB has it all: a sidecar that cannot be saved now is healed by the next read. */
  async function saveSidecar(
    { session_id: sessionId, run_id: runId }: Admission,
    ending: Ending | null,
  ): Promise<void> {
    transcripts.forget(sessionId);
    try {
      await transcripts.save(sessionId, { rows: [], pending: null, ...ending?.saved, now: now(), runId });
    } catch (error) {
      if (storageTroubleKind(error) === null) throw error;
      log.warn({ err: error, session_id: sessionId }, 'the sidecar of a resolved turn is left to the next read');
    }
  }

  return async function resolveUnknown(sessionId, admissionId) {
    const release = registry.hold(sessionId);
    try {
      return await lock(sessionId, async (): Promise<Resolved> => {
        const admission = await stores.admissions.get(sessionId, admissionId);
        if (!admission) return { kind: 'not_found' };
        if (admission.status !== 'unknown') return { kind: 'not_unknown', admission };
        await leases.own(registry.open(sessionId));
        return commit(admission);
      });
    } finally {
      release();
    }
  };
}

/** Why it has no end is what nobody could say (RE4). */
const CAUSE = 'unknown';

/** The end that an agent had come to, told as the person wants it; nothing of what it said is lost. */
const interrupted = (complete: MessageComplete): MessageComplete => ({ ...complete, status: 'interrupted' });

function withoutLast(read: JournalRead): JournalRead {
  const bytes = Buffer.byteLength(read.records.at(-1)!.line) + 1;
  return { records: read.records.slice(0, -1), validBytes: read.validBytes - bytes, rest: 'torn' };
}
