/**
 * All stores in plain memory: the reference that says what the interfaces in db/stores.ts mean. The contract suite runs
 * over it and over SQLite; where the two disagree one of them is wrong.
 */
import type {
  AliveProbe,
  ChangeStore,
  ContextStore,
  EpochStore,
  LeaseStore,
  ProjectStore,
  Stores,
} from '../../db/stores.ts';
import { type LeaseOwner, sameProcess, sameWriter } from '../../server/core/lease-rules.ts';
import { createMemoryAdmissions } from './memory-admissions.ts';
import { createMemoryCredentials } from './memory-credentials.ts';
import { createMemoryEdits } from './memory-edits.ts';
import { createMemoryMessages } from './memory-search.ts';
import { createMemorySessions } from './memory-sessions.ts';
import { createMemorySettings } from './memory-settings.ts';
import { atomic, emptyState, isLiving, type MemoryState, openOf, takeLease, touch } from './memory-state.ts';

export interface MemoryStores extends Stores {
  /** Who has the lease of a session: for tests to see, no part of the interface. */
  holder(sessionId: string): LeaseOwner | null;
}

/** Empty stores. @param alive whether a process still lives */
export function createMemoryStores(alive: AliveProbe): MemoryStores {
  const state = emptyState();
  return {
    sessions: createMemorySessions(state),
    messages: createMemoryMessages(state),
    admissions: createMemoryAdmissions(state, alive),
    edits: createMemoryEdits(state, alive),
    contexts: createMemoryContexts(state),
    leases: createMemoryLeases(state, alive),
    changes: createMemoryChanges(state),
    epochs: createMemoryEpochs(state),
    projects: createMemoryProjects(state),
    credentials: createMemoryCredentials(state),
    settings: createMemorySettings(state),
    dataVersion: () => 0, // There is no other connection.
    probe: async () => {},
    close: () => {},
    holder: (sessionId) => state.leases.get(sessionId) ?? null,
  };
}

function createMemoryLeases(state: MemoryState, alive: AliveProbe): LeaseStore {
  return {
    acquire: (sessionId, { wait: _never, ...request }) => atomic(() => takeLease(state, sessionId, request, alive)),

    releaseIdle: (sessionId, owner) =>
      atomic(() => {
        const held = state.leases.get(sessionId);
        const ours = held !== undefined && sameWriter(held, owner);
        return ours && openOf(state, sessionId).length === 0 && state.leases.delete(sessionId);
      }),

    holder: (sessionId) =>
      atomic(() => {
        const held = state.leases.get(sessionId);
        return held && isLiving(alive, held) ? held : null;
      }),

    abandoned: (own) =>
      atomic(() => {
        const ids = [...state.sessions.keys()].filter((id) => {
          const open = openOf(state, id);
          return open.length > 0 && open.every((one) => one.status !== 'unknown');
        });
        const others = ids.filter((id) => {
          const held = state.leases.get(id);
          return !held || !sameProcess(held, own);
        });
        const sessions = others.filter((id) => {
          const held = state.leases.get(id);
          return !held || !isLiving(alive, held);
        });
        return { sessions, othersRun: others.length > sessions.length };
      }),
  };
}

function createMemoryContexts(state: MemoryState): ContextStore {
  return {
    summary: (sessionId) => atomic(() => state.summaries.get(sessionId) ?? null),

    summarise: (sessionId, summary, { editNumber, contextUsed }) =>
      atomic(() => {
        const session = state.sessions.get(sessionId);
        if (session?.edit_number !== editNumber) return 'stale';
        state.summaries.set(sessionId, summary);
        session.context_used = contextUsed;
        session.context_estimated = true;
        touch(session, summary.created_at);
        return 'saved';
      }),
  };
}

function createMemoryChanges(state: MemoryState): ChangeStore {
  return {
    since: (time, also) =>
      atomic(() => ({
        changed: [...state.sessions.values()]
          .map(({ session_id, revision, created_at, updated_at }) => ({
            session_id,
            revision,
            created_at,
            updated_at,
            open: openOf(state, session_id).length > 0,
          }))
          .filter((one) => one.updated_at > time || one.open || also.includes(one.session_id))
          .map(({ updated_at: _time, ...one }) => one),
        deleted: [...state.deletedAt].filter(([, at]) => at > time).map(([id]) => id),
      })),
  };
}

function createMemoryEpochs(state: MemoryState): EpochStore {
  return {
    begin: ({ process }) => atomic(() => state.epochs.push({ ...process, ended: false })),
    end: (epoch) =>
      atomic(() => {
        const known = state.epochs[epoch - 1];
        if (known) known.ended = true;
      }),
    process: (epoch) => atomic(() => state.epochs[epoch - 1] ?? null),
  };
}

function createMemoryProjects(state: MemoryState): ProjectStore {
  const bare = ({ project_id, name, color }: MemoryState['projects'][number]) => ({ project_id, name, color });
  return {
    list: () => atomic(() => state.projects.toSorted((a, b) => a.created - b.created).map(bare)),

    create: (project, now) =>
      atomic(() => {
        state.projects.push({ ...project, created: now });
        return project;
      }),

    patch: (projectId, patch) =>
      atomic(() => {
        const project = state.projects.find((one) => one.project_id === projectId);
        if (!project) return null;
        if (patch.name !== undefined) project.name = patch.name;
        if (patch.color !== undefined) project.color = patch.color;
        return bare(project);
      }),

    remove: (projectId, now) =>
      atomic(() => {
        if (!state.projects.some((one) => one.project_id === projectId)) return null;
        state.projects = state.projects.filter((one) => one.project_id !== projectId);
        const changed = [...state.sessions.values()].filter((one) => one.project_id === projectId);
        for (const session of changed) {
          session.project_id = null;
          touch(session, now);
        }
        return changed.map((one) => one.session_id);
      }),
  };
}
