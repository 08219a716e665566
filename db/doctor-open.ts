/**
 * Opens a state DB only to look at it (DR1): nothing is made, migrated, checkpointed, rolled back or rebuilt.
 *
 * A connection for reading makes `-wal` and `-shm` where there are none and leaves them behind; one that may write takes
 * them away again when it is closed, and has nothing to write where there is no WAL. So a database that was closed well
 * is opened by the latter, with writing forbidden, and any other one by the former, which leaves a WAL as it is.
 */
import Database from 'better-sqlite3';
import type { KnownSchema } from './doctor-schema.ts';
import { createStateView, type StateView } from './doctor-view.ts';
import type { StateDbFiles } from './files/home-files.ts';
import { APPLICATION_ID } from './our-schema.ts';

export type StateOpening =
  | { kind: 'open'; view: StateView }
  | { kind: 'missing' }
  /** Another program's. */
  | { kind: 'foreign' }
  /** Locked for writing by somebody who keeps no WAL. */
  | { kind: 'busy' }
  /** Only a writer can finish what was left half. */
  | { kind: 'needs_writer'; code: string }
  /** No database, or one whose first page is lost. */
  | { kind: 'damaged'; code: string };

/**
 * @param file absolute path
 * @param found what stands on the disk; looked at before, since nobody may open the file while SQLite has it
 */
export function openStateView(file: string, found: StateDbFiles, known: KnownSchema): StateOpening {
  if (found.kind === 'missing') return { kind: 'missing' };
  if (found.kind === 'folder') return { kind: 'damaged', code: 'EISDIR' };
  if (found.begins === 'otherwise') return { kind: 'damaged', code: 'SQLITE_NOTADB' };
  if (found.begins === 'empty' && !found.wal) return { kind: 'damaged', code: 'empty' };
  if (found.applicationId !== 0 && found.applicationId !== APPLICATION_ID) return { kind: 'foreign' };
  const wasClosedWell = found.usesWal && found.wal === null && !found.hasSharedMemory;
  let sqlite: Database.Database | null = null;
  try {
    sqlite = new Database(file, { readonly: !wasClosedWell, fileMustExist: true, timeout: 0 });
    sqlite.pragma('query_only = ON');
    const owner = sqlite.pragma('application_id', { simple: true });
    if (owner !== APPLICATION_ID) {
      sqlite.close();
      return { kind: 'foreign' };
    }
    return { kind: 'open', view: createStateView(sqlite, known) };
  } catch (error) {
    sqlite?.close();
    if (!(error instanceof Database.SqliteError)) throw error;
    const { code } = error;
    if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return { kind: 'busy' };
    if (/^SQLITE_(CANTOPEN|READONLY)/.test(code)) return { kind: 'needs_writer', code };
    if (/^SQLITE_(CORRUPT|NOTADB|IOERR)/.test(code)) return { kind: 'damaged', code };
    throw error;
  }
}
