/**
 * Recovery: what a dead process left of a session is resolved before the session is read or its queue moves, once,
 * whoever asks first (RE1, RE2). Evidence in this order: an admission that already ended; a sealed journal; the
 * journal's events. A turn is never executed again, and nothing is deleted.
 */
import { fenceOf } from '../../db/admission-store.ts';
import type { JournalRead, JournalStore } from '../../db/files/journal.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import type { OpenRow, SessionRow, Stores } from '../../db/stores.ts';
import { completionOf } from '../core/completion.ts';
import { journalTime, type MessageComplete, type StampedEvent } from '../core/events.ts';
import { createFold, type Fold } from '../core/fold.ts';
import { isPromptId } from '../core/ids.ts';
import type { Retry } from '../core/retry-rules.ts';
import type { Admission, Message, ProcessIdentity } from '../core/terms.ts';
import type { Leases } from '../lease/leases.ts';
import type { LiveRegistry } from '../live/registry.ts';
import type { SessionLock } from '../sessions/session-lock.ts';
import type { Transcript, Transcripts } from '../sessions/transcripts.ts';
import { endOf } from './dead-journal.ts';
import type { ForeignTurns } from './foreign-turn.ts';
import type { JournalRetries } from './journal-retry.ts';
import { sealJournal, startOf } from './seal-journal.ts';

export interface RecoveryParts {
  stores: Pick<Stores, 'admissions' | 'sessions' | 'epochs' | 'messages'>;
  journals: JournalStore;
  transcripts: Transcripts;
  lock: SessionLock;
  leases: Leases;
  registry: LiveRegistry;
  foreignTurns: ForeignTurns;
  retries: JournalRetries;
  epoch: number;
  isAlive(process: ProcessIdentity): boolean;
  now(): number;
  onRecovered(sessionId: string, admissionId: string): void;
  log: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>;
}

export interface Recovery {
  /** Resolves the turns of dead processes in this session, if there are any. Cheap when there are none. */
  ensure(session: SessionRow): Promise<void>;
  /** Those of the open prompts that ran in a process which is proven dead. */
  deadTurns(open: readonly OpenRow[]): Promise<OpenRow[]>;
  /** Who else runs a turn of this session right now; null when nobody does. */
  runsElsewhere(session: SessionRow): Promise<ProcessIdentity | null>;
  /** Whether a store lacks something, a turn of another program is pending, or lost output may have appeared. */
  needsHealing(transcript: Transcript): boolean;
  /** Does something about it. Not now is no failure: the next read tries again (RE3). */
  heal(sessionId: string): Promise<void>;
  /** Whether another program has a turn pending in this session that is not settled, and perhaps not over. */
  isTakenByOthers(sessionId: string): Promise<boolean>;
  /** Settles what another program calls pending, before a turn of ours takes its place in the sidecar. Under the lease. */
  beforeRun(sessionId: string): Promise<void>;
}

export function createRecovery(parts: RecoveryParts): Recovery {
  const { stores, journals, transcripts, lock, leases, registry, now, log } = parts;
  const { foreignTurns, retries } = parts;
  const running = new Map<string, Promise<void>>();
  const healing = new Map<string, Promise<void>>();
  const retrying = new Set<string>();
  /** A dead epoch never lives again. */
  const deadEpochs = new Set<number>();

  async function isDead(epoch: number): Promise<boolean> {
    if (epoch === parts.epoch) return false;
    if (deadEpochs.has(epoch)) return true;
    const process = await stores.epochs.process(epoch);
    if (process && !process.ended && parts.isAlive(process)) return false;
    deadEpochs.add(epoch);
    return true;
  }

  async function deadTurns(open: readonly OpenRow[]): Promise<OpenRow[]> {
    const dead: OpenRow[] = [];
    for (const row of open) {
      if (row.status === 'started' && row.epoch !== null && (await isDead(row.epoch))) dead.push(row);
    }
    return dead;
  }

  async function recover(sessionId: string): Promise<void> {
    const release = registry.hold(sessionId);
    const live = registry.open(sessionId);
    try {
      if ((await leases.acquire(live)) !== 'granted') return; // Its owner does it.
      const session = await stores.sessions.get(sessionId);
      for (const row of await deadTurns(session?.open ?? [])) {
        const admission = await stores.admissions.get(sessionId, row.admission_id);
        if (admission?.status === 'started') await lock(sessionId, () => recoverTurn(admission));
      }
      await leases.releaseIdle(live);
    } finally {
      release();
    }
  }

  async function recoverTurn(admission: Admission): Promise<void> {
    const { session_id: sessionId, run_id: runId } = admission;
    const read = await journals.read(sessionId, runId);
    const { header } = await transcripts.read(sessionId);
    // Before its sidecar named it a run had no journal that could have been lost.
    const isLost = !read?.records.length && header?.active_stream_id === runId;
    const fold = createFold(runId);
    for (const { event } of read?.records ?? []) fold.apply(event, event.created_at);
    if (!read?.records.length) fold.apply(startOf(admission), admission.started_at!);
    // Of a run whose journal is lost, what reached the state DB is all there is.
    fold.adopt(await committedRows(admission));
    const last = read?.records.at(-1)?.event;
    const sealed = last?.type === 'message.complete' ? last : await seal(admission, fold, read, isLost);
    if (last?.type === 'message.complete') fold.end(endOf(last.payload), last.created_at);
    const rows = fold.rows().slice(1);
    const complete = sealed.payload as MessageComplete;
    const died = complete.cause !== undefined;
    const { outcome } = complete;
    const settled = await stores.admissions.settle({
      fence: fenceOf(admission),
      outcome,
      error: complete.error ?? null,
      message_id: complete.message_id,
      last_seq: sealed.seq,
      rows,
      usage: complete.usage,
      ...(died ? { flag: 'recovered' } : {}),
      now: now(),
    });
    if (settled === 'fenced') {
      // Its session has moved on without it: nobody may guess, a person decides.
      const { admission_id } = admission;
      log.warn({ session_id: sessionId, admission_id }, 'a dead turn lost its fence: left unknown');
      await stores.admissions.markUnknown(admission_id);
      return;
    }
    // What was kept of the transcript was read while this turn counted as running.
    transcripts.forget(sessionId);
    const armed = complete.error?.recovery === 'pending';
    const retry: Retry = { runId, attempts: 0, firstSeen: sealed.created_at };
    await transcripts.save(sessionId, {
      rows: fold.rows(),
      pending: null,
      now: now(),
      runId,
      ...(armed ? { retry } : {}),
    });
    log.info(
      { session_id: sessionId, run_id: runId, admission_id: admission.admission_id, outcome },
      'recovered a turn',
    );
    parts.onRecovered(sessionId, admission.admission_id);
  }

  async function committedRows({ session_id, run_id }: Admission): Promise<Message[]> {
    const rows = await stores.messages.list(session_id);
    return rows.filter((row) => row.run_id === run_id && !isPromptId(row.id));
  }

  /** Ends the journal of a dead run: a torn tail is copied aside and cut, then the terminal event follows. */
  async function seal(
    admission: Admission,
    fold: Fold,
    read: JournalRead | null,
    isLost: boolean,
  ): Promise<StampedEvent> {
    const at = journalTime(now());
    // By the time of the line that ends it, so that reading it back gives the same marker.
    fold.end({ kind: 'dead', cause: 'process_restart', armed: isLost }, at);
    const rows = fold.rows().slice(1);
    const complete = completionOf({
      admissionId: admission.admission_id,
      outcome: 'interrupted',
      rows,
      usage: fold.usage(),
      error: rows.at(-1)?.error ?? null,
      cause: 'process_restart',
    });
    return sealJournal(journals, admission, read, complete, at);
  }

  /** Settles, and writes what a store lacks, if there is anything of the kind. */
  async function repair(sessionId: string): Promise<void> {
    const transcript = await transcripts.read(sessionId);
    const verdict = await foreignTurns.judge(sessionId, transcript);
    if (!transcript.behind && verdict !== 'due' && verdict !== 'ended') return;
    await withLease(sessionId, async () => {
      await foreignTurns.settle(sessionId, false);
      if ((await transcripts.read(sessionId)).behind) await transcripts.heal(sessionId, now());
    });
  }

  /** Looks for output that a marker waits for; whoever comes meanwhile is answered with what stands. */
  async function retry(sessionId: string): Promise<void> {
    const transcript = await transcripts.read(sessionId);
    if (!transcript.armed || retrying.has(sessionId)) return;
    retrying.add(sessionId);
    try {
      const look = await retries.look(sessionId, transcript);
      if (look) await withLease(sessionId, () => retries.apply(sessionId, look));
    } finally {
      retrying.delete(sessionId);
    }
  }

  /**
   * Does something to an idle session under its lease and lock, if both are free right now (RE3). Whatever becomes of it,
   * the reader on whose way it is done is answered with what stands.
   */
  async function withLease(sessionId: string, work: () => Promise<void>): Promise<void> {
    const release = registry.hold(sessionId);
    const live = registry.open(sessionId);
    try {
      if ((await leases.acquireNow(live)) !== 'granted') return;
      if (!lock.isHeld(sessionId)) {
        await lock(sessionId, async () => {
          if (!live.run) await work();
        });
      }
    } catch (error) {
      const level = storageTroubleKind(error) === null ? 'error' : 'warn';
      log[level]({ session_id: sessionId, err: error }, 'a session could not be healed now');
    } finally {
      // Kept until the next time, where it cannot be given back at once.
      await leases
        .releaseIdle(live, false)
        .catch((error) => log.warn({ session_id: sessionId, err: error }, 'a lease could not be given back now'));
      release();
    }
  }

  return {
    async ensure(session) {
      if (session.open.length === 0 || (await deadTurns(session.open)).length === 0) return;
      const sessionId = session.session_id;
      let work = running.get(sessionId);
      if (!work) {
        work = recover(sessionId).finally(() => running.delete(sessionId));
        running.set(sessionId, work);
      }
      await work;
    },

    deadTurns,

    async runsElsewhere(session) {
      for (const row of session.open) {
        if (row.status !== 'started' || row.epoch === null || row.epoch === parts.epoch) continue;
        if (!(await isDead(row.epoch))) return stores.epochs.process(row.epoch);
      }
      return null;
    },

    async heal(sessionId) {
      if (registry.peek(sessionId)?.run) return; // The run saves it itself.
      let work = healing.get(sessionId);
      // Somebody else writes: the next read comes again (RE3).
      if (!work && lock.isHeld(sessionId)) return;
      if (!work) {
        work = repair(sessionId).finally(() => healing.delete(sessionId));
        healing.set(sessionId, work);
      }
      await work;
      await retry(sessionId);
    },

    needsHealing: (transcript) => transcript.behind || transcript.armed || foreignTurns.isPending(transcript),

    isTakenByOthers: async (sessionId) => {
      const transcript = await transcripts.read(sessionId);
      return foreignTurns.isPending(transcript) && (await foreignTurns.judge(sessionId, transcript)) !== 'ended';
    },

    async beforeRun(sessionId) {
      if (!foreignTurns.isPending(await transcripts.read(sessionId))) return;
      await lock(sessionId, () => foreignTurns.settle(sessionId, true));
    },
  };
}
