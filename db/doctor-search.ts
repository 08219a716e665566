/**
 * Whether the full-text index says what the messages say. SQLite's own comparison is a command that writes, so the same
 * words are indexed anew beside it, in a temporary database, and both lists of words are walked side by side.
 */
import Database from 'better-sqlite3';

const TOKENS = "tokenize = 'unicode61 remove_diacritics 2'";

interface Word {
  term: string;
  doc: number;
  cnt: number;
}

/** @returns `damaged` when the index cannot even be read */
export function compareSearchIndex(sqlite: Database.Database): 'same' | 'other' | 'damaged' {
  const scratch = new Database('');
  try {
    // One transaction: what a server writes meanwhile is in neither list, or in both.
    return sqlite.transaction(() => compare(sqlite, scratch))();
  } catch (error) {
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_CORRUPT')) return 'damaged';
    throw error;
  } finally {
    scratch.close();
  }
}

function compare(sqlite: Database.Database, scratch: Database.Database): 'same' | 'other' {
  if (sqlite.prepare(MISSING_OR_LEFT_OVER).get() !== undefined) return 'other';
  scratch.exec(`CREATE VIRTUAL TABLE fresh USING fts5(content, content = '', ${TOKENS}); BEGIN`);
  const add = scratch.prepare('INSERT INTO fresh (rowid, content) VALUES (?, ?)');
  for (const row of sqlite.prepare('SELECT id, content FROM messages_fts_src').raw().iterate()) add.run(row);
  scratch.exec("COMMIT; CREATE VIRTUAL TABLE words USING fts5vocab('fresh', 'row')");
  // A table of the connection, not of the file.
  sqlite.pragma('query_only = OFF');
  sqlite.exec("CREATE VIRTUAL TABLE temp.doctor_words USING fts5vocab('main', 'messages_fts', 'row')");
  sqlite.pragma('query_only = ON');
  const theirs = sqlite.prepare('SELECT term, doc, cnt FROM temp.doctor_words').iterate() as IterableIterator<Word>;
  try {
    for (const word of scratch.prepare('SELECT term, doc, cnt FROM words').iterate() as IterableIterator<Word>) {
      const { value, done } = theirs.next();
      if (done || value.term !== word.term || value.doc !== word.doc || value.cnt !== word.cnt) return 'other';
    }
    return theirs.next().done ? 'same' : 'other';
  } finally {
    theirs.return?.();
    sqlite.pragma('query_only = OFF');
    sqlite.exec('DROP TABLE temp.doctor_words');
    sqlite.pragma('query_only = ON');
  }
}

/** A message that is not in the index, or the other way round. */
const MISSING_OR_LEFT_OVER = `
  SELECT 1 FROM messages_fts_src WHERE id NOT IN (SELECT id FROM messages_fts_docsize)
  UNION ALL SELECT 1 FROM messages_fts_docsize WHERE id NOT IN (SELECT id FROM messages_fts_src) LIMIT 1`;
