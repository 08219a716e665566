// @ts-check
/**
 * node --import tsx bench/import.mjs [--sessions 5000] [--messages 130000] [--runs 3] [--sidecars]
 *
 * The import of a large home beside the raw cost of reading and inserting the same rows: one table, the same settings, one
 * transaction for each conversation. Prints a line for each run, then the medians. With --sidecars every
 * conversation has a sidecar as well, as hermes-webui writes it.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import { createImportCommand } from '../server/commands/import.ts';
import { seedMessages } from './targets/base.mjs';

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '5000' },
    messages: { type: 'string', default: '130000' },
    runs: { type: 'string', default: '3' },
    sidecars: { type: 'boolean', default: false },
    folder: { type: 'string', default: os.tmpdir() },
  },
});
const SESSIONS = Number(values.sessions);
const EACH = Math.round(Number(values.messages) / SESSIONS);
const folder = mkdtempSync(path.join(values.folder, 'turnkeep-import-'));

/** A home of Hermes, as its June 2026 build has it. @param {string} home */
function makeHome(home) {
  mkdirSync(path.join(home, 'sessions'), { recursive: true });
  const db = new Database(path.join(home, 'state.db'));
  db.pragma('journal_mode = WAL');
  db.exec(`
    CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, parent_session_id TEXT,
      started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0,
      input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, cwd TEXT, title TEXT,
      estimated_cost_usd REAL, archived INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id),
      role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL,
      token_count INTEGER, finish_reason TEXT, reasoning TEXT, active INTEGER NOT NULL DEFAULT 1,
      compacted INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX idx_messages_session ON messages(session_id, timestamp);`);
  const session = db.prepare(
    'INSERT INTO sessions (id, source, started_at, message_count, title, cwd) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const message = db.prepare('INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)');
  const rows = seedMessages(EACH);
  db.transaction(() => {
    for (let n = 0; n < SESSIONS; n += 1) {
      const id = `20260101_${String(n).padStart(6, '0')}_${(n % 0xffffff).toString(16).padStart(6, '0')}`;
      const startedAt = 1_700_000_000 + n * 100;
      session.run(id, 'cli', startedAt, EACH, `Conversation ${n}`, '/srv/work');
      const messages = rows.map(({ role, text }, at) => ({ role, content: `${text} ${n}`, timestamp: startedAt + at }));
      for (const row of messages) message.run(id, row.role, row.content, row.timestamp);
      if (!values.sidecars) continue;
      const sidecar = {
        session_id: id,
        title: `Conversation ${n}`,
        created_at: startedAt,
        message_count: EACH,
        messages,
      };
      writeFileSync(path.join(home, 'sessions', `${id}.json`), JSON.stringify(sidecar, null, 2));
    }
  })();
  db.close();
}

/** The least that any import does: each row read, and put into one table. @param {string} source @param {string} file */
function raw(source, file) {
  const from = new Database(path.join(source, 'state.db'), { readonly: true });
  const to = new Database(file);
  to.pragma('journal_mode = WAL');
  to.pragma('synchronous = FULL');
  to.exec(`CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
    content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, reasoning TEXT)`);
  const names = 'session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, reasoning';
  const read = from.prepare(`SELECT ${names} FROM messages WHERE session_id = ? ORDER BY id`).raw();
  const write = to.prepare(`INSERT INTO messages (${names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  let count = 0;
  for (const id of from.prepare('SELECT id FROM sessions').pluck().all()) {
    to.transaction(() => {
      for (const row of read.all(id)) {
        write.run(.../** @type {unknown[]} */ (row));
        count += 1;
      }
    }).immediate();
  }
  from.close();
  to.close();
  return count;
}

/** @param {string} source @param {string} home @returns {Promise<any>} what the command says */
async function ours(source, home) {
  let out = '';
  const say = (/** @type {string} */ text) => {
    out += text;
  };
  const terminal = { out: say, err: () => {}, isPerson: false };
  const command = createImportCommand({
    now: () => Date.now() / 1000,
    monotonic: () => performance.now(),
    random: Math.random,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    newId: (bytes) => Buffer.from(Array.from({ length: bytes }, () => Math.random() * 256)).toString('hex'),
  });
  const code = await command.run([source, '--home', home, '--json'], terminal, {});
  if (code !== 0) throw new Error(`exit code ${code}: ${out.slice(0, 2000)}`);
  return JSON.parse(out);
}

/** @param {() => unknown} work */
async function timed(work) {
  const startedAt = performance.now();
  const said = await work();
  return { ms: performance.now() - startedAt, said };
}

/** @param {number[]} all */
const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0;

try {
  const source = path.join(folder, 'source');
  makeHome(source);
  /** @type {{ours: number[], again: number[], raw: number[]}} */
  const taken = { ours: [], again: [], raw: [] };
  for (let run = 0; run < Number(values.runs); run += 1) {
    const home = path.join(folder, `home-${run}`);
    const theirs = await timed(() => raw(source, path.join(folder, `raw-${run}.db`)));
    const first = await timed(() => ours(source, home));
    const again = await timed(() => ours(source, home));
    if (first.said.messages !== theirs.said)
      throw new Error(`${first.said.messages} messages instead of ${theirs.said}`);
    taken.ours.push(first.ms);
    taken.again.push(again.ms);
    taken.raw.push(theirs.ms);
    const line = { sessions: first.said.counts.imported, messages: first.said.messages, oursMs: Math.round(first.ms) };
    const rest = {
      rawMs: Math.round(theirs.ms),
      againMs: Math.round(again.ms),
      ratio: +(first.ms / theirs.ms).toFixed(1),
    };
    process.stdout.write(
      `${JSON.stringify({ ...line, ...rest, rssMb: Math.round(process.memoryUsage.rss() / 1e6) })}\n`,
    );
    rmSync(home, { recursive: true, force: true });
  }
  const [mine, theirs, again] = [median(taken.ours), median(taken.raw), median(taken.again)];
  process.stdout.write(
    `import ${Math.round(mine)} ms, raw ${Math.round(theirs)} ms, ratio ${(mine / theirs).toFixed(1)}; again, nothing new: ${Math.round(again)} ms\n`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
