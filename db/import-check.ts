/** Our state DB as an import looks at it that changes nothing: it is opened for reading only, and never migrated. */
import Database from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { type StateDb, StateDbRefused } from './client.ts';
import { readKnownSchema } from './doctor-schema.ts';
import { lookAtDatabase } from './files/foreign/database-place.ts';
import { APPLICATION_ID } from './our-schema.ts';
import * as schema from './schema.ts';
import { StorageTrouble, storageTroubleKind } from './storage-trouble.ts';

/** Milliseconds for which a locked database is waited for; nothing else runs in this process meanwhile. */
const PATIENCE_MS = 5_000;

/** Where there is no file nothing was ever imported. */
export async function openStateDbToCheck(file: string): Promise<Pick<StateDb, 'read' | 'write' | 'close'>> {
  const { file: found, hasWal, hasSharedMemory } = await lookAtDatabase(file);
  // A connection for reading leaves `-wal` and `-shm` where there were none; one that may write takes them away again.
  const readonly = hasWal || hasSharedMemory;
  const sqlite = found ? new Database(file, { readonly, timeout: PATIENCE_MS }) : new Database(':memory:');
  if (!found) readKnownSchema()?.make(sqlite);
  sqlite.pragma('query_only = ON');
  if (sqlite.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    sqlite.close();
    throw new StateDbRefused(`${file} belongs to another program: name a home of Turnkeep with --home DIR.`);
  }
  const db = drizzle(sqlite, { schema });
  return {
    async read(work) {
      try {
        return work(db);
      } catch (error) {
        const kind = storageTroubleKind(error);
        throw kind === null ? error : new StorageTrouble(kind, error);
      }
    },
    async write() {
      throw new Error('nothing is written by a check');
    },
    close: () => sqlite.close(),
  };
}
