// @ts-check
/**
 * Raw better-sqlite3 figures: the floor for a server that stores in SQLite.
 * BETTER_SQLITE3_FROM is a folder in whose node_modules better-sqlite3 is
 * (default: the current folder). Run: node bench/sqlite-floor.mjs [folder for the database]
 */

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { quantile, round } from './lib/stats.mjs';
import { seedMessages } from './targets/base.mjs';

const from = path.resolve(process.env.BETTER_SQLITE3_FROM ?? '.', 'package.json');
const Database = createRequire(from)('better-sqlite3');
const folder = mkdtempSync(path.join(process.argv[2] ?? os.tmpdir(), 'bench-sqlite-'));

/** @param {string} label @param {number} count @param {(index: number) => void} work */
function time(label, count, work) {
  const times = new Float64Array(count);
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  for (let index = 0; index < count; index += 1) {
    const from = performance.now();
    work(index);
    times[index] = performance.now() - from;
  }
  const elapsed = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpu);
  const list = Array.from(times);
  const row = {
    case: label,
    perSecond: Math.round((count / elapsed) * 1000),
    p50Us: round(quantile(list, 0.5) * 1000, 1),
    p99Us: round(quantile(list, 0.99) * 1000, 1),
    cpuUsEach: round((user + system) / count, 1),
    count,
  };
  process.stdout.write(`${JSON.stringify(row)}\n`);
}

/** @param {string} synchronous */
function open(synchronous) {
  const db = new Database(path.join(folder, `${synchronous}.db`));
  db.pragma('journal_mode = WAL');
  db.pragma(`synchronous = ${synchronous}`);
  db.exec(`CREATE TABLE IF NOT EXISTS message (
    session TEXT NOT NULL, seq INTEGER NOT NULL, role TEXT NOT NULL, text TEXT NOT NULL, created INTEGER NOT NULL,
    PRIMARY KEY (session, seq)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS event (session TEXT NOT NULL, seq INTEGER NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (session, seq)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, title TEXT NOT NULL, updated INTEGER NOT NULL);
    CREATE INDEX IF NOT EXISTS session_updated ON session (updated);`);
  return db;
}

for (const synchronous of ['NORMAL', 'FULL']) {
  const db = open(synchronous);
  const insert = db.prepare('INSERT INTO event VALUES (?, ?, ?)');
  const data = JSON.stringify({ text: 'x'.repeat(16) });
  const many = db.transaction((/** @type {number} */ start) => {
    for (let index = 0; index < 50; index += 1) insert.run('b', start + index, data);
  });
  time(`insert 1 delta a transaction, synchronous=${synchronous}`, synchronous === 'FULL' ? 1000 : 10_000, (index) =>
    insert.run('a', index, data),
  );
  time(`insert 50 deltas a transaction, synchronous=${synchronous}`, 400, (index) => many(index * 50));
  db.close();
}

const db = open('NORMAL');
const insertMessage = db.prepare('INSERT INTO message VALUES (?, ?, ?, ?, ?)');
const insertSession = db.prepare('INSERT INTO session VALUES (?, ?, ?)');
db.transaction(() => {
  for (const count of [100, 1000, 10_000]) {
    for (const [seq, { role, text }] of seedMessages(count).entries())
      insertMessage.run(`m${count}`, seq, role, text, seq);
  }
  for (let index = 0; index < 10_000; index += 1) insertSession.run(`s${index}`, `Session ${index}`, index);
})();
const all = db.prepare('SELECT seq, role, text, created FROM message WHERE session = ? ORDER BY seq');
const tail = db.prepare('SELECT seq, role, text, created FROM message WHERE session = ? ORDER BY seq DESC LIMIT 50');
const list = db.prepare('SELECT id, title, updated FROM session ORDER BY updated DESC LIMIT 50');
let sink = 0;
for (const [count, turns] of [
  [100, 500],
  [1000, 200],
  [10_000, 50],
]) {
  time(`select ${count} messages and JSON.stringify`, turns, () => {
    sink += JSON.stringify(all.all(`m${count}`)).length;
  });
}
time('select last 50 of 10000 and JSON.stringify', 2000, () => {
  sink += JSON.stringify(tail.all('m10000')).length;
});
time('list newest 50 of 10000 sessions and JSON.stringify', 2000, () => {
  sink += JSON.stringify(list.all()).length;
});
const rename = db.prepare('UPDATE session SET title = ?, updated = ? WHERE id = ?');
const remove = db.prepare('DELETE FROM session WHERE id = ?');
time('create, rename and delete a session', 2000, (index) => {
  insertSession.run(`n${index}`, 'New', 20_000 + index);
  rename.run('Renamed', 20_000 + index, `n${index}`);
  remove.run(`n${index}`);
});
process.stdout.write(
  `${JSON.stringify({ case: 'database', bytes: statSync(path.join(folder, 'NORMAL.db')).size, sink })}\n`,
);
db.close();
rmSync(folder, { recursive: true, force: true });
