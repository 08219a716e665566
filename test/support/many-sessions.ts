/** A home with many conversations, written at once: making each through the server would take a minute. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { openStateDb } from '../../db/client.ts';
import { formatSessionId } from '../../server/core/ids.ts';
import { stateDbOptions } from './state-db.ts';

/**
 * Fills the state DB of a home that has none.
 * @param count the conversations are "number 0", the newest, and so on, an hour apart
 */
export async function seedSessions(home: string, count: number): Promise<void> {
  const file = path.join(home, 'state.db');
  (await openStateDb(stateDbOptions(file))).close();
  const db = new Database(file);
  const insert = db.prepare(
    `INSERT INTO sessions (id, source, title, started_at, updated_at, last_activity_at, message_count, runtime_revision)
     VALUES (:id, 'turnkeep', :title, :at, :at, :at, 0, 1)`,
  );
  const newest = Date.now() / 1000 - 60;
  db.transaction(() => {
    for (let number = 0; number < count; number += 1) {
      const at = newest - number * 3600;
      const id = formatSessionId(at, number.toString(16).padStart(6, '0'));
      insert.run({ id, title: `number ${number}`, at });
    }
  })();
  db.close();
}
