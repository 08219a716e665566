/**
 * The other program, as a process of its own: appends turns to a session of its `state.db` as Hermes does. One short write
 * transaction for each row, a checkpoint every 50 writes, and a line on stdout behind each commit. Ends with its input.
 */
import Database from 'better-sqlite3';

const [file, sessionId, first] = process.argv.slice(2);
const db = new Database(file, { timeout: 1000 });
db.pragma('journal_mode = WAL');
db.pragma('foreign_keys = ON');
const insert = db.prepare(
  'INSERT INTO messages (session_id, role, content, timestamp) VALUES (@sessionId, @role, @content, @at)',
);
const count = db.prepare(
  'UPDATE sessions SET message_count = message_count + 1, last_activity_at = @at WHERE id = @sessionId',
);

let running = true;
process.stdin.on('end', () => {
  running = false;
});
process.stdin.resume();

let written = 0;
function next() {
  if (!running) {
    db.close();
    return;
  }
  const number = Number(first) + written;
  const at = 1_700_100_000 + number;
  db.exec('BEGIN IMMEDIATE');
  insert.run({ sessionId, role: number % 2 === 0 ? 'user' : 'assistant', content: `row ${number}`, at });
  count.run({ sessionId, at });
  db.exec('COMMIT');
  written += 1;
  if (written % 50 === 0) db.pragma('wal_checkpoint(PASSIVE)');
  process.stdout.write(`${written}\n`);
  setTimeout(next, 2);
}
next();
