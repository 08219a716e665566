/**
 * The drain: one task for each session that has something to do. It claims the head of the queue that it checked, or
 * nothing (CL1, CL2), runs it to its end, and goes on until nothing waits. Arming it while it works is never lost.
 */
import { fenceOf } from '../../db/admission-store.ts';
import type { Stores } from '../../db/stores.ts';
import { headOf } from '../core/admission-rules.ts';
import type { Admission } from '../core/terms.ts';
import type { Leases } from '../lease/leases.ts';
import type { LiveRun } from '../live/live-session.ts';
import type { LiveRegistry } from '../live/registry.ts';
import { GaveUp, type Persist } from './persist.ts';
import type { RunTurn } from './run-turn.ts';
import { SHUTDOWN } from './verdict.ts';

/** Whether a prompt may be run now. A refusal pauses the queue; rows stay queued. */
export type PreclaimCheck = (admission: Admission) => Promise<'ok' | { reason: string }>;

export interface DrainParts {
  stores: Pick<Stores, 'admissions' | 'sessions'>;
  registry: LiveRegistry;
  leases: Leases;
  /** Resolves what a dead process left of the session, before its queue moves. */
  recover(sessionId: string): Promise<void>;
  /** Settles what another program left in the session, under its lease, before a turn of ours takes its place. */
  beforeRun(sessionId: string): Promise<void>;
  check: PreclaimCheck;
  runTurn: RunTurn;
  persist: Persist;
  epoch: number;
  now(): number;
  /** The queue does not move for now: who waits is told why. */
  onPaused(sessionId: string, reason: string): void;
  log: { error(fields: object, message: string): void; warn(fields: object, message: string): void };
}

export interface Drain {
  /** Something may be to do in this session. */
  arm(sessionId: string): void;
  /** Something may be to do that nobody here has been told of; a task that works already sees it by itself. */
  wake(sessionId: string): void;
  /** Resolves when the session's task has ended, its next run has begun, or its head is being checked. */
  begun(sessionId: string): Promise<void>;
  /** Resolves when the session's task has ended or its next run has begun: what was accepted is claimed then, or waits. */
  claimed(sessionId: string): Promise<void>;
  /** Whether something is done in this session, or is about to be. */
  works(sessionId: string): boolean;
  /**
   * Stops the run of the head that is being checked as soon as it has begun, and no other (CL6): a check may take long,
   * and who presses stop does not wait for it.
   * @returns the admission that was meant; null when none is being checked
   */
  stopHead(sessionId: string): string | null;
  /** Resolves when the session's task, if it has one, has ended. */
  ended(sessionId: string): Promise<void>;
  /** Claims nothing any more. Running turns go on. */
  stopClaiming(): void;
  /** Ends running turns as interrupted, with everything kept. */
  interruptAll(): void;
  /** Resolves when no task is left. */
  idle(): Promise<void>;
}

type Claim = Awaited<ReturnType<Stores['admissions']['claim']>>;

interface Task {
  again: boolean;
  done: Promise<void>;
  /** The head between the beginning of its check and its run, and whether its run is to be stopped at once. */
  head: { admissionId: string; stopped: boolean } | null;
  /** Told when a run begins or the check of its prompt does. */
  begun: (() => void)[];
  /** Told when a run begins. */
  claimed: (() => void)[];
}

export function createDrain(parts: DrainParts): Drain {
  const { stores, registry, leases, persist, now, log } = parts;
  const tasks = new Map<string, Task>();
  let stopped = false;

  const tellBegun = (task: Task): void => {
    for (const tell of task.begun.splice(0)) tell();
  };

  const tellClaimed = (task: Task): void => {
    for (const tell of task.claimed.splice(0)) tell();
  };

  /** Takes the head and runs it; false when there is nothing more to do for now. */
  async function step(sessionId: string, task: Task): Promise<boolean> {
    const live = registry.open(sessionId);
    await parts.recover(sessionId);
    /** An arming before the queue or its head is read is answered by that read: one check for each head and arming. */
    const read = <T>(what: string, look: () => Promise<T>): Promise<T> =>
      persist(what, () => {
        task.again = false;
        return look();
      });
    const session = await read('read the queue', () => stores.sessions.get(sessionId));
    if (!session || session.open.length === 0) {
      live.paused = null;
      await persist('lease', () => leases.releaseIdle(live));
      return false;
    }
    const head = headOf(session.open);
    if (head.kind !== 'queued') {
      const isWaiting = session.open.some((one) => one.status === 'queued');
      if (head.kind === 'blocked' && head.by === 'unknown' && isWaiting) parts.onPaused(sessionId, 'unknown_execution');
      return false;
    }
    if ((await persist('lease', () => leases.acquire(live))) !== 'granted') return false;
    await parts.beforeRun(sessionId);
    const admission = await read('read the head', () => stores.admissions.get(sessionId, head.admissionId));
    if (admission?.status !== 'queued') return true;
    task.head = { admissionId: admission.admission_id, stopped: false };
    tellBegun(task);
    const verdict = await parts.check(admission);
    if (stopped) return false;
    if (verdict !== 'ok') {
      if (task.again) return true; // Somebody has asked again since: this verdict is not the last word.
      live.paused = verdict.reason;
      log.warn({ session_id: sessionId, admission_id: admission.admission_id, reason: verdict.reason }, 'queue paused');
      parts.onPaused(sessionId, verdict.reason);
      return false;
    }
    live.paused = null;
    const by = { epoch: parts.epoch, now: now() };
    const claim = await persist('claim', () => claimOnce(admission, by));
    if (claim.kind === 'moved') return true;
    if (claim.kind === 'blocked') return false;
    const run: LiveRun = {
      runId: admission.run_id,
      admissionId: admission.admission_id,
      generation: claim.fence.generation,
      input: admission.text,
      startedAt: by.now,
      stop: new AbortController(),
      agentEnded: false,
      log: null,
    };
    live.run = run;
    live.lastGeneration = run.generation;
    if (task.head.stopped) run.stop.abort();
    task.head = null;
    tellBegun(task);
    tellClaimed(task);
    await parts.runTurn(live, run, claim.fence, claim.admission);
    return true;
  }

  /** Claims the head. A claim that reported failure may have happened: then it stands in the way of itself. */
  async function claimOnce(admission: Admission, by: { epoch: number; now: number }): Promise<Claim> {
    const { session_id: sessionId, admission_id: admissionId } = admission;
    const claim = await stores.admissions.claim(sessionId, admissionId, by);
    if (claim.kind !== 'blocked') return claim;
    const found = await stores.admissions.get(sessionId, admissionId);
    if (found?.status !== 'started' || found.epoch !== by.epoch) return claim;
    return { kind: 'claimed', admission: found, fence: fenceOf(found) };
  }

  async function work(sessionId: string, task: Task): Promise<void> {
    const release = registry.hold(sessionId);
    try {
      while (!stopped && ((await step(sessionId, task)) || task.again)) task.head = null;
    } catch (error) {
      if (!(error instanceof GaveUp)) {
        log.error({ err: error, session_id: sessionId }, 'the drain of a session failed');
        registry.open(sessionId).paused = 'internal'; // Nobody waits for what does not move.
        parts.onPaused(sessionId, 'internal');
      }
    } finally {
      tasks.delete(sessionId);
      tellBegun(task);
      tellClaimed(task);
      release();
    }
  }

  const wake = (sessionId: string): void => {
    if (stopped || tasks.has(sessionId)) return;
    const task: Task = { again: false, head: null, begun: [], claimed: [], done: Promise.resolve() };
    tasks.set(sessionId, task);
    // It is asked again: what it was refused for before is told to nobody who comes now.
    const live = registry.peek(sessionId);
    if (live) live.paused = null;
    task.done = work(sessionId, task);
  };

  return {
    arm(sessionId) {
      const running = tasks.get(sessionId);
      if (running) running.again = true;
      else wake(sessionId);
    },

    wake,

    async begun(sessionId) {
      const task = tasks.get(sessionId);
      if (!task || task.head || registry.peek(sessionId)?.run) return;
      await new Promise<void>((resolve) => task.begun.push(resolve));
    },

    async claimed(sessionId) {
      const task = tasks.get(sessionId);
      if (!task || registry.peek(sessionId)?.run) return;
      await new Promise<void>((resolve) => task.claimed.push(resolve));
    },

    works: (sessionId) => tasks.has(sessionId),

    stopHead(sessionId) {
      const head = tasks.get(sessionId)?.head;
      if (!head) return null;
      head.stopped = true;
      return head.admissionId;
    },

    async ended(sessionId) {
      await tasks.get(sessionId)?.done;
    },

    stopClaiming() {
      stopped = true;
    },

    interruptAll() {
      for (const sessionId of tasks.keys()) registry.peek(sessionId)?.run?.stop.abort(SHUTDOWN);
    },

    async idle() {
      while (tasks.size) await Promise.all([...tasks.values()].map((task) => task.done));
    },
  };
}
