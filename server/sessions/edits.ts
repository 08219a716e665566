/**
 * Edits of a session: rewind, clear, retry, resend. Each is one transaction of the state DB (rows, fence, revision, and for a
 * retry the prompt), then the sidecar; what a crash leaves between the two is cut at the fence by the next read (ED1).
 * An edit never touches a turn that waits, runs or is of unknown fate (ED2).
 */
import type { SidecarRow } from '../../db/files/sidecar-store.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import type { Cut, SessionRow, Stores } from '../../db/stores.ts';
import { type Admit, RETRY_DIGEST, resendDigest, type Submission } from '../authority/admit.ts';
import type { ReachCrashPoint } from '../authority/crash-points.ts';
import type { Drain } from '../authority/drain.ts';
import { judgeEdit, keptUpTo, turnStarts } from '../core/edit-rules.ts';
import type { Admission, Message } from '../core/terms.ts';
import { AppError } from '../errors.ts';
import type { Leases } from '../lease/leases.ts';
import { notOwned, unlessElsewhere } from '../lease/not-owned.ts';
import type { LiveSession } from '../live/live-session.ts';
import type { LiveRegistry } from '../live/registry.ts';
import type { Recovery } from '../recovery/recovery.ts';
import type { SessionLock } from './session-lock.ts';
import type { Sessions } from './sessions.ts';
import type { Transcripts } from './transcripts.ts';
import { type SessionView, toSessionView } from './view.ts';

export interface EditsParts {
  stores: Pick<Stores, 'sessions' | 'admissions' | 'edits' | 'messages'>;
  sessions: Pick<Sessions, 'get'>;
  transcripts: Transcripts;
  recovery: Pick<Recovery, 'heal' | 'isTakenByOthers'>;
  registry: LiveRegistry;
  leases: Leases;
  lock: SessionLock;
  admit: Admit;
  drain: Pick<Drain, 'arm'>;
  reached: ReachCrashPoint;
  /** Epoch seconds. */
  now(): number;
  onChange(sessionId: string, reason: string): void;
  log: { warn(fields: object, message: string): void };
}

/** Up to where a transcript is kept: a row, or all but the last turns. */
export type RewindTo = { message: string } | { turns: number };

export interface Edits {
  /**
   * Takes back the end of a transcript. A row that is kept keeps the tool block that it is in: a call stays with its
   * results. Nothing after the row: nothing changes.
   * @param revision the one that the caller has seen
   * @returns the session, and how many rows were taken back
   * @throws AppError revision_conflict with the present one, unknown_message, unacceptable for more turns than there are
   */
  rewind(sessionId: string, to: RewindTo, revision: number): Promise<{ session: SessionView; removed: number }>;
  /** Takes back all rows; the session stays as it is otherwise. @throws AppError revision_conflict */
  clear(sessionId: string, revision: number): Promise<SessionView>;
  /**
   * Takes back the last prompt with what came of it, and admits it again, in one step (ED3).
   * @param requestId the caller's key: a repeat gives the same receipt and takes back nothing more; null for a new one
   * @throws AppError unacceptable when there is no prompt, and what a prompt can be refused for
   */
  retry(sessionId: string, requestId: string | null, principalId: string): Promise<Admission>;
  /**
   * Takes back a prompt with all that came after it, and admits another one in its place, in one step (ED3).
   * @throws AppError unknown_message when that prompt is not there or is none, and what a prompt can be refused for
   */
  resend(place: PromptPlace, submission: Resent): Promise<Admission>;
}

/** The prompt that is replaced: its message id, or its number among the prompts, from 0. */
export type PromptPlace = { message: string } | { ordinal: number };

export type Resent = Omit<Submission, 'mode' | 'replaces' | 'draft'>;

/** A prompt, and the place from which everything is taken back for it. */
interface Replacing {
  at: number;
  text: string;
  attachments: string[];
}

/** A session and its transcript, while nothing of it moves in this process. */
interface Seen {
  live: LiveSession;
  session: SessionRow;
  rows: readonly SidecarRow[];
  /** Rows of the state DB that only repeat what is shown, by their numbers. */
  unnamed: readonly number[];
}

/** How often a retry looks at a session that is changed under it. */
const ROUNDS = 5;

export function createEdits(parts: EditsParts): Edits {
  const { stores, transcripts, registry, leases, now } = parts;

  /** Does an edit under the lock of the session's files, on a transcript that every store has. */
  async function edit<T>(sessionId: string, work: (seen: Seen) => Promise<T>): Promise<T> {
    await parts.sessions.get(sessionId); // 404 first, and what a dead process left is resolved.
    await parts.recovery.heal(sessionId);
    const release = registry.hold(sessionId);
    const live = registry.open(sessionId);
    try {
      return await parts.lock(sessionId, async () => work(await look(live)).finally(() => giveBack(live)));
    } finally {
      release();
    }
  }

  /** The session and its transcript, or why there is nothing to be edited now. */
  async function look(live: LiveSession): Promise<Seen> {
    const { sessionId } = live;
    const session = await stores.sessions.get(sessionId);
    if (!session) throw new AppError('session_not_found');
    // A turn that begins after this moves the revision; one that has settled writes the sidecar until its end was told.
    const { revision } = session;
    const verdict = judgeEdit({ open: session.open, revision, expected: revision });
    if (verdict !== 'edit') throw await unlessElsewhere(verdict, sessionId, leases);
    if (live.run) throw new AppError('session_busy');
    // Before the transcript: what has no id in it, although nothing is behind, says what a row says that is shown.
    const index = await stores.messages.index(sessionId);
    const unnamed = index.rowIds.filter((_, at) => index.ids[at] === null);
    const { rows, behind } = await transcripts.read(sessionId);
    if (await parts.recovery.isTakenByOthers(sessionId)) {
      throw new AppError(
        'session_busy',
        'Another program has a turn pending in this session. Try again in half a minute.',
      );
    }
    // A row that the state DB does not know cannot be taken out of it, and would come back.
    if (behind) throw new AppError('session_busy', 'The session is being repaired. Try again in a moment.');
    return { live, session, rows, unnamed };
  }

  /** Brings the sidecar behind an edit. Not now is no failure: until then every read cuts it at the fence. */
  async function save({ live, session }: Seen): Promise<void> {
    const { sessionId } = live;
    parts.reached('edited');
    transcripts.forget(sessionId);
    live.edited(session.edit_number + 1);
    await unlessTrouble(sessionId, () => transcripts.save(sessionId, { rows: [], pending: null, now: now() }));
    parts.reached('edit-saved');
  }

  const giveBack = (live: LiveSession): Promise<void> => unlessTrouble(live.sessionId, () => leases.releaseIdle(live));

  /** Work behind an edit that is made already, whatever becomes of it. */
  async function unlessTrouble(sessionId: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (storageTroubleKind(error) === null) throw error;
      parts.log.warn({ session_id: sessionId, err: error }, 'an edit is made, but its traces cannot be cleaned up now');
    }
  }

  /** Keeps the first rows and takes back the others. */
  async function cutTo(seen: Seen, kept: number, expected: number): Promise<{ session: SessionView; removed: number }> {
    const { live, session, rows } = seen;
    const { sessionId } = live;
    if (session.revision !== expected) throw conflict(session.revision);
    const removed = rows.length - kept;
    if (removed === 0) return { session: toSessionView(session, live), removed };
    // No cap applies: an edit runs nothing.
    const lease = { ...leases.request(live), cap: null };
    const outcome = await stores.edits.cut(sessionId, cutAt(seen, kept), { lease, now: now() });
    switch (outcome.kind) {
      case 'edited':
        await save(seen);
        parts.onChange(sessionId, 'edited');
        return { session: toSessionView(outcome.session, live), removed };
      case 'not_found':
        throw new AppError('session_not_found');
      case 'revision_conflict':
        throw conflict(outcome.revision);
      case 'not_owned':
        throw notOwned(sessionId, outcome.holder);
      case 'capacity':
        throw new AppError('max_concurrent_sessions');
      default:
        throw await unlessElsewhere(outcome.kind, sessionId, leases);
    }
  }

  function rewindPlace(rows: readonly SidecarRow[], to: RewindTo): number {
    if ('message' in to) {
      const kept = keptUpTo(rows, to.message);
      if (kept === 0) throw new AppError('unknown_message');
      return kept;
    }
    const starts = turnStarts(rows);
    const at = starts.at(-to.turns);
    if (at === undefined) throw new AppError('unacceptable', `The session has only ${starts.length} turns.`);
    return at;
  }

  /** The receipt of an earlier one with this key, or the refusal when the key was another prompt's. */
  async function repeated({ sessionId, requestId, principalId, digest }: Sameness): Promise<Admission | null> {
    await parts.sessions.get(sessionId);
    const known = requestId === null ? null : await stores.admissions.byRequest(principalId, sessionId, requestId);
    if (!known) return null;
    if (known.digest !== digest) throw new AppError('admission_conflict');
    // As with any repeat: what made the first one pause may be gone.
    if (known.status === 'queued') parts.drain.arm(sessionId);
    return known;
  }

  /** Admits a prompt in the place of others, as often as the session is changed under it. */
  async function replace(same: Sameness, choose: (rows: readonly SidecarRow[]) => Replacing): Promise<Admission> {
    const { sessionId, requestId, principalId, digest } = same;
    for (let round = 1; ; round += 1) {
      const repeat = await repeated(same);
      if (repeat) return repeat;
      try {
        return await edit(sessionId, async (seen) => {
          const { at, text, attachments } = choose(seen.rows);
          const admission = await parts.admit({
            sessionId,
            text,
            attachments,
            mode: 'queue',
            requestId,
            principalId,
            replaces: { cut: cutAt(seen, at), digest, follow: () => save(seen) },
          });
          parts.onChange(sessionId, 'edited');
          return admission;
        });
      } catch (error) {
        const code = error instanceof AppError ? error.code : null;
        const moved = code === 'revision_conflict' && round < ROUNDS;
        // What keeps it busy, or has taken the prompt back, may be this very request, sent twice.
        const isBusy = code === 'session_busy' || code === 'session_not_owned' || code === 'unknown_message';
        const twice = isBusy && requestId !== null && round === 1;
        if (!moved && !twice) throw error;
      }
    }
  }

  return {
    rewind: (sessionId, to, revision) =>
      edit(sessionId, async (seen) => {
        // First: what is asked for by an older revision may not be what is there now.
        if (seen.session.revision !== revision) throw conflict(seen.session.revision);
        return cutTo(seen, rewindPlace(seen.rows, to), revision);
      }),

    clear: (sessionId, revision) => edit(sessionId, async (seen) => (await cutTo(seen, 0, revision)).session),

    retry: (sessionId, requestId, principalId) =>
      replace({ sessionId, requestId, principalId, digest: RETRY_DIGEST }, (rows) => {
        const at = turnStarts(rows).at(-1);
        if (at === undefined) throw new AppError('unacceptable', 'There is no prompt to try again.');
        const prompt = JSON.parse(rows[at]!.json) as Message;
        return { at, text: String(prompt.content ?? ''), attachments: prompt.attachments ?? [] };
      }),

    resend(place, { text, attachments, ...who }) {
      const digest = resendDigest(place, text, attachments);
      return replace({ ...who, digest }, (rows) => {
        const starts = turnStarts(rows);
        const at = 'ordinal' in place ? starts[place.ordinal] : starts.find((one) => rows[one]!.id === place.message);
        if (at === undefined) throw new AppError('unknown_message', 'There is no such prompt in this session.');
        return { at, text, attachments };
      });
    },
  };
}

/** What makes a request the same as an earlier one. */
interface Sameness {
  sessionId: string;
  requestId: string | null;
  principalId: string;
  digest: string;
}

const conflict = (revision: number): AppError => new AppError('revision_conflict', undefined, { revision });

function cutAt({ rows, session, unnamed }: Seen, count: number): Cut {
  const last = rows[count - 1];
  const kept = last ? { id: last.id, timestamp: (JSON.parse(last.json) as Message).timestamp } : null;
  // Of rows that say again what is taken back none may stay: it would be new to the next read.
  const remove = [...rows.slice(count).map((row) => row.id), ...unnamed.map((rowId) => `row.${rowId}`)];
  return { kept, count, remove, revision: session.revision };
}
