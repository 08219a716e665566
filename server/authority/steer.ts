/**
 * Words for a turn that runs: prompts of the mode `steer` that wait become a part of it between two of its steps. Each of
 * them is one transaction (its row in the transcript, and the end of its own prompt), before anybody is shown it: so it is
 * never lost and never runs by itself any more (ST1, AD1). What is not said in time runs as a prompt (ST2).
 */
import type { Fence, Stores } from '../../db/stores.ts';
import type { MessageInput } from '../core/events.ts';
import type { Admission, Message } from '../core/terms.ts';
import type { LiveRun, LiveSession } from '../live/live-session.ts';
import type { RunLog } from '../live/run-log.ts';
import type { Said } from '../runners/runner.ts';
import type { ReachCrashPoint } from './crash-points.ts';
import type { Persist } from './persist.ts';

export interface SteerParts {
  stores: Pick<Stores, 'admissions' | 'sessions'>;
  persist: Persist;
  reached: ReachCrashPoint;
  /** Epoch seconds. */
  now(): number;
  /** A prompt has ended: whoever waits for it is told. */
  onSettled(admissionId: string): void;
  onChange(sessionId: string, reason: string): void;
}

/** The turn that is spoken to. */
export interface Steered {
  live: LiveSession;
  run: LiveRun;
  fence: Fence;
  runLog: RunLog;
  /** Resolves when the rows that were closed so far are in the state DB. */
  committed(): Promise<void>;
}

/** @returns what was said meanwhile, oldest first, each once */
export type Steer = (turn: Steered) => Promise<Said[]>;

export function createSteer({ stores, persist, reached, now, onSettled, onChange }: SteerParts): Steer {
  /** Prompts that were meant for a turn that runs, in the order of their acceptance. */
  async function waiting(sessionId: string): Promise<Admission[]> {
    const session = await stores.sessions.get(sessionId);
    if (!session?.open.some((one) => one.status === 'queued')) return [];
    const open = await stores.admissions.list(sessionId, { pending: true, limit: 1000 });
    return open.filter((one) => one.status === 'queued' && one.mode === 'steer');
  }

  /** Absorbs. A commit that reported failure may have happened: then it stands in its own way. */
  async function absorbOnce(fence: Fence, admissionId: string, rows: readonly Message[], at: number) {
    const answer = await stores.admissions.absorb(fence, admissionId, rows, at);
    if (answer !== 'moved') return answer;
    const found = await stores.admissions.get(fence.session_id, admissionId);
    return found?.message_id === rows.at(-1)?.id ? 'absorbed' : 'moved';
  }

  /** Makes one prompt a part of the turn; false when it no longer waits, or the turn has lost its claim. */
  async function absorb({ run, fence, runLog, committed }: Steered, input: MessageInput): Promise<boolean> {
    // Behind everything that came before it, in the state DB too.
    await runLog.flushed();
    await committed();
    const rows = runLog.fold.nextInput(input);
    const answer = await persist('absorb', () => absorbOnce(fence, input.admission_id, rows, input.timestamp));
    if (answer === 'fenced') run.stop.abort();
    if (answer !== 'absorbed') return false;
    reached('steer-absorbed');
    runLog.append({ type: 'message.input', payload: input });
    await runLog.flushed();
    return true;
  }

  return async (turn) => {
    const { live } = turn;
    const said: Said[] = [];
    for (const admission of await persist('read what is said', () => waiting(live.sessionId))) {
      const { admission_id, text, attachments } = admission;
      const input: MessageInput = { kind: 'steer', admission_id, input: text, timestamp: now() };
      if (attachments.length) input.attachments = attachments;
      if (!(await absorb(turn, input))) continue;
      live.publishUnrun(admission, 'completed');
      onSettled(admission_id);
      onChange(live.sessionId, 'steered');
      said.push({ text, attachments });
    }
    return said;
  };
}
