/**
 * Salvage: every row of a damaged state DB that can still be read, in a new one. The old one is only read.
 *
 * Rows are read by their numbers. Where a page is broken the range is halved until what cannot be read is known to the
 * row. What SQLite or our triggers make of the rows (indexes, full text, counts) is made anew and not copied.
 */
import Database from 'better-sqlite3';
import { type KnownSchema, namesIn } from './doctor-schema.ts';
import { isDamage } from './doctor-view.ts';

export interface Salvaged {
  tables: {
    table: string;
    kept: number /** Ranges of row numbers that could not be read. */;
    lost: [number, number][];
  }[];
  /** Sessions whose row was lost, made anew from their messages. */
  remade: string[];
  /** Rows that were read and fit in no more: half of a pair that was lost, or there twice. */
  unfit: number;
  /** Whether the new file passes the whole integrity check and lacks no reference. */
  isSound: boolean;
}

/** In the order that references ask for. */
const TABLES = [
  'projects',
  'sessions',
  'session_tombstones',
  'messages',
  'session_admissions',
  'runtime_epochs',
  'active_sessions',
  'state_meta',
  'imported_sessions',
  'context_summaries',
  'agent_sessions',
  'agent_offers',
  'logins',
  'api_tokens',
];

/**
 * Probes of broken places for each table, past which what is left is given up as lost. Where nobody knows how far its rows
 * go, fewer that found nothing at all are enough.
 */
const [MOST_PROBES, MOST_BARREN] = [50_000, 2_000];

/**
 * @param file a name that is free, for the new database
 * @throws what the disk of the new file says
 */
export function salvage(source: Database.Database, file: string, known: KnownSchema): Salvaged {
  const made = new Database(file);
  try {
    made.pragma('journal_mode = DELETE');
    made.pragma('foreign_keys = OFF');
    const result: Salvaged = { tables: [], remade: [], unfit: 0, isSound: false };
    made.transaction(() => {
      known.make(made);
      for (const table of TABLES) result.tables.push(copyTable(source, made, table, result));
      copyNumbers(source, made);
      result.remade = remakeSessions(made);
      made.exec('UPDATE sessions SET project_id = NULL WHERE project_id NOT IN (SELECT project_id FROM projects)');
    })();
    const isWhole = made.pragma('integrity_check(1)', { simple: true }) === 'ok';
    result.isSound = isWhole && (made.pragma('foreign_key_check') as unknown[]).length === 0;
    return result;
  } finally {
    made.close();
  }
}

const columnsOf = (sqlite: Database.Database, table: string): string[] =>
  (sqlite.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name);

function copyTable(
  source: Database.Database,
  made: Database.Database,
  table: string,
  result: Salvaged,
): Salvaged['tables'][number] {
  const found = { table, kept: 0, lost: [] as [number, number][] };
  const theirs = new Set(readable(() => columnsOf(source, table)) ?? []);
  // A schema of before may lack some: they get their defaults.
  const columns = columnsOf(made, table).filter((name) => theirs.has(name));
  if (columns.length === 0) return found;
  const list = columns.join(', ');
  const insert = made.prepare(`INSERT OR IGNORE INTO ${table} (${list}) VALUES (${columns.map(() => '?').join(', ')})`);
  const range = source
    .prepare(`SELECT rowid, ${list} FROM ${table} NOT INDEXED WHERE rowid BETWEEN ? AND ? ORDER BY rowid`)
    .raw();
  let [probes, barren] = [0, 0];
  const last = lastRow(source, table);
  const isOver = (): boolean => probes > MOST_PROBES || (last === null && barren > MOST_BARREN);
  const lose = (from: number, to: number): void => {
    const before = found.lost.at(-1);
    if (before && before[1] + 1 >= from) before[1] = to;
    else found.lost.push([from, to]);
  };
  const copy = (from: number, to: number): void => {
    let at = from;
    try {
      for (const row of range.iterate(from, to) as IterableIterator<unknown[]>) {
        at = Number(row[0]) + 1;
        barren = 0;
        if (add(insert, row.slice(1))) found.kept += 1;
        else result.unfit += 1;
      }
    } catch (error) {
      if (!isDamage(error)) throw error;
      probes += 1;
      barren += 1;
      if (at >= to || isOver()) {
        lose(at, to);
        return;
      }
      const middle = at + Math.floor((to - at) / 2);
      copy(at, middle);
      copy(middle + 1, to);
    }
  };
  copy(0, last ?? FAR);
  return found;
}

/** A row that breaks a rule of the table is left out, whichever column is damaged. */
function add(insert: Database.Statement, values: unknown[]): boolean {
  try {
    return insert.run(...values).changes === 1;
  } catch (error) {
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_CONSTRAINT')) return false;
    throw error;
  }
}

/** More rows than a table will have that nobody could count. */
const FAR = 2 ** 32;

/** The highest row number, from whatever can be read of it; null when nothing tells. */
function lastRow(source: Database.Database, table: string): number | null {
  const max = readable(() => source.prepare(`SELECT max(rowid) FROM ${table} NOT INDEXED`).pluck().get());
  if (max !== null) return Number(max ?? 0);
  const next = readable(() => source.prepare('SELECT seq FROM sqlite_sequence WHERE name = ?').pluck().get(table));
  return next === null || next === undefined ? null : Number(next);
}

/** Numbers that were given once are not given again, also those of rows that are lost. */
function copyNumbers(source: Database.Database, made: Database.Database): void {
  const given = readable(
    () => source.prepare('SELECT name, seq FROM sqlite_sequence').all() as { name: string; seq: number }[],
  );
  for (const { name, seq } of given ?? []) {
    made.prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?').run(seq, name);
    made
      .prepare(
        'INSERT INTO sqlite_sequence (name, seq) SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)',
      )
      .run(name, seq, name);
  }
}

/** What the row of a session that was made anew gets of its file. */
export interface Described {
  session_id: string;
  parent_session_id: string | null;
  title: string | null;
  title_source: string | null;
  source: string;
  model: string | null;
  workspace: string | null;
  project_id: string | null;
  created_at: number;
}

/** Gives sessions that were made anew what their files tell of them. */
export function describeSessions(sqlite: Database.Database, described: readonly Described[]): void {
  const update = sqlite.prepare(
    `UPDATE sessions SET parent_session_id = @parent_session_id, title = @title, title_source = @title_source,
        source = @source, model = @model, cwd = @workspace, started_at = min(started_at, @created_at),
        project_id = (SELECT project_id FROM projects WHERE project_id = @project_id)
      WHERE id = @session_id`,
  );
  sqlite.transaction(() => {
    for (const one of described) update.run(one);
  })();
}

/** The same in a database that nobody has open. */
export function describeIn(file: string, described: readonly Described[]): void {
  const sqlite = new Database(file);
  try {
    describeSessions(sqlite, described);
  } finally {
    sqlite.close();
  }
}

/** Messages and prompts outlive the row of their session: it is made anew with what they tell. The deleted stay deleted. */
export function remakeSessions(made: Database.Database): string[] {
  made.exec('DELETE FROM messages WHERE session_id IN (SELECT session_id FROM session_tombstones)');
  made.exec('DELETE FROM session_admissions WHERE target_session_id IN (SELECT session_id FROM session_tombstones)');
  return made
    .prepare(
      `INSERT INTO sessions (id, source, started_at, updated_at, last_activity_at, last_message_at, message_count,
          runtime_revision, runtime_generation, flags)
        SELECT id, 'recovered', min(at), max(at), max(at), max(CASE WHEN shown THEN at END), sum(shown), 1, max(generation),
          '["recovered"]'
        FROM (
          SELECT session_id AS id, timestamp AS at, 1 AS generation,
            active = 1 AND coalesce(display_kind, '') <> 'hidden' AS shown
          FROM messages
          UNION ALL SELECT target_session_id, created_at, coalesce(generation, 0), 0 FROM session_admissions
        )
        WHERE id NOT IN (SELECT id FROM sessions) GROUP BY id
        RETURNING id`,
    )
    .pluck()
    .all() as string[];
}

/** What can be read; null where the damage is. */
function readable<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    // A damaged list of tables is told as a statement that fits none.
    if (error instanceof Database.SqliteError) return null;
    throw error;
  }
}

/** Whether a damaged database can be read far enough that a salvage makes sense. */
export const canBeRead = (source: Database.Database): boolean =>
  (readable(() => namesIn(source)) ?? []).includes('sessions');
