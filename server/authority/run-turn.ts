/**
 * One run from its claim to its end, in the write order that the promise rests on: sidecar with the pending turn,
 * journal, the agent's events (journal, then publish), sealed journal, settle, sidecar, lease, `message.complete`, idle.
 *
 * Whatever the agent does, the run ends exactly once, with everything it produced kept. No client is needed for any of
 * it, and none can delay it.
 */
import type { JournalStore } from '../../db/files/journal.ts';
import type { Fence, Stores } from '../../db/stores.ts';
import type { MessageComplete } from '../core/events.ts';
import { type FoldEnd, finalRow } from '../core/fold.ts';
import type { Admission, Message, Outcome, TurnError } from '../core/terms.ts';
import { createTextJoiner, wellFormedJson } from '../core/text.ts';
import { deriveTitle } from '../core/title.ts';
import type { Leases } from '../lease/leases.ts';
import type { LiveRun, LiveSession } from '../live/live-session.ts';
import type { Requests } from '../live/requests.ts';
import { createRunLog, type RunLog } from '../live/run-log.ts';
import type { Runner, RunnerEnd, RunnerEvent, Turn } from '../runners/runner.ts';
import type { SessionLock } from '../sessions/session-lock.ts';
import type { Titles } from '../sessions/titles.ts';
import type { PendingTurn, Transcripts } from '../sessions/transcripts.ts';
import type { ReachCrashPoint } from './crash-points.ts';
import type { Persist } from './persist.ts';

export interface RunTurnParts {
  stores: Pick<Stores, 'admissions' | 'sessions'>;
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
  ringBytes: number;
  /** The model that a session without one of its own uses. */
  defaultModel(): string;
  onChange(sessionId: string, reason: string): void;
  /** The admission ended; whoever waits for it is told. */
  onSettled(admissionId: string): void;
  /** Who gives conversations better titles, beside their turns. */
  titles?: Pick<Titles, 'turnStarts' | 'turnCompleted'>;
  log: { warn(fields: object, message: string): void; error(fields: object, message: string): void };
}

export type RunTurn = (live: LiveSession, run: LiveRun, fence: Fence, admission: Admission) => Promise<void>;

/** Aborts a run because the server stops; any other abort is a person's. */
export const SHUTDOWN = 'shutdown';

const STOPPED = Symbol('stopped');

export function createRunTurn(parts: RunTurnParts): RunTurn {
  const { stores, journals, transcripts, lock, leases, persist, reached, now, log } = parts;

  const saveSidecar = (sessionId: string, rows: readonly Message[], pending: PendingTurn | null) =>
    persist('sidecar', () => lock(sessionId, () => transcripts.save(sessionId, { rows, pending, now: now() })));

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

  async function turnOf(live: LiveSession, run: LiveRun, admission: Admission): Promise<Turn> {
    const sessionId = live.sessionId;
    const session = await stores.sessions.get(sessionId);
    const { rows } = await transcripts.read(sessionId);
    const history = rows.filter((row) => row.runId !== run.runId).map((row) => JSON.parse(row.json) as Message);
    return {
      sessionId,
      runId: run.runId,
      input: admission.text,
      model: session?.model ?? parts.defaultModel(),
      workspace: session?.workspace ?? null,
      history,
      ask: (question) => parts.requests.ask(live, run.runId, wellFormedJson(question), run.stop.signal),
    };
  }

  /** Lets the agent work until it ends or is stopped. Late events of a stopped agent are not read any more. */
  async function consume(turn: Turn, signal: AbortSignal, runLog: RunLog): Promise<RunnerEnd | typeof STOPPED> {
    let stop: () => void = () => {};
    const onAbort = () => stop();
    signal.addEventListener('abort', onAbort);
    const feed = createFeed(runLog);
    const events = parts.runner.run(turn, signal);
    try {
      for (;;) {
        if (signal.aborted) return STOPPED;
        const next = events.next();
        // The abandoned promise of a stopped agent must not become an unhandled rejection.
        next.catch(() => {});
        const step = await new Promise<IteratorResult<RunnerEvent, RunnerEnd> | typeof STOPPED>((resolve, reject) => {
          stop = () => resolve(STOPPED);
          next.then(resolve, reject);
        });
        if (step === STOPPED || signal.aborted) return STOPPED;
        if (step.done) return step.value;
        feed.event(step.value);
        await runLog.room();
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      feed.end();
      void events.return({ kind: 'completed' }).catch(() => {});
    }
  }

  async function work(live: LiveSession, run: LiveRun, admission: Admission, runLog: RunLog) {
    try {
      const turn = await turnOf(live, run, admission);
      return await consume(turn, run.stop.signal, runLog);
    } catch (error) {
      // The contract forbids a runner to throw: this is a bug of ours, told to the person as what it is.
      log.error({ err: error, session_id: live.sessionId, run_id: run.runId }, 'the agent crashed');
      return { kind: 'failed', error: CRASHED } satisfies RunnerEnd;
    }
  }

  /** A conversation without a title gets one from its first words. It can do without, so trouble here is no trouble. */
  async function giveTitle(sessionId: string, text: string): Promise<void> {
    try {
      const session = await stores.sessions.get(sessionId);
      const title = session?.title === null ? deriveTitle(text) : null;
      if (!session || title === null) return;
      // Only if nothing changed meanwhile: a title that a person gives is never replaced.
      const options = { now: now(), revision: session.revision };
      await stores.sessions.patch(sessionId, { title, title_source: 'derived' }, options);
    } catch (error) {
      log.warn({ err: error, session_id: sessionId }, 'no title could be given');
    }
  }

  return async function runTurn(live, run, fence, admission) {
    const sessionId = live.sessionId;
    reached('claimed');
    parts.titles?.turnStarts(sessionId);
    await giveTitle(sessionId, admission.text);
    parts.onChange(sessionId, 'started');
    const prompt: Message = {
      id: `${run.runId}.0`,
      role: 'user',
      content: admission.text,
      timestamp: run.startedAt,
      run_id: run.runId,
    };
    if (admission.attachments.length) prompt.attachments = admission.attachments;
    const { text, attachments } = admission;
    await saveSidecar(sessionId, [prompt], { runId: run.runId, text, attachments, startedAt: run.startedAt });
    reached('pending-saved');

    const committer = rowCommitter(fence, run);
    const runLog = await openLog(live, fence, committer.commit);
    run.log = runLog;
    const session = await stores.sessions.get(sessionId).catch(() => null);
    runLog.append({
      type: 'run.start',
      payload: {
        admission_id: admission.admission_id,
        input: admission.text,
        generation: fence.generation,
        timestamp: run.startedAt,
        model: session?.model ?? parts.defaultModel(),
        ...(attachments.length ? { attachments } : {}),
      },
    });
    await runLog.flushed();
    reached('journal-opened');

    const end = await work(live, run, admission, runLog);
    await runLog.flushed();
    const verdict = judgeEnd(end, run.stop.signal);
    runLog.fold.end(verdict.fold, now());
    await committer.done();

    const rows = runLog.fold.rows().slice(1);
    const complete = completionOf(admission.admission_id, rows, verdict, runLog);
    const sealed = await runLog.seal(complete);
    reached('journal-sealed');
    const settled = await persist('settle', () =>
      stores.admissions.settle({
        fence,
        outcome: verdict.outcome,
        error: complete.error ?? null,
        message_id: complete.message_id,
        last_seq: sealed.seq,
        rows,
        usage: complete.usage,
        now: now(),
      }),
    );
    if (settled === 'fenced') {
      log.error(
        { admission_id: admission.admission_id, session_id: sessionId },
        'a settle lost its fence: left unknown',
      );
      await persist('mark unknown', () => stores.admissions.markUnknown(admission.admission_id));
      await runLog.close();
      live.run = null;
      live.abandonRun(run.runId);
      parts.onSettled(admission.admission_id);
      parts.onChange(sessionId, 'unknown');
      return;
    }
    reached('settled');
    await saveSidecar(sessionId, rows, null);
    reached('sidecar-saved');
    await runLog.close();
    await persist('lease', () => leases.releaseIdle(live));
    runLog.publishTerminal();
    live.run = null;
    parts.onSettled(admission.admission_id);
    parts.onChange(sessionId, 'ended');
    if (verdict.outcome === 'completed') {
      const { generation } = fence;
      parts.titles?.turnCompleted({ sessionId, generation, input: admission.text, reply: complete.text });
    }
  };
}

const CRASHED: TurnError = {
  code: 'agent_crashed',
  message: 'The agent stopped unexpectedly. The log of the server says why; try again.',
  retryable: true,
};

interface Verdict {
  outcome: Outcome;
  status: MessageComplete['status'];
  fold: FoldEnd;
  error?: TurnError;
}

function judgeEnd(end: RunnerEnd | typeof STOPPED, signal: AbortSignal): Verdict {
  if (end === STOPPED) {
    if (signal.reason !== SHUTDOWN)
      return { outcome: 'interrupted', status: 'interrupted', fold: { kind: 'interrupted' } };
    const error: TurnError = {
      code: 'interrupted',
      message: 'The server was shut down before this turn finished.',
      retryable: true,
    };
    return { outcome: 'interrupted', status: 'interrupted', fold: { kind: 'interrupted', error }, error };
  }
  if (end.kind === 'failed') {
    return { outcome: 'failed', status: 'error', fold: { kind: 'error', error: end.error }, error: end.error };
  }
  return { outcome: 'completed', status: 'complete', fold: { kind: 'complete' } };
}

function completionOf(
  admissionId: string,
  rows: readonly Message[],
  verdict: Verdict,
  runLog: RunLog,
): MessageComplete {
  const final = finalRow(rows);
  const complete: MessageComplete = {
    text: final?.content ?? '',
    status: verdict.status,
    outcome: verdict.outcome,
    admission_id: admissionId,
    message_id: final?.id ?? null,
    usage: runLog.fold.usage(),
  };
  if (verdict.error) complete.error = verdict.error;
  return complete;
}

/** Hands an agent's events to the log: text well-formed, halves of characters joined. */
function createFeed(runLog: RunLog) {
  const joiners = { 'message.delta': createTextJoiner(), 'reasoning.delta': createTextJoiner() };
  const flush = (): void => {
    for (const type of ['message.delta', 'reasoning.delta'] as const) {
      const text = joiners[type].end();
      if (text) runLog.append({ type, payload: { text } });
    }
  };
  return {
    event(event: RunnerEvent): void {
      if (event.type === 'message.delta' || event.type === 'reasoning.delta') {
        const text = joiners[event.type].push(event.payload.text);
        if (text) runLog.append({ type: event.type, payload: { text } });
        return;
      }
      flush();
      runLog.append(wellFormedJson(event));
    },
    end: flush,
  };
}
