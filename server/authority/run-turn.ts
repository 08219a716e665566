/**
 * One run from its claim to its end, in the write order that the promise rests on: sidecar with the pending turn,
 * journal, the agent's events (journal, then publish), sealed journal, settle, sidecar, lease, `message.complete`, idle.
 *
 * Whatever the agent does, the run ends exactly once, with everything it produced kept. No client is needed for any of
 * it, and none can delay it. What cannot be ended properly (a lost fence, a bug) is left `unknown`, visibly.
 */
import type { JournalStore } from '../../db/files/journal.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import type { Fence, SessionRow, Settlement, Stores } from '../../db/stores.ts';
import { completionOf } from '../core/completion.ts';
import { promptRow } from '../core/prompt-row.ts';
import type { Admission, Message, Outcome } from '../core/terms.ts';
import { wellFormedJson } from '../core/text.ts';
import { deriveTitle } from '../core/title.ts';
import type { Leases } from '../lease/leases.ts';
import type { LiveRun, LiveSession } from '../live/live-session.ts';
import type { Requests } from '../live/requests.ts';
import { createRunLog, type RunLog } from '../live/run-log.ts';
import type { CompactionWish, Runner, Turn, TurnAttachment } from '../runners/runner.ts';
import type { Compaction } from '../sessions/compaction.ts';
import { historyOf } from '../sessions/model-context.ts';
import type { SessionLock } from '../sessions/session-lock.ts';
import type { PendingTurn } from '../sessions/sidecar-header.ts';
import type { Titles } from '../sessions/titles.ts';
import type { Transcripts } from '../sessions/transcripts.ts';
import { consume } from './consume.ts';
import type { ReachCrashPoint } from './crash-points.ts';
import { GaveUp, type Persist } from './persist.ts';
import { createSteer } from './steer.ts';
import { type AgentEnd, CRASHED, judgeEnd, STOPPED } from './verdict.ts';

export interface RunTurnParts {
  stores: Pick<Stores, 'admissions' | 'sessions' | 'messages' | 'contexts'>;
  journals: JournalStore;
  transcripts: Transcripts;
  lock: SessionLock;
  leases: Leases;
  requests: Requests;
  runner: Runner;
  persist: Persist;
  reached: ReachCrashPoint;
  /** Epoch seconds. */
  now(): number;
  eagerFsync: boolean;
  /** Most bytes of a run's events that are kept in memory for readers that catch up. */
  ringBytes: number;
  /** For those who measure: an event reached its readers, and how a turn ended. */
  measure?: { delivered(seconds: number): void; runEnded(outcome: Outcome | 'unknown', seconds: number): void };
  /** A file that a session was given; null when it is not there. */
  attachment(sessionId: string, id: string): Promise<TurnAttachment | null>;
  /** The model that a session without one of its own uses. */
  defaultModel(): string;
  onChange(sessionId: string, reason: string): void;
  /** The admission ended, or is left unknown; whoever waits for it is told. */
  onSettled(admissionId: string): void;
  /** Who has older turns summarised. */
  compaction?: Pick<Compaction, 'inTurn'>;
  /** Who gives conversations better titles, beside their turns. */
  titles?: Pick<Titles, 'turnStarts' | 'turnCompleted'>;
  log: {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
    error(fields: object, message: string): void;
  };
}

export type RunTurn = (live: LiveSession, run: LiveRun, fence: Fence, admission: Admission) => Promise<void>;

export function createRunTurn(parts: RunTurnParts): RunTurn {
  const { stores, journals, transcripts, lock, leases, persist, reached, now, log } = parts;
  const steer = createSteer({ stores, persist, reached, now, onSettled: parts.onSettled, onChange: parts.onChange });

  const saveSidecar = (run: LiveRun, sessionId: string, rows: readonly Message[], pending: PendingTurn | null) =>
    persist('sidecar', () =>
      lock(sessionId, () => transcripts.save(sessionId, { rows, pending, now: now(), runId: run.runId })),
    );

  async function openLog(live: LiveSession, fence: Fence, commit: (rows: Message[]) => void): Promise<RunLog> {
    const { session_id: sessionId, run_id: runId } = fence;
    const journal = await persist('journal open', () => journals.create(sessionId, runId));
    return createRunLog({
      sessionId,
      runId,
      journal,
      now,
      eager: parts.eagerFsync,
      persist,
      publish: (events) => {
        live.publishRun(events);
        reached('mid-stream');
      },
      onRows: commit,
      ringBytes: parts.ringBytes,
      onDelivered: (seconds) => parts.measure?.delivered(seconds),
    });
  }

  /** Mid-run rows go to the state DB one after the other, beside the stream and never in its way. */
  function rowCommitter(fence: Fence, run: LiveRun) {
    let tail: Promise<void> = Promise.resolve();
    return {
      commit(rows: Message[]): void {
        const added = rows.filter((row) => row.role !== 'user');
        if (added.length === 0) return;
        tail = tail.then(async () => {
          const answer = await persist('row', () => stores.admissions.appendRows(fence, added));
          if (answer === 'fenced') run.stop.abort();
          else reached('row-committed');
        });
        tail.catch(() => {}); // Seen by `done`.
      },
      done: () => tail,
    };
  }

  async function turnOf(
    run: LiveRun,
    live: LiveSession,
    session: SessionRow,
    model: string,
  ): Promise<Omit<Turn, 'steer' | 'attachments'>> {
    const { compaction } = parts;
    const history = await persist('read the transcript', async () =>
      historyOf(stores, live.sessionId, run.runId, await transcripts.read(live.sessionId)),
    );
    return {
      sessionId: live.sessionId,
      runId: run.runId,
      input: run.input,
      attachment: (id) => parts.attachment(live.sessionId, id),
      model,
      workspace: session.workspace,
      history,
      ...(compaction && {
        compact: (wish: CompactionWish) =>
          compaction.inTurn({ sessionId: live.sessionId, runId: run.runId, model }, wish, run.stop.signal),
      }),
      async ask(question, settled) {
        try {
          // Nobody is asked about a call that is not in the journal yet (JO2).
          await run.log?.flushed();
        } catch (error) {
          if (error instanceof GaveUp) return { kind: 'withdrawn' };
          throw error;
        }
        return parts.requests.ask(live, run.runId, wellFormedJson(question), run.stop.signal, settled);
      },
    };
  }

  async function work(turn: Turn, run: LiveRun, runLog: RunLog): Promise<AgentEnd> {
    try {
      return await consume(parts.runner, turn, run.stop.signal, runLog);
    } catch (error) {
      if (error instanceof GaveUp) throw error;
      // The contract forbids a runner to throw: this is a bug of ours, told to the person as what it is.
      log.error({ err: error, session_id: turn.sessionId, run_id: turn.runId }, 'the agent crashed');
      return CRASHED;
    }
  }

  /** A conversation without a title gets one from its first words. It can do without, so it is tried once. */
  async function giveTitle(session: SessionRow, text: string): Promise<void> {
    const title = session.title === null ? deriveTitle(text) : null;
    if (title === null) return;
    try {
      // Only if nothing changed meanwhile: a title that a person gives is never replaced.
      const options = { now: now(), revision: session.revision };
      await stores.sessions.patch(session.session_id, { title, title_source: 'derived' }, options);
    } catch (error) {
      if (storageTroubleKind(error) === null) throw error;
      log.warn({ err: error, session_id: session.session_id }, 'no title could be given');
    }
  }

  /** Settles. A settle that reported failure may have happened: then it is its own deed that fences it off. */
  async function settleOnce(settlement: Settlement): Promise<'settled' | 'fenced'> {
    const settled = await stores.admissions.settle(settlement);
    if (settled === 'settled') return settled;
    const { fence, outcome, last_seq } = settlement;
    const found = await stores.admissions.get(fence.session_id, fence.admission_id);
    const isOwn = found?.epoch === fence.epoch && found.generation === fence.generation;
    return isOwn && found.outcome === outcome && found.last_seq === last_seq ? 'settled' : 'fenced';
  }

  /** The way of a run. `fenced` when it lost its claim: nothing was settled. */
  async function execute(live: LiveSession, run: LiveRun, fence: Fence, admission: Admission) {
    const { sessionId } = live;
    const { text, attachments } = admission;
    const session = await persist('read the session', () => stores.sessions.get(sessionId));
    if (!session) throw new Error(`session ${sessionId} is gone under its running turn`);
    await giveTitle(session, text);
    parts.onChange(sessionId, 'started');
    const pending = { runId: run.runId, text, attachments, startedAt: run.startedAt };
    await saveSidecar(run, sessionId, [promptRow(admission, run.startedAt)], pending);
    reached('pending-saved');

    const committer = rowCommitter(fence, run);
    const runLog = await openLog(live, fence, committer.commit);
    run.log = runLog;
    const model = session.model ?? parts.defaultModel();
    runLog.append({
      type: 'run.start',
      payload: {
        admission_id: admission.admission_id,
        input: text,
        generation: fence.generation,
        timestamp: run.startedAt,
        model,
        ...(attachments.length ? { attachments } : {}),
      },
    });
    await runLog.flushed();
    reached('journal-opened');

    const turn: Turn = {
      ...(await turnOf(run, live, session, model)),
      attachments,
      steer: () => steer({ live, run, fence, runLog, committed: committer.done }),
    };
    const end = await work(turn, run, runLog);
    run.agentEnded = end !== STOPPED;
    await runLog.flushed();
    const verdict = judgeEnd(end, run.stop.signal.reason);
    runLog.fold.end(verdict.fold, now());
    await committer.done();

    const rows = runLog.fold.rows().slice(1);
    const { outcome, error } = verdict;
    const admissionId = admission.admission_id;
    const complete = completionOf({ admissionId, outcome, rows, usage: runLog.fold.usage(), error });
    const sealed = await runLog.seal(complete);
    reached('journal-sealed');
    const settled = await persist('settle', () =>
      settleOnce({
        fence,
        outcome,
        error,
        message_id: complete.message_id,
        last_seq: sealed.seq,
        rows,
        usage: complete.usage,
        now: now(),
      }),
    );
    if (settled === 'fenced') return 'fenced';
    reached('settled');
    await saveSidecar(run, sessionId, rows, null);
    reached('sidecar-saved');
    await persist('lease', () => leases.releaseIdle(live));
    runLog.publishTerminal();
    return complete;
  }

  /** A run that can not be ended properly: nobody may guess, so its row waits for a person (CL4). */
  async function leaveUnknown(live: LiveSession, run: LiveRun, why: unknown): Promise<void> {
    const { admissionId } = run;
    log.error({ err: why, admission_id: admissionId, session_id: live.sessionId }, 'a turn is left unknown');
    await persist('mark unknown', () => stores.admissions.markUnknown(admissionId));
    // What was read while the run was live left its output out.
    transcripts.forget(live.sessionId);
    live.abandonRun(run.runId);
  }

  return async function runTurn(live, run, fence, admission) {
    const { sessionId } = live;
    // The claim has put the prompt into the state DB: whoever reads now sees it, before its sidecar is saved.
    transcripts.recheck(sessionId);
    reached('claimed');
    parts.titles?.turnStarts(sessionId);
    let reason = 'ended';
    let outcome: Outcome | 'unknown' = 'unknown';
    const startedAt = now();
    try {
      const complete = await execute(live, run, fence, admission);
      outcome = complete === 'fenced' ? 'unknown' : complete.outcome;
      if (complete === 'fenced') {
        reason = 'unknown';
        await leaveUnknown(live, run, 'its settle lost its fence');
      } else if (complete.outcome === 'completed') {
        const { generation } = fence;
        parts.titles?.turnCompleted({ sessionId, generation, input: admission.text, reply: complete.text });
      }
    } catch (error) {
      // The server stops: what is durable so far is recovered at its next start.
      if (error instanceof GaveUp) throw error;
      reason = 'unknown';
      await leaveUnknown(live, run, error);
    } finally {
      run.stop.abort();
      parts.requests.withdraw(live, run.runId);
      live.run = null;
      parts.measure?.runEnded(outcome, now() - startedAt);
      const ms = Math.round((now() - startedAt) * 1000);
      log.info({ session_id: sessionId, run_id: run.runId, outcome, ms }, 'a turn ended');
      parts.onSettled(admission.admission_id);
      parts.onChange(sessionId, reason);
      // All of it is on the disk already; a file that cannot be closed is no trouble of the turn.
      await run.log?.close().catch((error) => log.warn({ err: error, session_id: sessionId }, 'a journal stays open'));
    }
  };
}
