/**
 * A home as Hermes leaves it: `state.db` with its tables, full-text index and triggers, in the builds that are about. Rows
 * are written as its agent writes them, by a connection that is closed or left open.
 */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';

export type Build = 'v16' | 'current' | 'bare';

export interface HermesRow {
  role: string;
  content: unknown;
  timestamp?: number;
  [column: string]: unknown;
}

const SESSIONS = `id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT, system_prompt TEXT,
  parent_session_id TEXT REFERENCES sessions(id), started_at REAL NOT NULL, ended_at REAL, end_reason TEXT,
  message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0,
  output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0, cache_write_tokens INTEGER DEFAULT 0,
  reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, estimated_cost_usd REAL, actual_cost_usd REAL, title TEXT,
  rewind_count INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0`;
const MESSAGES = `id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
  content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, token_count INTEGER,
  finish_reason TEXT, reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT, codex_reasoning_items TEXT,
  codex_message_items TEXT, platform_message_id TEXT, observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1,
  compacted INTEGER NOT NULL DEFAULT 0`;
const CURRENT_SESSIONS = `, last_activity_at REAL, pinned INTEGER NOT NULL DEFAULT 0, hidden INTEGER NOT NULL DEFAULT 0,
  title_source TEXT, last_read_at REAL`;
const CURRENT_MESSAGES = `, effect_disposition TEXT, _compressed_summary INTEGER NOT NULL DEFAULT 0, api_content TEXT,
  display_kind TEXT, display_metadata TEXT, display_identity BLOB, display_order INTEGER`;

const FTS = `
  CREATE VIEW messages_fts_src AS SELECT id, content, tool_name, substr(tool_calls, 1, 2000) AS tool_calls FROM messages;
  CREATE VIRTUAL TABLE messages_fts USING fts5(content, tool_name, tool_calls, content='messages_fts_src', content_rowid='id');
  CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts(rowid, content, tool_name, tool_calls)
    VALUES (new.id, new.content, new.tool_name, substr(new.tool_calls, 1, 2000));
  END;`;

export function schemaOf(build: Build): string {
  if (build === 'bare') {
    return `CREATE TABLE sessions (id TEXT PRIMARY KEY, started_at REAL);
      CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL);`;
  }
  const [sessions, messages] =
    build === 'current' ? [SESSIONS + CURRENT_SESSIONS, MESSAGES + CURRENT_MESSAGES] : [SESSIONS, MESSAGES];
  return `CREATE TABLE schema_version (version INTEGER NOT NULL); INSERT INTO schema_version VALUES (16);
    CREATE TABLE sessions (${sessions}); CREATE TABLE messages (${messages});
    CREATE INDEX idx_messages_session ON messages(session_id, timestamp);
    CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
    ${build === 'current' ? FTS : "CREATE VIRTUAL TABLE messages_fts USING fts5(content, content='messages', content_rowid='id'); CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content); END;"}`;
}

export interface HermesHome {
  folder: string;
  file: string;
  db: Database.Database;
  session(id: string, fields?: Record<string, unknown>, rows?: readonly HermesRow[]): void;
  rows(id: string, rows: readonly HermesRow[]): void;
  close(): void;
}

/** Opens or makes a home. The connection stays open, as while the program runs, until `close`. */
export function openHermesHome(folder: string, build: Build = 'current', journal = 'WAL'): HermesHome {
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'state.db');
  const db = new Database(file);
  db.pragma(`journal_mode = ${journal}`);
  if (!db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sessions'").get()) db.exec(schemaOf(build));

  const insert = (table: string, values: Record<string, unknown>): void => {
    const names = Object.keys(values);
    db.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`).run(
      ...Object.values(values),
    );
  };
  const home: HermesHome = {
    folder,
    file,
    db,
    session(id, fields = {}, rows = []) {
      const own = build === 'bare' ? {} : { source: 'cli', message_count: rows.length };
      insert('sessions', { id, started_at: 1_700_000_000, ...own, ...fields });
      home.rows(id, rows);
    },
    rows(id, rows) {
      db.transaction(() => {
        for (const [at, { content, tool_calls, ...rest }] of rows.entries()) {
          insert('messages', {
            session_id: id,
            content: typeof content === 'string' || content === null ? content : `\0json:${JSON.stringify(content)}`,
            timestamp: 1_700_000_000 + at,
            ...(tool_calls === undefined ? {} : { tool_calls: JSON.stringify(tool_calls) }),
            ...rest,
          });
        }
      })();
    },
    close: () => db.close(),
  };
  return home;
}

/** A question and its answer. */
export const turn = (question: string, answer: string, at = 1_700_000_000): HermesRow[] => [
  { role: 'user', content: question, timestamp: at },
  { role: 'assistant', content: answer, timestamp: at + 1 },
];
