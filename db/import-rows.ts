/** A conversation of another home as rows of our state DB, inside a transaction of the caller. */
import { sql } from 'drizzle-orm';
import type { Message, Usage } from '../server/core/terms.ts';
import type { Db } from './client.ts';
import { insertRecords } from './message-records.ts';
import { insertNewSession } from './new-session.ts';
import { toMessageRecord } from './rows.ts';
import { projects } from './schema.ts';
import type { Project, SessionRow } from './stores.ts';
import { structuredContent } from './structured-content.ts';

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

export function insertRows(db: Db, sessionId: string, rows: readonly ImportRow[]): void {
  insertRecords(db, rows, ({ message, parts, provider }) => {
    const record = toMessageRecord(sessionId, message);
    if (parts) record.content = structuredContent(parts);
    // Under one private name: nothing that is shown, sent or compared is made of it.
    if (provider) record.extra = JSON.stringify({ ...JSON.parse(record.extra ?? '{}'), _provider: provider });
    return record;
  });
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
  const last = rows.at(-1)?.message.timestamp;
  insertNewSession(db, {
    id,
    source: session.source,
    model: session.model,
    parentSessionId: session.parent_session_id,
    startedAt: session.created_at,
    messageCount: rows.length,
    toolCallCount: rows.filter(({ message }) => message.role === 'tool').length,
    usage: session.usage,
    cwd: session.workspace,
    title: session.title,
    titleSource: session.title_source,
    projectId: projectOf(db, session.project, now),
    archived: session.archived,
    pinned: session.pinned,
    hidden: session.hidden,
    draft: session.draft,
    updatedAt: session.updated_at,
    lastActivityAt: Math.max(session.updated_at, last ?? 0),
    lastMessageAt: last || null,
  });
}
