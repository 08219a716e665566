/** A conversation of another home as rows of our state DB, inside a transaction of the caller. */
import { sql } from 'drizzle-orm';
import type { Message, Usage } from '../server/core/terms.ts';
import type { Db } from './client.ts';
import { toMessageRecord } from './rows.ts';
import { messages, projects, sessions } from './schema.ts';
import { given, statement } from './statement.ts';
import type { Project, SessionRow } from './stores.ts';

/** A row to be stored: what is shown of it, and what only a model or another program has of it. */
export interface ImportRow {
  message: Message;
  /** Content that is not plain text, as it is kept for the model. */
  parts?: readonly unknown[];
  /** Fields that only a provider understands. */
  provider?: Readonly<Record<string, unknown>>;
}

export interface ImportSession {
  source: string;
  title: string | null;
  title_source: SessionRow['title_source'];
  model: string | null;
  workspace: string | null;
  parent_session_id: string | null;
  project: Project | null;
  /** Epoch seconds, as all times. */
  created_at: number;
  updated_at: number;
  pinned: boolean;
  archived: boolean;
  hidden: boolean;
  draft: string;
  usage: Usage | null;
}

const COLUMNS = [
  'sessionId',
  'role',
  'content',
  'toolCallId',
  'toolCalls',
  'toolName',
  'timestamp',
  'tokenCount',
  'finishReason',
  'reasoning',
  'displayKind',
  'messageId',
  'runId',
  'extra',
] as const;

const NAMES = sql.raw(COLUMNS.map((column) => messages[column].name).join());
const VALUES = sql.raw(COLUMNS.map((_, at) => `value ->> ${at}`).join());

const NEW_SESSION = statement((db) => {
  const columns = [
    'id',
    'source',
    'model',
    'parentSessionId',
    'startedAt',
    'messageCount',
    'toolCallCount',
    'inputTokens',
    'outputTokens',
    'cacheReadTokens',
    'reasoningTokens',
    'estimatedCostUsd',
    'contextUsed',
    'contextLength',
    'cwd',
    'title',
    'titleSource',
    'projectId',
    'archived',
    'pinned',
    'hidden',
    'draft',
    'updatedAt',
    'lastActivityAt',
    'lastMessageAt',
  ];
  const values = Object.fromEntries(columns.map((column) => [column, given(column)]));
  // A session of generation 0 never ran and has no files; this one has a sidecar.
  return db
    .insert(sessions)
    .values({ ...values, runtimeRevision: 1, runtimeGeneration: 1 } as never)
    .prepare();
});
/** What other programs put before content that is not plain text. */
const STRUCTURED = '\0json:';

/** Rows that one statement takes: the full-text index writes what it has behind each statement. */
const STEP = 1_000;

export function insertRows(db: Db, sessionId: string, rows: readonly ImportRow[]): void {
  for (let from = 0; from < rows.length; from += STEP) {
    const records = rows.slice(from, from + STEP).map(({ message, parts, provider }) => {
      const record = toMessageRecord(sessionId, message);
      if (parts) record.content = STRUCTURED + JSON.stringify(parts);
      // Under one private name: nothing that is shown, sent or compared is made of it.
      if (provider) record.extra = JSON.stringify({ ...JSON.parse(record.extra ?? '{}'), _provider: provider });
      return COLUMNS.map((column) => record[column] ?? null);
    });
    db.run(sql`INSERT INTO messages (${NAMES}) SELECT ${VALUES} FROM json_each(${JSON.stringify(records)})`);
  }
}

function projectOf(db: Db, project: Project | null, now: number): string | null {
  if (!project) return null;
  const { project_id: projectId, name, color } = project;
  const known = db
    .select({ id: projects.projectId, name: projects.name })
    .from(projects)
    .where(sql`${projects.projectId} = ${projectId} OR ${projects.name} = ${name}`)
    .all();
  // By its id where it was renamed since, else by its name: nobody wants two of one name.
  const same = known.find(({ id }) => id === projectId) ?? known[0];
  if (same) return same.id;
  db.insert(projects).values({ projectId, name, color, createdAt: now }).run();
  return projectId;
}

export function insertSession(
  db: Db,
  id: string,
  session: ImportSession,
  rows: readonly ImportRow[],
  now: number,
): void {
  const { usage } = session;
  const last = rows.at(-1)?.message.timestamp;
  NEW_SESSION(db).run({
    id,
    source: session.source,
    model: session.model,
    parentSessionId: session.parent_session_id,
    startedAt: session.created_at,
    messageCount: rows.length,
    toolCallCount: rows.filter(({ message }) => message.role === 'tool').length,
    inputTokens: usage?.input_tokens ?? 0,
    outputTokens: usage?.output_tokens ?? 0,
    cacheReadTokens: usage?.cached_tokens ?? 0,
    reasoningTokens: usage?.reasoning_tokens ?? 0,
    estimatedCostUsd: usage?.cost_usd ?? null,
    contextUsed: usage?.context_used ?? null,
    contextLength: usage?.context_length ?? null,
    cwd: session.workspace,
    title: session.title,
    titleSource: session.title_source,
    projectId: projectOf(db, session.project, now),
    archived: session.archived ? 1 : 0,
    pinned: session.pinned ? 1 : 0,
    hidden: session.hidden ? 1 : 0,
    draft: session.draft,
    updatedAt: session.updated_at,
    lastActivityAt: Math.max(session.updated_at, last ?? 0),
    lastMessageAt: last || null,
  });
}
