/**
 * A live session: what this process knows of one session in memory while somebody reads it or a turn runs. There is
 * never more than one for a session. Owns its attachments, its running run and its open questions; stores nothing.
 */
import { completionOf } from '../core/completion.ts';
import { type LiveEvent, plainLiveEvent } from './live-event.ts';
import type { RunLog } from './run-log.ts';
import type { Subscriber } from './subscriber.ts';

/** A run of this process, from its claim until its terminal event is published. */
export interface LiveRun {
  readonly runId: string;
  readonly admissionId: string;
  readonly generation: number;
  /** The prompt. */
  readonly input: string;
  /** Epoch seconds. */
  readonly startedAt: number;
  /** Aborts its agent. It exists before the agent does, so that an early stop is not lost (CL6). */
  readonly stop: AbortController;
  /** Its agent has ended by itself: there is nothing left to stop. */
  agentEnded: boolean;
  /** Null until its journal is open: nothing has been published yet. */
  log: RunLog | null;
}

/** A question of the agent that waits for a person. */
export interface OpenRequest {
  id: string;
  run_id: string;
  kind: 'approval' | 'clarify';
  params: Record<string, unknown>;
  created_at: number;
  /** Epoch seconds until which it waits; null: for ever. */
  expires_at: number | null;
}

/** One subscriber's interest in one session. */
export interface Attachment {
  readonly subscriber: Subscriber;
  /** Only the events of this run; the subscriber ends with it. */
  readonly only: string | null;
  /** Run events are not for this reader before this run begins. */
  skipUntil: string | null;
  /** The place behind which a live reader has been given nothing, but what is published here; null before it has one. */
  at: Position | null;
  /** Whether published events go to it; before that it catches up by itself. */
  live: boolean;
  /** A session event passed while it caught up. */
  missedInfo: boolean;
  /** Ends of prompts that never ran, which passed while it caught up: no journal has them. */
  readonly missedEnds: LiveEvent[];
  /** An edit took back what it may have been shown. */
  stale: boolean;
  /** An edit was made: it must be told anew where it stands. */
  onEdited(): void;
  /** The prompt that it waits for has ended without a run of its own: it must be told anew where it stands. */
  onUnrun(outcome: UnrunOutcome): void;
  /** What it waits for does not come for now: a reader of one run ends with the reason. */
  onStuck(reason: string): void;
  /** There are runs, up to and with this generation, that it was not given: another process ran them. */
  onBehind(generation: number): void;
}

/** A place in the runs of a session. */
export interface Position {
  /** Generation of the run; 0 is before all runs. */
  generation: number;
  /** Null when the run, whichever it was, is behind this place. */
  runId: string | null;
  seq: number;
}

export interface LiveSession {
  readonly sessionId: string;
  /** Eight hexadecimal digits; names this runtime in the lease. */
  readonly runtimeId: string;
  run: LiveRun | null;
  /** Generation of the newest run that this process began. */
  lastGeneration: number;
  /** Number of the last edit that its readers have seen; null before anybody looked. */
  editSeen: number | null;
  /** How many times its readers were told how it is. */
  infos: number;
  /** Why the queue does not move although something waits in it. */
  paused: string | null;
  /** Gateway clients have it: its lease stays while it is idle, and it is not deleted under them. */
  held: boolean;
  readonly attachments: Set<Attachment>;
  readonly requests: Map<string, OpenRequest>;
  publishRun(events: readonly LiveEvent[]): void;
  /**
   * The end of a run that had been left of unknown fate. Who has not been given the rest of the run is given that first.
   * @param end null when it had been shown already
   */
  publishEnd(generation: number, end: LiveEvent | null): void;
  /** A session event: `session.info`, `request.open`, `request.cancel`, `session.deleted`. */
  publish(event: LiveEvent): void;
  /** Runs up to this generation have ended, in whatever process: readers are given what they have not. */
  ended(generation: number): void;
  /** There was an edit, in whatever process: readers of what it took back are told anew. */
  edited(number: number): void;
  /** The fate of a run is unknown: ends those who read it alone, with the reason. */
  abandonRun(runId: string): void;
  /** The queue does not move for now: ends those who wait for one prompt in it, with the reason. */
  endWaiting(reason: string): void;
  /** The one completion of a prompt that ended without a run of its own (CL5). */
  publishUnrun(admission: { admission_id: string; run_id: string }, outcome: UnrunOutcome): void;
}

export function createLiveSession(sessionId: string, runtimeId: string): LiveSession {
  const attachments = new Set<Attachment>();

  const ofRun = (runId: string) => (event: LiveEvent) => event.place?.runId === runId;

  const deliver = (attachment: Attachment, events: readonly LiveEvent[]): void => {
    const { subscriber, only } = attachment;
    let own = events;
    if (only !== null) own = own.filter(ofRun(only));
    else if (attachment.skipUntil !== null) {
      own = own.filter(ofRun(attachment.skipUntil));
      if (own.length) attachment.skipUntil = null;
    }
    subscriber.offer(own);
    if (only !== null && own.at(-1)?.type === 'message.complete') subscriber.close('finished');
  };

  const session: LiveSession = {
    sessionId,
    runtimeId,
    run: null,
    lastGeneration: 0,
    editSeen: null,
    infos: 0,
    paused: null,
    held: false,
    attachments,
    requests: new Map(),

    publishRun(events) {
      const begun = events[0]?.type === 'run.start' ? session.run : null;
      for (const attachment of [...attachments]) {
        if (!attachment.live) continue;
        // Nobody is shown a run before the one that ended just before it elsewhere: it catches up, with this one too.
        if (begun && isBehind(attachment, begun.generation - 1)) attachment.onBehind(begun.generation - 1);
        else {
          if (begun) attachment.at = { generation: begun.generation, runId: null, seq: 0 };
          deliver(attachment, events);
        }
      }
    },

    publishEnd(generation, end) {
      for (const attachment of [...attachments]) {
        if (!attachment.live) continue;
        if (isBehind(attachment, generation)) attachment.onBehind(generation);
        else if (end) deliver(attachment, [end]);
      }
    },

    ended(generation) {
      if (session.run) return; // Its own beginning tells who is behind.
      for (const attachment of [...attachments]) {
        if (attachment.live && isBehind(attachment, generation)) attachment.onBehind(generation);
      }
    },

    edited(number) {
      session.editSeen = number;
      for (const attachment of [...attachments]) attachment.onEdited();
    },

    publish(event) {
      if (event.type === 'session.info') session.infos += 1;
      const toOwnReaders = event.type.startsWith('request.') || event.type === 'session.deleted';
      for (const attachment of attachments) {
        if (!attachment.live) attachment.missedInfo = true;
        else if (attachment.only === null || toOwnReaders) attachment.subscriber.offer([event]);
      }
    },

    abandonRun(runId) {
      for (const attachment of [...attachments]) if (attachment.only === runId) attachment.onStuck('unknown_execution');
    },

    endWaiting(reason) {
      for (const attachment of [...attachments]) {
        // One that catches up looks for itself when it has come to the present.
        if (attachment.only !== null && attachment.live && attachment.at === null) attachment.onStuck(reason);
      }
    },

    publishUnrun({ admission_id, run_id }, outcome) {
      const event = unrunCompletion(sessionId, admission_id, run_id, outcome);
      for (const attachment of [...attachments]) {
        if (!attachment.live) {
          attachment.missedInfo = true;
          if (attachment.only === null) attachment.missedEnds.push(event);
          continue;
        }
        if (attachment.only === null) attachment.subscriber.offer([event]);
        if (attachment.only === run_id || attachment.skipUntil === run_id) attachment.onUnrun(outcome);
      }
    },
  };
  return session;
}

/** Whether a reader of the whole session lacks events of runs up to and with this generation. */
function isBehind({ only, at }: Attachment, generation: number): boolean {
  if (only !== null || at === null) return false;
  return at.generation < generation || (at.runId !== null && at.generation === generation);
}

/** What ends the stream of one run although the run has not ended: why it does not go on for now. */
export function pendingRun(sessionId: string, runId: string, admissionId: string, reason: string): LiveEvent {
  const place = { run_id: runId, admission_id: admissionId };
  return plainLiveEvent('run.pending', sessionId, { admission_id: admissionId, reason }, place);
}

/** How a prompt can end that had no run of its own: cancelled, or as a part of the turn that ran then. */
export type UnrunOutcome = 'cancelled' | 'completed';

/** `message.complete` of a prompt that never ran: its own identity, no place in any run, hence no id. */
export function unrunCompletion(
  sessionId: string,
  admissionId: string,
  runId: string,
  outcome: UnrunOutcome,
): LiveEvent {
  const payload = completionOf({ admissionId, outcome, rows: [], usage: null });
  return plainLiveEvent('message.complete', sessionId, payload, { run_id: runId, admission_id: admissionId });
}
