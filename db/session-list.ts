/**
 * The list of sessions: pinned first, then newest activity, in pages (DB2). A page is one indexed query; how many there
 * are is kept by triggers of the database itself, so that it stays right whoever writes. Answers are kept while nothing
 * changes.
 */
import { and, count, desc, eq, getTableColumns, type SQL, sql } from 'drizzle-orm';
import type { Db, StateDb } from './client.ts';
import { openRowsOfSome } from './open-rows.ts';
import { toSessionRow } from './rows.ts';
import { sessionCounts, sessions } from './schema.ts';
import { given, statement, statements } from './statement.ts';
import type { SessionListQuery, SessionStore } from './stores.ts';

type SessionPage = Awaited<ReturnType<SessionStore['list']>>;

/** Newest activity of a session: what the list is ordered by, kept in a column so that an index can give it. */
const ACTIVITY = sessions.lastActivityAt;

/** Which filters a query has: there is a statement for each such set. */
interface Filters {
  archived: SessionListQuery['archived'];
  project: boolean;
  source: boolean;
  words: boolean;
}

const filtersOf = ({ archived, project_id, source, q }: SessionListQuery): Filters => ({
  archived,
  project: project_id !== null,
  source: source !== null,
  words: q !== null,
});

function chosen({ archived, project, source, words }: Filters): SQL | undefined {
  const parts: (SQL | undefined)[] = [eq(sessions.hidden, false)];
  if (archived !== 'yes') parts.push(eq(sessions.archived, archived === 'only'));
  if (project) parts.push(eq(sessions.projectId, given('project')));
  if (source) parts.push(eq(sessions.source, given('source')));
  if (words) parts.push(sql`has_words(${sessions.title}, ${given('words')})`);
  return and(...parts);
}

/** Rows behind the cursor in the order pinned, activity, id, each descending. */
const BEHIND = sql`(${sessions.pinned}, ${ACTIVITY}, ${sessions.id}) < (${given('pinned')}, ${given('activity')}, ${given('id')})`;

const PAGE = statements((db, { behind, ...filters }: Filters & { behind: boolean }) =>
  db
    .select()
    .from(sessions)
    .where(and(chosen(filters), behind ? BEHIND : undefined))
    .orderBy(desc(sessions.pinned), desc(ACTIVITY), desc(sessions.id))
    .limit(given('limit'))
    .prepare(),
);
/** The columns of a row in its order, and how what the driver gives becomes what they hold. */
const COLUMNS = Object.entries(getTableColumns(sessions)).map(([name, column]) => ({
  name,
  isFlag: column.dataType === 'boolean',
}));

/** A row of a page as a record. A page has a thousand values and more: Drizzle finds out for each anew how to read it. */
function toRecord(values: readonly unknown[]): typeof sessions.$inferSelect {
  const record: Record<string, unknown> = {};
  for (const [at, { name, isFlag }] of COLUMNS.entries()) record[name] = isFlag ? values[at] === 1 : values[at];
  return record as typeof sessions.$inferSelect;
}

const COUNT = statements((db, filters: Filters) =>
  db.select({ total: count() }).from(sessions).where(chosen(filters)).prepare(),
);
const KEPT_COUNTS = statement((db) => db.select().from(sessionCounts).prepare());

/** How many sessions fit a query, whatever its page. */
function total(db: Db, query: SessionListQuery): number {
  const filters = filtersOf(query);
  if (filters.project || filters.source || filters.words) return COUNT(db, filters).get(valuesOf(query))?.total ?? 0;
  let sum = 0;
  for (const kept of KEPT_COUNTS(db).all()) {
    if (filters.archived === 'yes' || kept.archived === (filters.archived === 'only')) sum += kept.sessions;
  }
  return sum;
}

const valuesOf = ({ project_id, source, q }: SessionListQuery) => ({ project: project_id, source, words: q });

/** One page of the list, inside a transaction of the caller. */
function readPage(db: Db, query: SessionListQuery): SessionPage {
  const { cursor, limit } = query;
  const place = cursor && { pinned: cursor.pinned ? 1 : 0, activity: cursor.activity, id: cursor.session_id };
  const found = PAGE(db, { ...filtersOf(query), behind: cursor !== null }).values({
    ...valuesOf(query),
    ...place,
    limit: limit + 1, // One more tells whether there is a next page.
  });
  const rows = found.slice(0, limit).map(toRecord);
  const open = openRowsOfSome(
    db,
    rows.map((row) => row.id),
  );
  const last = found.length > limit ? rows.at(-1) : undefined;
  return {
    sessions: rows.map((row) => toSessionRow(row, open.get(row.id) ?? [])),
    next: last ? { pinned: last.pinned, activity: last.lastActivityAt ?? 0, session_id: last.id } : null,
    total: total(db, query),
  };
}

/** Answers that are kept while nothing changes. */
const MOST_ANSWERS = 32;

export function createSessionList(state: StateDb): SessionStore['list'] {
  let kept: { version: string; answers: Map<string, SessionPage> } = { version: '', answers: new Map() };
  return (query) =>
    state.read((db) => {
      // The same question while nothing was changed has the same answer.
      const version = state.version();
      if (version !== kept.version) kept = { version, answers: new Map() };
      const key = JSON.stringify(query);
      const answer = kept.answers.get(key) ?? readPage(db, query);
      if (kept.answers.size < MOST_ANSWERS) kept.answers.set(key, answer);
      return answer;
    });
}
