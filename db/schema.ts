/**
 * The state DB. `sessions` and `messages` have the names and types of a Hermes state.db for the columns that both use,
 * so that other tools can read ours and we theirs; the columns after the comment are our own.
 * The full-text index and its triggers are in a custom migration: they cannot be said here.
 */
import { sql } from 'drizzle-orm';
import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';

export const sessions = sqliteTable(
  'sessions',
  {
    id: text('id').primaryKey(),
    source: text('source').notNull(),
    model: text('model'),
    parentSessionId: text('parent_session_id'),
    startedAt: real('started_at').notNull(),
    endedAt: real('ended_at'),
    endReason: text('end_reason'),
    messageCount: integer('message_count').notNull().default(0),
    toolCallCount: integer('tool_call_count').notNull().default(0),
    inputTokens: integer('input_tokens').notNull().default(0),
    outputTokens: integer('output_tokens').notNull().default(0),
    cacheReadTokens: integer('cache_read_tokens').notNull().default(0),
    reasoningTokens: integer('reasoning_tokens').notNull().default(0),
    cwd: text('cwd'),
    estimatedCostUsd: real('estimated_cost_usd'),
    title: text('title'),
    /** Who gave the title: `user`, `llm` or `derived`. A `user` title is never replaced. */
    titleSource: text('title_source'),
    rewindCount: integer('rewind_count').notNull().default(0),
    archived: integer('archived', { mode: 'boolean' }).notNull().default(false),
    pinned: integer('pinned', { mode: 'boolean' }).notNull().default(false),
    hidden: integer('hidden', { mode: 'boolean' }).notNull().default(false),
    lastActivityAt: real('last_activity_at'),
    runtimeRevision: integer('runtime_revision').notNull().default(0),
    runtimeGeneration: integer('runtime_generation').notNull().default(0),
    // Ours.
    projectId: text('project_id').references(() => projects.projectId, { onDelete: 'set null' }),
    draft: text('draft').notNull().default(''),
    updatedAt: real('updated_at').notNull(),
    lastMessageAt: real('last_message_at'),
    /** Number of the last edit (rewind, clear, retry), and the last message that it kept. */
    editNumber: integer('edit_number').notNull().default(0),
    editFence: text('edit_fence'),
    contextUsed: integer('context_used'),
    contextLength: integer('context_length'),
    /** Whether `context_used` was estimated, because nobody counted. */
    contextEstimated: integer('context_estimated', { mode: 'boolean' }).notNull().default(false),
    /** JSON array of words that a person should see about this session, for example `recovered`. */
    flags: text('flags').notNull().default('[]'),
    createKey: text('create_key'),
    createDigest: text('create_digest'),
  },
  (table) => [
    index('sessions_by_activity').on(table.archived, table.hidden, table.pinned, table.lastActivityAt, table.id),
    index('sessions_by_project').on(table.projectId),
    uniqueIndex('sessions_by_create_key').on(table.createKey),
  ],
);

/** How many sessions the list has, without and with an archive flag. Triggers keep it, whoever writes; see migrations. */
export const sessionCounts = sqliteTable('session_counts', {
  archived: integer('archived', { mode: 'boolean' }).primaryKey(),
  sessions: integer('sessions').notNull(),
});

export const messages = sqliteTable(
  'messages',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    sessionId: text('session_id')
      .notNull()
      .references(() => sessions.id),
    role: text('role').notNull(),
    content: text('content'),
    toolCallId: text('tool_call_id'),
    toolCalls: text('tool_calls'),
    toolName: text('tool_name'),
    timestamp: real('timestamp').notNull(),
    tokenCount: integer('token_count'),
    finishReason: text('finish_reason'),
    reasoning: text('reasoning'),
    active: integer('active').notNull().default(1),
    compacted: integer('compacted').notNull().default(0),
    displayKind: text('display_kind'),
    // Ours.
    messageId: text('message_id'),
    runId: text('run_id'),
    /** JSON of the row's other fields as the transcript has them. */
    extra: text('extra'),
  },
  (table) => [
    index('messages_by_session').on(table.sessionId, table.id),
    uniqueIndex('messages_by_message_id').on(table.sessionId, table.messageId),
    index('messages_by_run').on(table.runId),
  ],
);

export const sessionAdmissions = sqliteTable(
  'session_admissions',
  {
    seq: integer('seq').primaryKey({ autoIncrement: true }),
    admissionId: text('admission_id').notNull().unique(),
    requestId: text('request_id').notNull(),
    principalId: text('principal_id').notNull(),
    targetSessionId: text('target_session_id')
      .notNull()
      .references(() => sessions.id, { onDelete: 'restrict' }),
    payloadJson: text('payload_json').notNull(),
    payloadDigest: text('payload_digest').notNull(),
    intent: text('intent').notNull(),
    status: text('status').notNull(),
    outcome: text('outcome'),
    ownerEpoch: integer('owner_epoch'),
    generation: integer('generation'),
    // Ours.
    runId: text('run_id').notNull().unique(),
    createdAt: real('created_at').notNull(),
    startedAt: real('started_at'),
    endedAt: real('ended_at'),
    lastSeq: integer('last_seq'),
    messageId: text('message_id'),
    error: text('error'),
    journalPruned: integer('journal_pruned', { mode: 'boolean' }).notNull().default(false),
  },
  (table) => [
    uniqueIndex('admissions_by_key').on(table.principalId, table.targetSessionId, table.requestId),
    index('admissions_by_session').on(table.targetSessionId, table.seq),
    index('admissions_by_generation').on(table.targetSessionId, table.generation),
    index('admissions_open').on(table.targetSessionId, table.seq).where(sql`status <> 'terminal'`),
    index('admissions_with_journal').on(table.endedAt).where(sql`journal_pruned = 0 and status = 'terminal'`),
  ],
);

export const runtimeEpochs = sqliteTable('runtime_epochs', {
  epoch: integer('epoch').primaryKey({ autoIncrement: true }),
  instanceId: text('instance_id').notNull(),
  pid: integer('pid').notNull(),
  processStart: text('process_start'),
  startedAt: real('started_at').notNull(),
  endedAt: real('ended_at'),
});

export const activeSessions = sqliteTable('active_sessions', {
  sessionId: text('session_id').primaryKey(),
  leaseId: text('lease_id').notNull(),
  surface: text('surface').notNull(),
  pid: integer('pid').notNull(),
  processStartTime: text('process_start_time'),
  liveSessionId: text('live_session_id').notNull(),
  epoch: integer('epoch').notNull(),
  startedAt: real('started_at').notNull(),
  updatedAt: real('updated_at').notNull(),
});

export const projects = sqliteTable('projects', {
  projectId: text('project_id').primaryKey(),
  name: text('name').notNull(),
  color: text('color'),
  createdAt: real('created_at').notNull(),
});

/** Deleted sessions: whatever is found of them on the disk afterwards is never revived. */
export const sessionTombstones = sqliteTable('session_tombstones', {
  sessionId: text('session_id').primaryKey(),
  deletedAt: real('deleted_at').notNull(),
  /** Whether its files are gone too; 0 until then, so that a crash in between is finished at the next start. */
  filesRemoved: integer('files_removed', { mode: 'boolean' }).notNull().default(false),
});

/**
 * What a model is given in the place of the beginning of a transcript, which itself stays whole: at most one for each
 * session. It counts only as long as the transcript still begins with the very rows that it covers (CX4).
 */
export const contextSummaries = sqliteTable('context_summaries', {
  sessionId: text('session_id').primaryKey(),
  /** The message id of the last row that it covers. */
  anchor: text('anchor').notNull(),
  /** A digest of the ids of all rows that it covers, in order. */
  covers: text('covers').notNull(),
  summary: text('summary').notNull(),
  createdAt: real('created_at').notNull(),
});

/**
 * Where a session's turns went to an agent of others: which session of its own that agent made, and how far it was told
 * the transcript. A cache: without it the agent is told the transcript again.
 */
export const agentSessions = sqliteTable('agent_sessions', {
  sessionId: text('session_id').primaryKey(),
  agent: text('agent').notNull(),
  agentSessionId: text('agent_session_id').notNull(),
  cwd: text('cwd').notNull(),
  /** The last run that it was given, and whether it has answered that one. */
  seenRun: text('seen_run').notNull(),
  answered: integer('answered', { mode: 'boolean' }).notNull(),
  updatedAt: real('updated_at').notNull(),
});

/** What the agents of others offered when they last ran: JSON, as `AgentOffer` says. Only there to be listed. */
export const agentOffers = sqliteTable('agent_offers', {
  agent: text('agent').primaryKey(),
  offer: text('offer').notNull(),
  updatedAt: real('updated_at').notNull(),
});

/** Conversations of other homes that were imported: what each was then, so that a later import knows what is new. */
export const importedSessions = sqliteTable(
  'imported_sessions',
  {
    /** The home it comes from, and its id there. */
    home: text('home').notNull(),
    originalId: text('original_id').notNull(),
    /** Its id here. No reference: it may be deleted since, and is then not imported again. */
    sessionId: text('session_id').notNull(),
    /** A digest of the transcript there. */
    digest: text('digest').notNull(),
    /** What its stores there looked like from outside: while that stays nothing is read. */
    seen: text('seen').notNull(),
    /** How many rows it had here then, and the number of its last edit. */
    rowCount: integer('row_count').notNull(),
    /** The number of the last of them in `messages`: what stands behind it came later. */
    lastRow: integer('last_row').notNull(),
    editNumber: integer('edit_number').notNull().default(0),
    /** Whether its sidecar, journals and attachments are here too; 0 until then, so that another run finishes it. */
    filesDone: integer('files_done', { mode: 'boolean' }).notNull().default(false),
    importedAt: real('imported_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.home, table.originalId] }),
    index('imported_sessions_by_original').on(table.originalId),
    index('imported_sessions_by_session').on(table.sessionId),
  ],
);

/** Logins of browsers: the cookie that each got is kept as its digest only. */
export const logins = sqliteTable(
  'logins',
  {
    loginId: text('login_id').primaryKey(),
    /** SHA-256 of the cookie's value, hexadecimal. */
    secretHash: text('secret_hash').notNull().unique(),
    /** What it was got with: `password`, `env:<digest of TURNKEEP_TOKEN>` or `token:<id>`; it ends with that. */
    basis: text('basis').notNull(),
    scope: text('scope').notNull(),
    address: text('address').notNull(),
    /** What the browser calls itself. */
    agent: text('agent').notNull(),
    createdAt: real('created_at').notNull(),
    seenAt: real('seen_at').notNull(),
    expiresAt: real('expires_at').notNull(),
  },
  (table) => [index('logins_by_address').on(table.address)],
);

/** Tokens for programs, kept as their digests only. */
export const apiTokens = sqliteTable('api_tokens', {
  tokenId: text('token_id').primaryKey(),
  name: text('name').notNull(),
  /** SHA-256 of the token, hexadecimal. */
  secretHash: text('secret_hash').notNull().unique(),
  scope: text('scope').notNull(),
  createdAt: real('created_at').notNull(),
  usedAt: real('used_at'),
  expiresAt: real('expires_at'),
});

export const stateMeta = sqliteTable('state_meta', { key: text('key').primaryKey(), value: text('value') });
