/** A state DB in a temporary folder, and what its options are in tests. */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import type { StateDbOptions } from '../../db/client.ts';
import type { LeaseOwner } from '../../server/core/lease-rules.ts';
import { temporaryFolder } from './home.ts';

/** A name for a state DB that is not there yet; its folder is removed when the test has finished. */
export const newStateFile = async (): Promise<string> => path.join(await temporaryFolder(), 'state.db');

/** Options with the real clock, half a second of patience and no jitter. */
export const stateDbOptions = (file: string, part: Partial<StateDbOptions> = {}): StateDbOptions => ({
  file,
  sleep: (ms) => sleep(ms),
  random: () => 0,
  monotonic: () => performance.now(),
  patienceMs: 500,
  now: () => 1_772_542_802.5,
  ...part,
});

/** Looks into the state DB of a home as another program would: read-only. */
export function readStateDb<T>(home: string, look: (db: Database.Database) => T): T {
  const db = new Database(path.join(home, 'state.db'), { readonly: true });
  try {
    return look(db);
  } finally {
    db.close();
  }
}

/** Who has the lease of a session, as the file says. */
export function holderIn(file: string, sessionId: string): LeaseOwner | null {
  const db = new Database(file, { readonly: true });
  const columns = 'pid, process_start_time AS start, live_session_id AS liveSessionId, epoch';
  const row = db.prepare(`SELECT ${columns} FROM active_sessions WHERE session_id = ?`).get(sessionId);
  db.close();
  return (row as LeaseOwner | undefined) ?? null;
}
