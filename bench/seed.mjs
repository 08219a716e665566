// @ts-check
/**
 * node --import tsx bench/seed.mjs HOME SESSIONS MESSAGES_EACH
 *
 * Fills a home through Turnkeep's own stores, with the server stopped. Prints the ids as a JSON array.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { openStateDb } from '../db/client.ts';
import { createPaths } from '../db/files/paths.ts';
import { createSidecarStore, toSidecarRow } from '../db/files/sidecar-store.ts';
import { upsertMessages } from '../db/message-store.ts';
import { sessions } from '../db/schema.ts';
import { formatSessionId } from '../server/core/ids.ts';
import { seedMessages } from './targets/base.mjs';

const [home = '', count = '1', messagesEach = '2'] = process.argv.slice(2);
mkdirSync(home, { recursive: true });
const paths = createPaths(home);
const now = Date.now() / 1000;
const state = await openStateDb({
  file: paths.stateDb,
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  random: Math.random,
  monotonic: () => performance.now(),
  patienceMs: 5000,
  now: () => now,
});
const sidecars = createSidecarStore(paths);
const hex = (/** @type {number} */ bytes) => randomBytes(bytes).toString('hex');

/** The transcript with ids of runs: two rows are one turn. @returns {any[]} */
function rows() {
  let run = '';
  return seedMessages(Number(messagesEach)).map(({ role, text }, index) => {
    if (role === 'user') run = hex(16);
    return { id: `${run}.${index % 2}`, role, content: text, timestamp: now - 1e6 + index, run_id: run };
  });
}

const seeded = Array.from({ length: Number(count) }, (_, index) => ({
  id: formatSessionId(now - index * 60, hex(3)),
  at: now - index * 60,
  rows: rows(),
}));
for (let at = 0; at < seeded.length; at += 500) {
  const batch = seeded.slice(at, at + 500);
  await state.write((db) => {
    for (const session of batch) {
      const title = `Seeded ${session.id}`;
      const row = { id: session.id, source: 'turnkeep', title, startedAt: session.at, updatedAt: session.at };
      db.insert(sessions)
        .values({ ...row, lastActivityAt: session.at, messageCount: session.rows.length, runtimeRevision: 1 })
        .run();
      upsertMessages(db, session.id, session.rows);
    }
  });
  for (const session of batch) {
    const header = {
      session_id: session.id,
      title: `Seeded ${session.id}`,
      active_stream_id: null,
      pending_user_message: null,
      pending_attachments: [],
      pending_started_at: null,
      pending_user_source: null,
      edit_number: 0,
      message_count: session.rows.length,
    };
    await sidecars.save(session.id, { header, rows: session.rows.map(toSidecarRow), tail: {} });
  }
}
state.close();
process.stdout.write(JSON.stringify(seeded.map((session) => session.id)));
