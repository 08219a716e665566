/**
 * The stores as their callers see them: one interface for each group of durable operations. Every method is one
 * transaction and returns a promise; what can be expected to happen is a union, `StorageTrouble` is thrown when the
 * storage cannot work right now. Implementations: SQLite here, memory for tests; one contract suite runs over both.
 */
import type { LeaseOwner } from '../server/core/lease-rules.ts';
import type { RawRow } from '../server/core/reconcile/row.ts';
import type { ServerSettings } from '../server/core/server-settings.ts';
import type {
  Admission,
  Message,
  Mode,
  Outcome,
  ProcessIdentity,
  Scope,
  TurnError,
  Usage,
} from '../server/core/terms.ts';

/** `{ kind: 'a' } | { kind: 'b' }` for `'a' | 'b'`. */
export type Kind<K extends string> = K extends string ? { kind: K } : never;

/** One row of `sessions`, with what its open admissions say. */
export interface SessionRow {
  session_id: string;
  title: string | null;
  title_source: 'user' | 'llm' | 'derived' | null;
  source: string;
  model: string | null;
  workspace: string | null;
  project_id: string | null;
  created_at: number;
  updated_at: number;
  last_message_at: number | null;
  /** When something was last asked or said: what the list is ordered by. */
  last_activity_at: number;
  message_count: number;
  pinned: boolean;
  archived: boolean;
  draft: string;
  revision: number;
  generation: number;
  edit_number: number;
  edit_fence: string | null;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  reasoning_tokens: number;
  cost_usd: number | null;
  context_used: number | null;
  context_length: number | null;
  /** Whether `context_used` is an estimate. */
  context_estimated: boolean;
  flags: string[];
  /** Admissions that have not ended, in order. */
  open: OpenRow[];
}

export interface OpenRow {
  admission_id: string;
  run_id: string;
  sequence: number;
  status: 'queued' | 'started' | 'unknown';
  started_at: number | null;
  epoch: number | null;
}

export interface NewSession {
  session_id: string;
  title: string | null;
  model: string | null;
  workspace: string | null;
  project_id: string | null;
  source: string;
  now: number;
  create_key: string | null;
  create_digest: string | null;
}

export interface SessionPatch {
  title?: string | null;
  title_source?: 'user' | 'llm' | 'derived' | null;
  pinned?: boolean;
  archived?: boolean;
  model?: string | null;
  workspace?: string | null;
  project_id?: string | null;
  draft?: string;
}

export interface SessionListQuery {
  limit: number;
  /** What the last page gave as `next`. */
  cursor: SessionListCursor | null;
  archived: 'no' | 'yes' | 'only';
  /** Words that the title must contain, without regard to case. */
  q: string | null;
  project_id: string | null;
  source: string | null;
}

export interface SessionListCursor {
  pinned: boolean;
  /** Epoch seconds of the newest activity. */
  activity: number;
  session_id: string;
}

export interface SessionStore {
  /** `existing` for a repeat of the create key, `key_conflict` when its digest differs, `id_taken`, `no_project`. */
  create(
    session: NewSession,
  ): Promise<{ kind: 'created' | 'existing'; session: SessionRow } | Kind<'key_conflict' | 'id_taken' | 'no_project'>>;
  /** The session that was made with this key, and the digest that came with it. */
  byCreateKey(key: string): Promise<{ session: SessionRow; digest: string | null } | null>;
  get(sessionId: string): Promise<SessionRow | null>;
  list(query: SessionListQuery): Promise<{ sessions: SessionRow[]; next: SessionListCursor | null; total: number }>;
  /** A patch of only the draft moves no revision. */
  patch(
    sessionId: string,
    patch: SessionPatch,
    options: { now: number; revision: number | null },
  ): Promise<{ kind: 'patched'; session: SessionRow } | Kind<'not_found' | 'revision_conflict' | 'no_project'>>;
  /** Removes every row and leaves a tombstone; nothing is touched while an admission is open. */
  remove(sessionId: string, now: number, hasFiles?: boolean): Promise<'removed' | 'not_found' | 'live'>;
  /** Deleted sessions whose files may still be there. */
  tombstones(): Promise<string[]>;
  filesRemoved(sessionId: string): Promise<void>;
  /** Those of these ids that name no session, and never did. */
  unknown(sessionIds: readonly string[]): Promise<string[]>;
  /** Whether another session goes on where this one was compressed: then this one is a record of what was. */
  isContinued(sessionId: string): Promise<boolean>;
  /** Sessions with an admission that has not ended. */
  withOpenAdmissions(): Promise<string[]>;
}

export interface MessageStore {
  /** Active rows of the session in their order, as transcript rows. */
  list(sessionId: string): Promise<Message[]>;
  /** Where the active rows that people may see stand, without their contents: cheap at any length. */
  index(sessionId: string): Promise<StateIndex>;
  /** Active rows that people may see as they are stored, by their row numbers, or all of them, in their order. */
  raw(sessionId: string, rowIds: readonly number[] | null): Promise<RawRow[]>;
  /** Ids of rows that an edit, a compaction or a recovery put out of the transcript. */
  inactiveIds(sessionId: string): Promise<string[]>;
  /**
   * Brings the rows of a session to what its healed transcript says: gives ids to rows of other programs, adds rows that
   * only another store had, takes out markers that an answer has replaced, and counts. Moves the revision. `moved`, and
   * nothing written, when a turn was claimed since the transcript was read, or the session is gone.
   */
  heal(sessionId: string, healing: Healing): Promise<'healed' | 'moved'>;
  /** How many rows a session has, shown or not, and the number of the last: what tells cheaply that none was added. */
  extent(sessionId: string): Promise<{ count: number; last: number }>;
  /** Rows that an edit put out, with what they say. */
  inactive(sessionId: string): Promise<RawRow[]>;
  search(q: string, limit: number): Promise<SearchHit[]>;
}

/** The active rows of a session in their order: each with its row number, and its message id where it has one. */
export interface StateIndex {
  rowIds: number[];
  ids: (string | null)[];
}

/** What a healed transcript asks of the state DB. */
export interface Healing {
  /** Rows of other programs, and the ids that the transcript has given them. */
  names: readonly { rowId: number; id: string }[];
  /** Rows to be added, or brought to this state, by their ids. */
  rows: readonly Message[];
  /** Ids of rows that are no longer part of the transcript. */
  inactive: readonly string[];
  /** How many rows the transcript has now, and the time of its last one (epoch seconds). */
  count: number;
  lastMessageAt: number | null;
  /** Generation of the session when the transcript was read. */
  generation: number;
  /** An edit that the session's row has not seen: its number, and the id of the last row that it kept. */
  edit?: LateEdit | null;
  /** Words for the session's flags. */
  flags?: readonly string[];
  now: number;
}

export interface LateEdit {
  number: number;
  fence: string | null;
}

export interface SearchHit {
  session_id: string;
  title: string | null;
  message_id: string;
  role: string;
  snippet: string;
  timestamp: number;
}

export interface NewAdmission {
  admission_id: string;
  request_id: string;
  principal_id: string;
  session_id: string;
  run_id: string;
  text: string;
  attachments: string[];
  mode: Mode;
  digest: string;
  now: number;
}

export type AdmitOutcome =
  | { kind: 'admitted' | 'repeat'; admission: Admission }
  | Kind<'conflict' | 'queue_full' | 'session_busy' | 'not_found' | 'capacity'>
  /** Only with a cut: it cannot be made now. */
  | Kind<'unknown_execution' | 'revision_conflict'>
  | { kind: 'not_owned'; holder: LeaseOwner };

/** Names one claim: every write of a run carries it and changes nothing when it is no longer the session's. */
export interface Fence {
  session_id: string;
  admission_id: string;
  run_id: string;
  epoch: number;
  generation: number;
}

/** What the end of a turn leaves. */
export interface TurnEnd {
  error: TurnError | null;
  message_id: string | null;
  last_seq: number;
  /** All rows of the run but the prompt. Rows that are already there are brought to this state. */
  rows: readonly Message[];
  usage: Usage | null;
  /** A word for the session's flags, for example `recovered`. */
  flag?: string;
}

export interface Settlement extends TurnEnd {
  fence: Fence;
  outcome: Outcome;
  now: number;
}

export interface AdmissionStore {
  /**
   * AD1, AD2, AD5: idempotency, queue cap, lease and the row, in one transaction. With a cut the transcript is cut in the
   * same step, if nothing of the session is open; a repeat cuts nothing. With a draft the session's own row is made in
   * this step, if there is none and never was.
   */
  admit(
    admission: NewAdmission,
    limits: { maxQueued: number; lease: LeaseRequest; cut?: Cut; draft?: NewSession },
  ): Promise<AdmitOutcome>;
  /** Claims the head that the caller checked, or nothing (CL1): generation + 1, row `started`, the prompt's row. */
  claim(
    sessionId: string,
    admissionId: string,
    by: { epoch: number; now: number },
  ): Promise<{ kind: 'claimed'; fence: Fence; admission: Admission } | { kind: 'moved' } | { kind: 'blocked' }>;
  /** Inserts finished rows of a running turn. */
  appendRows(fence: Fence, rows: readonly Message[]): Promise<'appended' | 'fenced'>;
  /**
   * A prompt that waits becomes a part of the turn that runs: it ends as completed without a run of its own, and the rows
   * are stored, in one step. `moved` when it no longer waits.
   */
  absorb(
    fence: Fence,
    admissionId: string,
    rows: readonly Message[],
    now: number,
  ): Promise<'absorbed' | 'moved' | 'fenced'>;
  /** Ends a run in one conditional transaction. */
  settle(settlement: Settlement): Promise<'settled' | 'fenced'>;
  /** Marks a claim whose settle lost its fence. */
  markUnknown(admissionId: string): Promise<void>;
  /**
   * Ends a row left `unknown` as interrupted, by a person's decision.
   * @param end what is known of the turn, which goes into its transcript in the same step
   */
  resolve(
    sessionId: string,
    admissionId: string,
    now: number,
    end?: TurnEnd,
  ): Promise<{ kind: 'resolved' | 'not_unknown'; admission: Admission } | { kind: 'not_found' }>;
  cancel(
    sessionId: string,
    admissionId: string,
    now: number,
  ): Promise<
    | { kind: 'cancelled' | 'repeat' | 'stale_generation' | 'unknown_execution'; admission: Admission }
    | { kind: 'not_found' }
  >;
  /** Cancels everything that waits in a session, in one step. Returns what was cancelled, in order. */
  cancelQueued(sessionId: string, now: number): Promise<Admission[]>;
  /** How many have not ended, in all sessions, by their state. */
  countOpen(): Promise<Record<'queued' | 'started' | 'unknown', number>>;
  get(sessionId: string, admissionId: string): Promise<Admission | null>;
  byRun(sessionId: string, runId: string): Promise<Admission | null>;
  /** The admission that already has this key. */
  byRequest(principalId: string, sessionId: string, requestId: string): Promise<Admission | null>;
  /** Newest `limit` admissions of a session in order of acceptance, or all that have not ended. */
  list(sessionId: string, options: { pending: boolean; limit: number }): Promise<Admission[]>;
  /** Admissions that were claimed after a generation, at most `limit` of them, in order of their claims. */
  claimedSince(sessionId: string, generation: number, limit: number): Promise<Admission[]>;
  /** Whether the journal of a run that was claimed after a generation is gone. */
  prunedSince(sessionId: string, generation: number): Promise<boolean>;
  /** The admission that was claimed last. */
  lastClaimed(sessionId: string): Promise<Admission | null>;
  /** Ended runs whose journal is older than its time. */
  withJournalBefore(
    time: number,
    limit: number,
  ): Promise<{ session_id: string; run_id: string; admission_id: string }[]>;
  journalPruned(admissionId: string): Promise<void>;
}

/** Where an edit cuts a transcript. */
export interface Cut {
  /** The last row that stays, which becomes the fence; null when none does. */
  kept: { id: string /** Epoch seconds. */; timestamp: number } | null;
  /** How many rows stay. */
  count: number;
  /** Ids of the rows after it, all that are shown. */
  remove: readonly string[];
  /** The revision at which the transcript was looked at. */
  revision: number;
}

/** A session that has a transcript from its beginning: a fork, or an imported one. */
export interface NewCopy {
  session_id: string;
  /** The session that it is a fork of. */
  parent_session_id: string | null;
  title: string | null;
  title_source: SessionRow['title_source'];
  source: string;
  model: string | null;
  workspace: string | null;
  project_id: string | null;
  created_at: number;
  usage: Usage | null;
  /** In their order, with their ids. */
  rows: readonly Message[];
  /** Of its beginning, if the original has one that covers rows which were copied. */
  summary?: ContextSummary | null;
  now: number;
}

export interface ContextSummary {
  /** The message id of the last row that it covers. */
  anchor: string;
  /** A digest of the ids of all rows that it covers. */
  covers: string;
  text: string;
  /** Epoch seconds. */
  created_at: number;
}

export interface ContextStore {
  /** The summary of the beginning of a session's transcript; whether it still fits that is the caller's to see. */
  summary(sessionId: string): Promise<ContextSummary | null>;
  /**
   * Puts a summary in the place of the one before (CX4), and with it how full the window is estimated to be now.
   * @param by.editNumber of the session when the transcript was looked at: an edit since then makes it `stale`, and nothing
   *   is written
   */
  summarise(
    sessionId: string,
    summary: ContextSummary,
    by: { editNumber: number; contextUsed: number },
  ): Promise<'saved' | 'stale'>;
}

export interface EditStore {
  /**
   * Takes rows out of a transcript (ED1, ED2): revision, rows, fence and counters in one transaction, and only while
   * nothing of the session is open. The rows stay in the store, inactive. Takes the lease, for the sidecar that follows.
   */
  cut(
    sessionId: string,
    cut: Cut,
    by: { lease: LeaseRequest; now: number },
  ): Promise<
    | { kind: 'edited'; session: SessionRow }
    | { kind: 'revision_conflict'; revision: number }
    | { kind: 'not_owned'; holder: LeaseOwner }
    | Kind<'not_found' | 'session_busy' | 'unknown_execution' | 'capacity'>
  >;
  /** Makes a session together with its rows. A project that is not there any more is left out. */
  copy(copy: NewCopy): Promise<{ kind: 'created'; session: SessionRow } | Kind<'id_taken'>>;
}

export interface LeaseRequest {
  owner: LeaseOwner;
  surface: string;
  leaseId: string;
  /** `max_concurrent_sessions`, or null for none. */
  cap: number | null;
  now: number;
}

/** Each of these is a `RegistryTrouble` where the registry cannot say who has a session: nobody is let in then (LE8). */
export interface LeaseStore {
  /** @param request with `wait: false` a state DB that is locked right now is a `StorageTrouble` at once */
  acquire(
    sessionId: string,
    request: LeaseRequest & { wait?: boolean },
  ): Promise<{ kind: 'granted' } | { kind: 'capacity' } | { kind: 'not_owned'; holder: LeaseOwner }>;
  /** Drops a lease of this process, unless an admission of the session is still open (LE5). */
  releaseIdle(sessionId: string, owner: LeaseOwner, options?: { wait?: boolean }): Promise<boolean>;
  /** Who lives and has the lease of a session. */
  holder(sessionId: string): Promise<LeaseOwner | null>;
  /**
   * Sessions whose queue nobody moves: a prompt waits or ran, and no living process has the lease. Not those in which a
   * prompt is of unknown fate: they wait for a person.
   * @param own this process, which knows of its own sessions itself
   * @returns besides, whether another living process has a session with such prompts
   */
  abandoned(own: ProcessIdentity): Promise<{ sessions: string[]; othersRun: boolean }>;
}

export interface ChangeStore {
  /**
   * What may have changed since a time, whoever changed it: sessions by their `updated_at`, those that have an open
   * prompt, and those that are asked for; a change of only a draft is none.
   * @param time epoch seconds
   */
  since(time: number, also: readonly string[]): Promise<{ changed: ChangedSession[]; deleted: string[] }>;
}

export interface ChangedSession {
  session_id: string;
  revision: number;
  created_at: number;
  /** Whether a prompt of it has not ended. */
  open: boolean;
}

export interface EpochStore {
  /** Opens the epoch of this server start. */
  begin(start: { instanceId: string; process: ProcessIdentity; now: number }): Promise<number>;
  end(epoch: number, now: number): Promise<void>;
  /** Who runs an epoch; null for an unknown one. */
  process(epoch: number): Promise<(ProcessIdentity & { ended: boolean }) | null>;
}

export interface Project {
  project_id: string;
  name: string;
  color: string | null;
}

export interface ProjectStore {
  list(): Promise<Project[]>;
  create(project: Project, now: number): Promise<Project>;
  patch(projectId: string, patch: { name?: string; color?: string | null }): Promise<Project | null>;
  /** Un-assigns its sessions. Returns the ids of these, or null for an unknown project. */
  remove(projectId: string, now: number): Promise<string[] | null>;
}

export interface Login {
  login_id: string;
  /** SHA-256 of the cookie's value, hexadecimal. */
  secret_hash: string;
  /** What it was got with: `password`, `env:<digest>` or `token:<id>`. */
  basis: string;
  scope: Scope;
  address: string;
  agent: string;
  created_at: number;
  seen_at: number;
  expires_at: number;
}

export interface ApiToken {
  token_id: string;
  name: string;
  secret_hash: string;
  scope: Scope;
  created_at: number;
  used_at: number | null;
  /** Null for one that lasts. */
  expires_at: number | null;
}

/** Secrets that open the server: kept as digests, so that whoever reads the state DB can use none. */
export interface CredentialStore {
  /**
   * The password's PHC string, whether there are tokens that have not expired, and whether the home is guarded: it is from the first of them on,
   * also when the last one is gone.
   */
  kept(now: number): Promise<{ password: string | null; hasTokens: boolean; guarded: boolean }>;
  /** Null takes it away, and the guard with it if there are no tokens. Ends all logins. */
  setPassword(kept: string | null): Promise<void>;
  /** Of the logins of one basis the fifty newest stay. */
  addLogin(login: Login): Promise<void>;
  /** The login of a cookie that has not expired. */
  login(secretHash: string, now: number): Promise<Login | null>;
  loginById(loginId: string, now: number): Promise<Login | null>;
  /** Newest use first; those that have expired go. */
  logins(now: number): Promise<Login[]>;
  seenLogin(loginId: string, now: number): Promise<void>;
  endLogin(loginId: string): Promise<boolean>;
  addToken(token: ApiToken): Promise<void>;
  /** The token of a digest that has not expired. */
  token(secretHash: string, now: number): Promise<ApiToken | null>;
  tokenById(tokenId: string, now: number): Promise<ApiToken | null>;
  /** Oldest first, expired ones too. */
  tokens(): Promise<ApiToken[]>;
  usedToken(tokenId: string, now: number): Promise<void>;
  /** Ends the logins that were got with it, too. */
  removeToken(tokenId: string): Promise<boolean>;
}

/** What was chosen for the whole server. */
export interface SettingsStore {
  read(): Promise<ServerSettings>;
  /** What is not named stays as it is. Returns what holds then. */
  change(changes: Partial<ServerSettings>): Promise<ServerSettings>;
}

export interface Stores {
  sessions: SessionStore;
  messages: MessageStore;
  admissions: AdmissionStore;
  edits: EditStore;
  contexts: ContextStore;
  leases: LeaseStore;
  changes: ChangeStore;
  epochs: EpochStore;
  projects: ProjectStore;
  credentials: CredentialStore;
  settings: SettingsStore;
  /** Grows whenever another connection changed the state DB: what was read before may be old. */
  dataVersion(): number;
  /** A cheap read that fails when the state DB does not answer. */
  probe(): Promise<void>;
  close(): void;
}

/** What the stores ask the system: whether a process still lives. "Cannot tell" is true. */
export type AliveProbe = (process: ProcessIdentity) => boolean;
