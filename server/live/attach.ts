/**
 * Attaching a reader to a session: exactly what follows its cursor, or a snapshot (SU2), then live, with a seam that
 * loses nothing and repeats nothing (EV1).
 *
 * A reader catches up from memory or from the journals and looks, without awaiting in between, whether it has
 * everything that was published; only then it becomes live. So there is no moment in which an event is neither in what
 * it read nor in what it will be given.
 */
import type { JournalStore } from '../../db/files/journal.ts';
import type { AdmissionStore } from '../../db/stores.ts';
import { type Cursor, formatCursor, parseCursor } from '../core/cursor.ts';
import { envelopeOfLine } from '../core/events.ts';
import type { Admission } from '../core/terms.ts';
import { type LiveEvent, plainLiveEvent, replayedLiveEvent } from './live-event.ts';
import {
  type Attachment,
  type LiveSession,
  type Position,
  pendingRun,
  type UnrunOutcome,
  unrunCompletion,
} from './live-session.ts';
import type { LiveRegistry } from './registry.ts';
import { runViewOf } from './run-view.ts';
import type { Subscriber } from './subscriber.ts';

/** What a session looks like to a person right now, without its transcript. */
export interface SessionDescription {
  session: { revision: number } & Record<string, unknown>;
  queue: unknown[];
}

export interface AttachParts {
  admissions: AdmissionStore;
  journals: JournalStore;
  registry: LiveRegistry;
  /** Of this process: runs of another one are read when they have ended. */
  epoch: number;
  describe(sessionId: string): Promise<SessionDescription>;
  /** Runs whose turns an edit took back: nobody is shown them again (ED1). */
  takenBack(sessionId: string): Promise<ReadonlySet<string>>;
  /** Why the queue of a session does not move although something waits in it. */
  whyStuck(sessionId: string): Promise<string | null>;
}

export interface AttachRequest {
  sessionId: string;
  subscriber: Subscriber;
  /** As the reader gave it; null for none. */
  cursor: string | null;
  /** A reader that is told by other means where things stand: `now` from here on, `draft` for a session without a row. */
  from?: 'now' | 'draft';
  /** Only the events of this run, then the end; also when it does not come for now, with the reason. */
  only?: { runId: string; admissionId: string };
  /** With `only`: how the run ended, when its journal is not there to tell. */
  completion?(): Promise<LiveEvent | null>;
}

/** Where a reader is after it was brought to the present; `told` by a snapshot. */
type CaughtUp = 'live' | 'told' | 'ended' | 'lost' | 'deleted';

type Resolved =
  | { kind: 'at'; position: Position }
  | { kind: 'waiting'; runId: string }
  | { kind: 'reset'; reason: 'malformed' | 'foreign' | 'ahead' | 'too_old' | 'cancelled' | 'steered' | 'edited' };

export function createAttach(parts: AttachParts) {
  const { admissions, journals, registry, epoch, describe, takenBack, whyStuck } = parts;

  /** Where a cursor stands, or why it cannot be honoured. */
  async function resolve(live: LiveSession, text: string): Promise<Resolved> {
    const cursor = parseCursor(text);
    if (!cursor) return { kind: 'reset', reason: 'malformed' };
    if (cursor.kind === 'beginning') return keptSince(live, { generation: 0, runId: null, seq: 0 });
    const admission = await admissions.byRun(live.sessionId, cursor.runId);
    if (!admission) return { kind: 'reset', reason: 'foreign' };
    if (admission.generation === null) {
      const unrun = unrunOf(admission);
      if (unrun) return { kind: 'reset', reason: RESET_OF[unrun] };
      return cursor.seq === 0 ? { kind: 'waiting', runId: cursor.runId } : { kind: 'reset', reason: 'ahead' };
    }
    // What this reader had seen is no longer part of the conversation.
    if ((await takenBack(live.sessionId)).has(cursor.runId)) return { kind: 'reset', reason: 'edited' };
    const last = publishedOf(live, admission);
    if (cursor.seq > last) return { kind: 'reset', reason: 'ahead' };
    if (admission.journal_pruned && cursor.seq < last) return { kind: 'reset', reason: 'too_old' };
    return keptSince(live, { generation: admission.generation, runId: cursor.runId, seq: cursor.seq });
  }

  /** The position, if every later run can still be replayed. */
  async function keptSince(live: LiveSession, position: Position): Promise<Resolved> {
    const gone = await admissions.prunedSince(live.sessionId, position.generation);
    return gone ? { kind: 'reset', reason: 'too_old' } : { kind: 'at', position };
  }

  /** The last `seq` of a claimed run that readers may have. */
  function publishedOf(live: LiveSession, admission: Admission): number {
    if (live.run?.runId === admission.run_id) return live.run.log?.published() ?? 0;
    return admission.last_seq ?? 0;
  }

  /** Events of a run after `seq`, up to and with `upTo`, from its journal. */
  async function replay(attachment: Attachment, sessionId: string, runId: string, seq: number, upTo: number) {
    if (seq >= upTo) return seq;
    const batches = await journals.lines(sessionId, runId, seq, upTo);
    if (!batches) return seq;
    let last = seq;
    for await (const lines of batches) {
      const events = lines.map((line) => replayedLiveEvent(sessionId, runId, envelopeOfLine(line)));
      // A line that is missing or damaged: what follows it is not what follows this reader's cursor.
      if (events.some((event, index) => event.place?.seq !== last + 1 + index)) return last;
      await attachment.subscriber.paced(events);
      if (attachment.subscriber.ended) return last;
      last = events.at(-1)?.place?.seq ?? last;
    }
    return last;
  }

  /**
   * From now on the reader is given what is published; what it must not have missed before comes first.
   * @param at where it stands; null for one that waits for a prompt
   */
  function goLive(attachment: Attachment, at: Position | null): 'live' {
    attachment.live = true;
    attachment.at = at;
    attachment.subscriber.offer(attachment.missedEnds.splice(0));
    return 'live';
  }

  /**
   * Brings a reader from a position to the present: `live`, or `lost` when a journal that it needs is not there. A
   * reader of one run has `ended` when that run has. Every round moves the position on, or ends.
   */
  async function catchUp(live: LiveSession, attachment: Attachment, from: Position): Promise<CaughtUp> {
    const { sessionId } = live;
    let { generation, runId, seq } = from;
    let finished = runId === null;
    let gone: ReadonlySet<string> | null = null;
    while (!attachment.subscriber.ended) {
      const run = live.run;
      if (run && run.runId === runId) {
        const published = run.log?.published() ?? 0;
        if (seq >= published) return goLive(attachment, { generation, runId: null, seq: 0 });
        const recent = run.log?.recent(seq) ?? null;
        if (recent === null) {
          const reached = await replay(attachment, sessionId, runId, seq, published);
          if (reached < published && !attachment.subscriber.ended) return 'lost';
          seq = reached;
        } else {
          await attachment.subscriber.paced(recent);
          seq = recent.at(-1)?.place?.seq ?? seq;
        }
        continue;
      }
      if (!finished && runId !== null) {
        const admission = await admissions.byRun(sessionId, runId);
        if (live.run?.runId === runId) continue;
        if (!admission) return 'deleted';
        if (admission.status === 'started') {
          // Claimed here a moment ago and not yet in memory: what it publishes will be live.
          const here = admission.epoch === epoch ? { generation, runId: null, seq: 0 } : null;
          // Another process runs it: what it says is read when it has ended.
          return goLive(attachment, here ?? { generation, runId, seq });
        }
        if (admission.status === 'unknown') {
          // Nobody knows its end; whoever resolves it gives what is left of it, and the queue waits until then.
          return attachment.only === runId ? 'lost' : goLive(attachment, { generation, runId, seq });
        }
        if (admission.status === 'terminal') {
          const last = admission.last_seq ?? 0;
          seq = await replay(attachment, sessionId, runId, seq, last);
          if (seq < last && !attachment.subscriber.ended) return 'lost';
        }
        finished = true;
        if (attachment.only === runId) return 'ended';
        continue;
      }
      const [later] = await admissions.claimedSince(sessionId, generation, 1);
      const next = later ?? (live.run && live.run.generation > generation ? runAdmission(live.run) : null);
      if (next) {
        generation = next.generation!;
        runId = next.run_id;
        seq = 0;
        // Asked once for all the runs that are caught up with, and again when an edit came in between.
        if (gone === null || attachment.stale) gone = await takenBack(sessionId);
        finished = live.run?.runId !== runId && gone.has(runId);
      } else if (live.lastGeneration <= generation) {
        return goLive(attachment, { generation, runId: null, seq: 0 });
      } else {
        // This process began a run of which there is no row any more.
        return 'deleted';
      }
    }
    return 'ended';
  }

  /**
   * Sends where things stand, at the pace of the socket, then what was published meanwhile. So a snapshot may be larger
   * than any backlog, and there is no gap behind it.
   */
  async function snapshot(live: LiveSession, attachment: Attachment, reason: string | null): Promise<CaughtUp> {
    let resetReason = reason;
    while (!attachment.subscriber.ended) {
      const run = live.run;
      const before = live.lastGeneration;
      attachment.missedInfo = false;
      // Ends of prompts before this are in what is described now.
      attachment.missedEnds.length = 0;
      const description = await describe(live.sessionId);
      const last = (await admissions.lastClaimed(live.sessionId)) ?? null;
      if (live.run !== run || live.lastGeneration !== before || attachment.missedInfo) continue;
      const position = positionNow(live, last);
      const cursor = formatCursor(cursorAt(position));
      const payload = {
        ...description,
        run: runViewOf(live),
        open_requests: [...live.requests.values()],
        revision: description.session.revision,
        cursor,
      };
      const events: LiveEvent[] = [];
      if (resetReason !== null) events.push(plainLiveEvent('session.reset', live.sessionId, { reason: resetReason }));
      events.push(plainLiveEvent('session.snapshot', live.sessionId, payload, { cursor }));
      attachment.skipUntil = null;
      await attachment.subscriber.paced(events);
      const here = await catchUp(live, attachment, position);
      resetReason = 'too_old';
      if (here === 'lost') continue;
      if (here === 'live' && attachment.missedInfo) await infoAfterReplay(live, attachment);
      return here === 'live' ? 'told' : here;
    }
    return 'ended';
  }

  /** The place of the last event that readers of this session may have. */
  function positionNow({ run }: LiveSession, last: Admission | null): Position {
    if (run) return { generation: run.generation, runId: run.runId, seq: run.log?.published() ?? 0 };
    if (last) return { generation: last.generation!, runId: last.run_id, seq: last.last_seq ?? 0 };
    return { generation: 0, runId: null, seq: 0 };
  }

  const cursorAt = ({ runId, seq }: Position): Cursor =>
    runId === null ? { kind: 'beginning' } : { kind: 'at', runId, seq };

  /** What an honoured cursor is followed by, behind the replay: the queue and the open questions as they are now. */
  async function infoAfterReplay(live: LiveSession, attachment: Attachment): Promise<void> {
    const before = live.infos;
    const description = await describe(live.sessionId);
    if (live.infos !== before) return; // The reader, live already, was told something newer.
    const payload = { ...description, open_requests: [...live.requests.values()] };
    attachment.subscriber.offer([plainLiveEvent('session.info', live.sessionId, payload)]);
  }

  /** A reader that waits for one queued prompt: live at once, then looked whether it was cancelled meanwhile. */
  async function waitFor(live: LiveSession, attachment: Attachment, runId: string): Promise<CaughtUp> {
    for (;;) {
      const before = live.lastGeneration;
      const admission = await admissions.byRun(live.sessionId, runId);
      if (admission && admission.generation !== null) {
        attachment.skipUntil = null;
        return catchUp(live, attachment, { generation: admission.generation, runId, seq: 0 });
      }
      // A run that began meanwhile may be this one: look again.
      if (live.lastGeneration === before) break;
    }
    goLive(attachment, null);
    const now = await admissions.byRun(live.sessionId, runId);
    if (!now) return 'deleted';
    const unrun = unrunOf(now);
    if (unrun) attachment.onUnrun(unrun);
    if (now.status === 'queued' && attachment.only !== null) {
      const reason = await whyStuck(live.sessionId);
      // Told only while it waits: its run may have begun since.
      if (reason !== null && attachment.at === null) attachment.onStuck(reason);
    }
    return 'live';
  }

  /**
   * Attaches a reader. Returns when it is live or has ended; the caller has made sure that the session exists and that
   * what a dead process left of it is repaired.
   */
  return async function attach(request: AttachRequest): Promise<void> {
    const { sessionId, subscriber, cursor, only, completion } = request;
    const live = registry.open(sessionId);
    let cancelled = false;
    // Behind the headers an error can only end the stream; the reader comes back with its cursor.
    const endEarly = (): void => subscriber.close('shutdown');
    /** Ends a reader of one run with what it must still be told. */
    const finish = (last: LiveEvent): void => {
      subscriber.offer([last]);
      subscriber.close('finished');
    };
    const attachment: Attachment = {
      subscriber,
      only: only?.runId ?? null,
      skipUntil: null,
      at: null,
      live: false,
      missedInfo: false,
      missedEnds: [],
      stale: false,
      onEdited() {
        attachment.stale = true;
        if (attachment.live) bringUpToDate(live, attachment, 'live').catch(endEarly);
      },
      onUnrun(outcome) {
        if (cancelled) return;
        cancelled = true;
        if (only !== undefined) return finish(unrunCompletion(sessionId, only.admissionId, only.runId, outcome));
        attachment.live = false;
        snapshot(live, attachment, RESET_OF[outcome]).catch(endEarly);
      },
      onStuck(reason) {
        if (only !== undefined) finish(pendingRun(sessionId, only.runId, only.admissionId, reason));
      },
      onBehind(generation) {
        follow(live, attachment, attachment.at!, generation).catch(endEarly);
      },
    };
    live.attachments.add(attachment);
    subscriber.onEnd(() => {
      live.attachments.delete(attachment);
      registry.reap(sessionId);
    });
    let here = await bring(live, attachment, request);
    if (here === 'lost' && only === undefined) here = await snapshot(live, attachment, 'too_old');
    here = await bringUpToDate(live, attachment, here);
    if (here === 'deleted') {
      endDeleted(live, attachment);
    } else if (here === 'lost') {
      const end = await completion?.();
      if (end) subscriber.offer([end]);
      else attachment.onStuck('unknown_execution');
    }
    if (only !== undefined && here !== 'live') subscriber.close('finished');
    if (here === 'live' && cursor !== null && !subscriber.ended && !cancelled) await infoAfterReplay(live, attachment);
  };

  function endDeleted(live: LiveSession, attachment: Attachment): void {
    attachment.subscriber.offer([plainLiveEvent('session.deleted', live.sessionId, {})]);
    live.attachments.delete(attachment);
  }

  /** Gives a live reader the runs of other processes that it lacks, then what is published here goes on. */
  async function follow(live: LiveSession, attachment: Attachment, from: Position, upTo: number): Promise<void> {
    attachment.live = false;
    attachment.missedInfo = false;
    let here = await catchUp(live, attachment, from);
    const { at } = attachment;
    // A generation that no run has (of a copy, for example) is behind it all the same.
    if (here === 'live' && at?.runId === null && at.generation < upTo) attachment.at = { ...at, generation: upTo };
    if (here === 'lost') here = await snapshot(live, attachment, 'too_old');
    here = await bringUpToDate(live, attachment, here);
    if (here === 'deleted') endDeleted(live, attachment);
    if (here === 'live' && attachment.missedInfo && !attachment.subscriber.ended)
      await infoAfterReplay(live, attachment);
  }

  /** A reader that saw what an edit has taken back since is told anew where it stands. */
  async function bringUpToDate(live: LiveSession, attachment: Attachment, reached: CaughtUp): Promise<CaughtUp> {
    let here = reached;
    while (attachment.stale && attachment.only === null && (here === 'live' || here === 'told')) {
      attachment.stale = false;
      attachment.live = false;
      here = await snapshot(live, attachment, 'edited');
    }
    return here;
  }

  /** Brings a reader to the present in the way that it asked for. */
  async function bring(live: LiveSession, attachment: Attachment, { cursor, from }: AttachRequest): Promise<CaughtUp> {
    if (from === 'draft') return goLive(attachment, positionNow(live, null));
    if (from === 'now') {
      const last = await admissions.lastClaimed(live.sessionId);
      return catchUp(live, attachment, positionNow(live, last));
    }
    if (attachment.only !== null) return waitFor(live, attachment, attachment.only);
    const resolved = cursor === null ? null : await resolve(live, cursor);
    if (resolved === null) return snapshot(live, attachment, null);
    if (resolved.kind === 'reset') return snapshot(live, attachment, resolved.reason);
    if (resolved.kind === 'at') return catchUp(live, attachment, resolved.position);
    attachment.skipUntil = resolved.runId;
    return waitFor(live, attachment, resolved.runId);
  }
}

/** What a reader of a prompt that had no run of its own is told. */
const RESET_OF = { cancelled: 'cancelled', completed: 'steered' } as const;

/** How a prompt ended that had no run of its own; null for every other. */
const unrunOf = ({ status, generation, outcome }: Admission): UnrunOutcome | null =>
  status !== 'terminal' || generation !== null ? null : outcome === 'cancelled' ? 'cancelled' : 'completed';

const runAdmission = (run: { runId: string; generation: number }) => ({
  run_id: run.runId,
  generation: run.generation,
});

export type Attach = ReturnType<typeof createAttach>;
