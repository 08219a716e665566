/**
 * Sessions as their users see them: create, read, list, change, delete. Every read first resolves what a dead process
 * left, so that the first read after a restart is already right (RE2).
 */
import type { AttachmentStore } from '../../db/files/attachment-store.ts';
import type { JournalStore } from '../../db/files/journal.ts';
import type { SidecarStore } from '../../db/files/sidecar-store.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import type { SessionListCursor, SessionListQuery, SessionPatch, SessionRow, Stores } from '../../db/stores.ts';
import type { Drain } from '../authority/drain.ts';
import type { Stop } from '../authority/stop.ts';
import { formatSessionId } from '../core/ids.ts';
import { wellFormed } from '../core/text.ts';
import { AppError } from '../errors.ts';
import type { Leases } from '../lease/leases.ts';
import { notOwned } from '../lease/not-owned.ts';
import type { SessionDescription } from '../live/attach.ts';
import { plainLiveEvent } from '../live/live-event.ts';
import type { LiveRegistry } from '../live/registry.ts';
import type { Recovery } from '../recovery/recovery.ts';
import { type AdmissionView, toQueuedView } from './admission-view.ts';
import { type Page, pageOf } from './page.ts';
import type { SessionLock } from './session-lock.ts';
import type { Transcripts } from './transcripts.ts';
import { type SessionView, toSessionView } from './view.ts';

export type { SessionListCursor };

export interface SessionsParts {
  stores: Pick<Stores, 'sessions' | 'admissions' | 'messages'>;
  sidecars: SidecarStore;
  journals: JournalStore;
  attachments: Pick<AttachmentStore, 'list' | 'removeAll'>;
  /** Ends the agent of a deleted session, and removes what that had. */
  agents: { forget(sessionId: string): Promise<void> };
  transcripts: Transcripts;
  registry: LiveRegistry;
  recovery: Recovery;
  stop: Pick<Stop, 'interrupt'>;
  drain: Pick<Drain, 'wake' | 'ended'>;
  leases: Pick<Leases, 'elsewhere'>;
  /** Gives a session back that gateway clients hold. */
  letGo(sessionId: string): Promise<void>;
  /** Somebody asks for sessions: what other processes left may be looked for. */
  onAsked(): void;
  lock: SessionLock;
  /** Whether a session may be given this model; a string says why not. */
  checkModel(model: string): string | null;
  /** @throws AppError bad_workspace, when a folder cannot be a workspace */
  assertWorkspace(path: string): Promise<void>;
  /** Epoch seconds. */
  now(): number;
  /** Six hexadecimal digits, new each time. */
  newIdSuffix(): string;
  onChange(sessionId: string, reason: string): void;
  log: { warn(fields: object, message: string): void };
}

export interface CreateInput {
  title?: string | null;
  model?: string | null;
  workspace?: string | null;
  project_id?: string | null;
}

export interface MessagePage extends Page {
  session: SessionView;
  /** Tells this state of the transcript from every other. */
  tag: string;
}

export interface Sessions {
  /**
   * Fields of a session as they can be stored.
   * @throws AppError unknown_model, bad_workspace, unknown_project
   */
  check<T extends CreateInput>(input: T): Promise<T>;
  create(input: CreateInput, key: { key: string; digest: string } | null): Promise<SessionView>;
  get(sessionId: string): Promise<SessionView>;
  list(query: SessionListQuery): Promise<{ sessions: SessionView[]; next: SessionListCursor | null; total: number }>;
  patch(sessionId: string, patch: SessionPatch, revision: number | null): Promise<SessionView>;
  /** @param stop interrupt what runs, cancel what waits, then delete */
  remove(sessionId: string, stop: boolean): Promise<void>;
  /** The last rows, or those before or after a row. */
  messages(sessionId: string, page: { limit: number; before?: string; after?: string }): Promise<MessagePage>;
  /** @throws AppError session_not_found; session_not_owned when another process runs it, or is about to */
  assertStreamable(sessionId: string): Promise<void>;
  /** What stream readers are told of a session. */
  describe(sessionId: string): Promise<SessionDescription>;
  /** Finishes deletions whose files a crash left behind. */
  removeLeftovers(): Promise<void>;
}

export function createSessions(parts: SessionsParts): Sessions {
  const { stores, transcripts, registry, recovery, now } = parts;

  /** The row of a session, after what a dead process left of it is resolved. */
  async function row(sessionId: string): Promise<SessionRow> {
    parts.onAsked();
    const session = await stores.sessions.get(sessionId);
    if (!session) throw new AppError('session_not_found');
    if (session.open.every((open) => open.status === 'queued')) {
      const live = registry.peek(sessionId);
      // Queued by a process that may have died since: whoever looks sees to it that it runs.
      if (session.open.length > 0 && !live?.run && !live?.paused && !(await waitsElsewhere(sessionId))) {
        parts.drain.wake(sessionId);
      }
      return session;
    }
    try {
      await recovery.ensure(session);
    } catch (error) {
      if (storageTroubleKind(error) === null) throw error;
      // A read answers with what stands. Its lease may be ours by now, and nobody else would go on then: the drain does.
      parts.log.warn({ session_id: sessionId, err: error }, 'recovery must wait');
      parts.drain.wake(sessionId);
      return withoutDeadTurns(session);
    }
    const after = await stores.sessions.get(sessionId);
    if (!after) throw new AppError('session_not_found');
    return withoutDeadTurns(after);
  }

  /** A turn whose process is dead does not run, whatever its row says until it is resolved: it is of unknown fate. */
  async function withoutDeadTurns(session: SessionRow): Promise<SessionRow> {
    const dead = new Set(await recovery.deadTurns(session.open));
    if (dead.size === 0) return session;
    return { ...session, open: session.open.map((one) => (dead.has(one) ? { ...one, status: 'unknown' } : one)) };
  }

  /** Whether a living process that is not this one moves the queue of a session. Who cannot know leaves it alone. */
  async function waitsElsewhere(sessionId: string): Promise<boolean> {
    try {
      return (await parts.leases.elsewhere(sessionId)) !== null;
    } catch (error) {
      if (storageTroubleKind(error) === null) throw error;
      return true; // Reading needs no lease (LE8).
    }
  }

  const view = (session: SessionRow): SessionView => toSessionView(session, registry.peek(session.session_id));

  /** What can be stored of a caller's fields: a blank title is none, and what a field names must exist. */
  async function checked<T extends CreateInput>(raw: T): Promise<T> {
    const input = { ...raw };
    if (typeof input.title === 'string') input.title = input.title.trim() === '' ? null : wellFormed(input.title);
    if (typeof input.model === 'string') {
      const problem = input.model === '' ? undefined : parts.checkModel(input.model);
      if (problem !== null) throw new AppError('unknown_model', problem);
    }
    if (typeof input.workspace === 'string') {
      await parts.assertWorkspace(input.workspace);
    }
    if (input.project_id === '') throw new AppError('unknown_project');
    return input;
  }

  async function removeFiles(sessionId: string): Promise<void> {
    transcripts.forget(sessionId);
    await parts.sidecars.remove(sessionId);
    await parts.journals.removeAll(sessionId);
    await parts.attachments.removeAll(sessionId);
    await parts.agents.forget(sessionId);
    await stores.sessions.filesRemoved(sessionId);
  }

  return {
    check: checked,

    async create(raw, key) {
      // A repeat is answered before anything is checked: what was there the first time may be gone.
      const made = key ? await stores.sessions.byCreateKey(key.key) : null;
      if (made && made.digest === key?.digest) return view(made.session);
      const input = await checked(raw);
      for (;;) {
        const outcome = await stores.sessions.create({
          session_id: formatSessionId(now(), parts.newIdSuffix()),
          title: input.title ?? null,
          model: input.model ?? null,
          workspace: input.workspace ?? null,
          project_id: input.project_id ?? null,
          source: 'turnkeep',
          now: now(),
          create_key: key?.key ?? null,
          create_digest: key?.digest ?? null,
        });
        if (outcome.kind === 'no_project') throw new AppError('unknown_project');
        if (outcome.kind === 'key_conflict') throw new AppError('idempotency_conflict');
        if (outcome.kind === 'id_taken') continue;
        if (outcome.kind === 'created') parts.onChange(outcome.session.session_id, 'created');
        return view(outcome.session);
      }
    },

    get: async (sessionId) => view(await row(sessionId)),

    async list(query) {
      parts.onAsked(); // What is shown of unknown fate is being resolved then.
      const { sessions, next, total } = await stores.sessions.list(query);
      return { sessions: (await Promise.all(sessions.map(withoutDeadTurns))).map(view), next, total };
    },

    async patch(sessionId, raw, revision) {
      const input = await checked(raw);
      if (input.title !== undefined) input.title_source = input.title === null ? null : 'user';
      if (typeof input.draft === 'string') input.draft = wellFormed(input.draft);
      const outcome = await stores.sessions.patch(sessionId, input, { now: now(), revision });
      if (outcome.kind === 'not_found') throw new AppError('session_not_found');
      if (outcome.kind === 'no_project') throw new AppError('unknown_project');
      if (outcome.kind === 'revision_conflict') throw new AppError('revision_conflict');
      parts.onChange(sessionId, 'changed');
      return view(outcome.session);
    },

    async remove(sessionId, stop) {
      const { generation } = await row(sessionId);
      // With `stop` prompts may still come in while it stops: a few rounds, then the refusal says so.
      // A session that never ran has files only where somebody gave it some; with `stop` it may run meanwhile.
      const hasFiles =
        stop ||
        generation > 0 ||
        (await parts.sidecars.identity(sessionId)) !== null ||
        (await parts.attachments.list(sessionId)).length > 0;
      for (let rounds = stop ? 10 : 1; ; rounds -= 1) {
        if (stop) {
          await parts.letGo(sessionId);
          await parts.stop.interrupt(sessionId, { generation: null, clearQueue: true });
          await parts.drain.ended(sessionId);
        }
        // Its owner may still write its files, although nothing is open.
        const holder = await parts.leases.elsewhere(sessionId);
        if (holder) throw notOwned(sessionId, holder);
        const live = registry.peek(sessionId);
        const outcome = live?.run || live?.held ? 'live' : await stores.sessions.remove(sessionId, now(), hasFiles);
        if (outcome === 'removed') break;
        if (outcome === 'not_found') throw new AppError('session_not_found');
        if (rounds <= 1) throw new AppError('session_live');
      }
      // A file may have come in since it was looked for. Whoever brings one now sees that the session is gone (AT6).
      const remove = hasFiles ? removeFiles : parts.attachments.removeAll;
      await parts.lock(sessionId, () => remove(sessionId));
      registry.peek(sessionId)?.publish(plainLiveEvent('session.deleted', sessionId, {}));
      registry.publishList(sessionId, 'deleted');
    },

    async messages(sessionId, { limit, before, after }) {
      let session = await row(sessionId);
      let transcript = await transcripts.read(sessionId);
      // A turn that may still run is its process's, and its stores with it (RE2).
      if (recovery.needsHealing(transcript) && session.open.every((open) => open.status === 'queued')) {
        await recovery.heal(sessionId);
        session = (await stores.sessions.get(sessionId)) ?? session;
        // Its owner may have died since it was looked: then healing has taken the lease, and nobody else would go on.
        if (session.open.length > 0 && !registry.peek(sessionId)?.paused) parts.drain.wake(sessionId);
        transcript = await transcripts.read(sessionId);
      }
      return { ...pageOf(transcript, { limit, before, after }), session: view(session), tag: transcript.tag };
    },

    async assertStreamable(sessionId) {
      const session = await row(sessionId);
      if (session.open.length === 0 || registry.peek(sessionId)?.run) return;
      const holder = (await recovery.runsElsewhere(session)) ?? (await parts.leases.elsewhere(sessionId));
      if (holder) throw notOwned(sessionId, holder);
    },

    async describe(sessionId) {
      const stored = await row(sessionId);
      const live = registry.peek(sessionId);
      if (live) live.editSeen ??= stored.edit_number;
      const session = view(stored);
      const queue =
        session.queue_length === 0 ? [] : await stores.admissions.list(sessionId, { pending: true, limit: 1000 });
      const waiting: AdmissionView[] = queue.filter((one) => one.status === 'queued').map(toQueuedView);
      return { session: { ...session }, queue: waiting };
    },

    async removeLeftovers() {
      for (const sessionId of await stores.sessions.tombstones()) {
        // One that cannot be removed now is tried again at the next start, and costs the others nothing.
        await parts
          .lock(sessionId, () => removeFiles(sessionId))
          .catch((error) => parts.log.warn({ session_id: sessionId, err: error }, 'files of a deleted session stay'));
      }
    },
  };
}
