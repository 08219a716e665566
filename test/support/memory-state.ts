/**
 * What the memory stores share: all state as plain values, and the questions that several stores ask of it. Nothing
 * here is durable and nothing waits; it is the meaning of the store interfaces, written as simply as it can be.
 */

import { RegistryTrouble } from '../../db/storage-trouble.ts';
import type {
  AliveProbe,
  ApiToken,
  ContextSummary,
  LeaseRequest,
  Login,
  NewSession,
  OpenRow,
  Project,
  SessionRow,
} from '../../db/stores.ts';
import { judgeLease, type LeaseOwner, needsLease } from '../../server/core/lease-rules.ts';
import type { ServerSettings } from '../../server/core/server-settings.ts';
import type { Admission, Message, ProcessIdentity } from '../../server/core/terms.ts';

export interface StoredSession extends Omit<SessionRow, 'open'> {
  create_key: string | null;
  create_digest: string | null;
}

export interface MemoryState {
  sessions: Map<string, StoredSession>;
  /** In order of acceptance. */
  admissions: Admission[];
  /** How many admissions there ever were. */
  accepted: number;
  /** Active rows, in order. */
  messages: Map<string, Message[]>;
  /** Rows that are active no more, in the order in which they were taken out. */
  inactive: Map<string, Message[]>;
  summaries: Map<string, ContextSummary>;
  leases: Map<string, LeaseOwner>;
  epochs: (ProcessIdentity & { ended: boolean })[];
  projects: (Project & { created: number })[];
  password: string | null;
  guarded: boolean;
  logins: Login[];
  tokens: ApiToken[];
  settings: ServerSettings;
  /** Whether the files of a deleted session are gone too. */
  tombstones: Map<string, boolean>;
  /** When each was deleted, epoch seconds. */
  deletedAt: Map<string, number>;
}

export const emptyState = (): MemoryState => ({
  sessions: new Map(),
  admissions: [],
  accepted: 0,
  messages: new Map(),
  inactive: new Map(),
  summaries: new Map(),
  leases: new Map(),
  epochs: [],
  projects: [],
  password: null,
  guarded: false,
  logins: [],
  tokens: [],
  settings: { default_model: null, busy_input_mode: null },
  tombstones: new Map(),
  deletedAt: new Map(),
});

/** Runs `work` as one transaction: nobody else runs in between, and what it gives away is a copy. */
export async function atomic<T>(work: () => T): Promise<T> {
  return structuredClone(work());
}

/** The admissions of a session that have not ended, in order. */
export const openOf = (state: MemoryState, sessionId: string): Admission[] =>
  state.admissions.filter((one) => one.session_id === sessionId && one.status !== 'terminal');

/** A session as its readers see it. */
export function rowOf(state: MemoryState, session: StoredSession): SessionRow {
  const { create_key: _key, create_digest: _digest, ...row } = session;
  const open = openOf(state, session.session_id).map(
    ({ admission_id, run_id, sequence, status, started_at, epoch }): OpenRow => ({
      admission_id,
      run_id,
      sequence,
      status: status as OpenRow['status'],
      started_at,
      epoch,
    }),
  );
  return { ...row, open };
}

/** A new row for a session whose id is free. */
export function addSession(state: MemoryState, input: NewSession): StoredSession {
  const { now, ...named } = input;
  const session: StoredSession = {
    ...named,
    title_source: input.title === null ? null : 'user',
    created_at: now,
    updated_at: now,
    last_activity_at: now,
    last_message_at: null,
    message_count: 0,
    pinned: false,
    archived: false,
    draft: '',
    revision: 1,
    generation: 0,
    edit_number: 0,
    edit_fence: null,
    input_tokens: 0,
    output_tokens: 0,
    cached_tokens: 0,
    reasoning_tokens: 0,
    cost_usd: null,
    context_used: null,
    context_length: null,
    context_estimated: false,
    flags: [],
  };
  state.sessions.set(session.session_id, session);
  return session;
}

/** Marks a change that a person can see. @param now epoch seconds; null leaves `updated_at` */
export function touch(session: StoredSession, now: number | null): void {
  session.revision += 1;
  if (now !== null) session.updated_at = now;
}

/** Whether a process lives; a system that does not answer is trouble of the registry. */
export function isLiving(alive: AliveProbe, process: ProcessIdentity): boolean {
  try {
    return alive(process);
  } catch (error) {
    throw new RegistryTrouble(error);
  }
}

/** Takes or keeps a lease by the rules of the core. */
export function takeLease(state: MemoryState, sessionId: string, request: LeaseRequest, probe: AliveProbe) {
  const alive: AliveProbe = (process) => isLiving(probe, process);
  if (!needsLease(sessionId)) return { kind: 'granted' as const };
  const others = request.cap === null ? [] : [...state.leases].filter(([id]) => id !== sessionId).map(([, it]) => it);
  const verdict = judgeLease(request.owner, state.leases.get(sessionId) ?? null, others, request.cap, alive);
  if (verdict.kind === 'not_owned') return { kind: 'not_owned' as const, holder: verdict.holder };
  if (verdict.kind === 'capacity') return { kind: 'capacity' as const };
  for (const [id, owner] of state.leases) if (verdict.prune.includes(owner)) state.leases.delete(id);
  if (!verdict.renew) state.leases.set(sessionId, { ...request.owner });
  return { kind: 'granted' as const };
}

/** Takes rows out of the transcript of a session; they are never destroyed, and never come back. */
export function takeOut(state: MemoryState, sessionId: string, ids: readonly string[]): void {
  const gone = new Set(ids);
  const rows = state.messages.get(sessionId) ?? [];
  const out = rows.filter((row) => gone.has(row.id));
  state.messages.set(
    sessionId,
    rows.filter((row) => !gone.has(row.id)),
  );
  state.inactive.set(sessionId, [...(state.inactive.get(sessionId) ?? []), ...out]);
}

/** Writes rows by id: what is there is replaced in its place, what is missing comes last. */
export function putRows(state: MemoryState, sessionId: string, rows: readonly Message[]): void {
  const list = state.messages.get(sessionId) ?? [];
  for (const row of rows) {
    const at = list.findIndex((known) => known.id === row.id);
    if (at < 0) list.push(structuredClone(row));
    else list[at] = structuredClone(row);
  }
  state.messages.set(sessionId, list);
}
