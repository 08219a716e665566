/**
 * A connection to another program's state.db, for reading only: it is never migrated, checkpointed or locked for
 * writing, and no file is made beside it.
 *
 * A database with a WAL can only be read in its place while both `-wal` and `-shm` are there, as they are while its
 * program runs; otherwise SQLite would make them. Then a private copy is read instead, until the original changes. So is
 * one whose program died in the middle of a write.
 */
import Database from 'better-sqlite3';
import {
  copyDatabase,
  type DatabasePlace,
  keepsWal,
  lookAtDatabase,
  removeCopy,
} from '../files/foreign/database-place.ts';
import { StorageTrouble, storageTroubleKind } from '../storage-trouble.ts';
import { type Columns, probeColumns } from './columns.ts';

/** An open database: statements are prepared once for it. */
export interface OpenForeign {
  columns: Columns;
  prepare(text: string): Database.Statement;
}

export interface ForeignConnection {
  /** Runs one short step of reading on what stands now; null when there is no such database. @throws StorageTrouble */
  use<T>(work: (db: OpenForeign) => T): Promise<T | null>;
  /** Another text whenever anybody changed the database; null when there is none. @throws StorageTrouble */
  version(): Promise<string | null>;
  close(): Promise<void>;
}

export interface ForeignConnectionOptions {
  /** Absolute path of the database. */
  file: string;
  /** A folder of our own for private copies, on a disk that has room for one; made when it is needed. */
  copies: string;
  /** Resolves after a pause; injected so that tests own the clock. @param ms milliseconds */
  sleep(ms: number): Promise<void>;
}

interface Opened extends OpenForeign {
  sqlite: Database.Database;
  /** The file it was opened as, and the state of the original that a copy is of. */
  file: string;
  copyOf: string | null;
  copy: string | null;
  dataVersion(): number;
  /** Tells this connection from those before it. */
  number: number;
}

/** Tries of a step that finds the database locked, and the pause between them (milliseconds): two seconds in all. */
const TRIES = 80;
const PAUSE_MS = 25;

export function createForeignConnection({ file, copies, sleep }: ForeignConnectionOptions): ForeignConnection {
  let opened: Opened | null = null;
  let opening: Promise<Opened | null> | null = null;
  let closed = false;
  let connections = 0;
  /** Whether it was locked for longer than anybody should wait: then nobody waits until it can be read again. */
  let staysLocked = false;

  const drop = async (): Promise<void> => {
    const gone = opened;
    opened = null;
    gone?.sqlite.close();
    if (gone?.copy) await removeCopy(gone.copy);
  };

  /** Whether what is open is still what stands there. */
  const isCurrent = (open: Opened, place: DatabasePlace): boolean => {
    if (open.file !== place.file) return false;
    return open.copyOf === null || (open.copyOf === place.state && !(place.hasWal && place.hasSharedMemory));
  };

  async function openNow(): Promise<Opened | null> {
    const place = await lookAtDatabase(file);
    if (opened && isCurrent(opened, place)) return opened;
    await drop();
    connections += 1;
    if (place.file === null || closed) return null;
    const inUse = place.hasWal && place.hasSharedMemory;
    if (!inUse && (place.hasWal || (await keepsWal(file)))) return openCopy(place);
    try {
      opened = openAt(file, place.file, connections);
    } catch (error) {
      // The shared memory may be another user's, or a write was never finished, which only a writer may take back: what is
      // committed can be read all the same.
      const code = error instanceof Database.SqliteError ? error.code : '';
      if (!(inUse ? /^SQLITE_(CANTOPEN|READONLY)/ : /^SQLITE_READONLY/).test(code)) throw error;
      return openCopy(place);
    }
    return opened;
  }

  async function openCopy(place: DatabasePlace): Promise<Opened | null> {
    const copy = await copyDatabase(file, copies, `foreign.db.tmp.${process.pid}.${connections}`);
    // Its program has just begun or ended: the next step finds it as it is then.
    if (copy === null) throw new StorageTrouble('busy', null);
    try {
      settle(copy);
      opened = { ...openAt(copy, place.file!, connections), copyOf: place.state, copy };
    } finally {
      // Open it stays readable; and whatever ends this process leaves nothing behind.
      await removeCopy(copy);
    }
    return opened;
  }

  const current = (): Promise<Opened | null> => {
    opening ??= openNow().finally(() => {
      opening = null;
    });
    return opening;
  };

  async function patiently<T>(attempt: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        const made = await attempt();
        staysLocked = false;
        return made;
      } catch (error) {
        // Tables of a make that nobody here has seen are as good as none.
        const kind = storageTroubleKind(error) ?? (error instanceof Database.SqliteError ? 'unavailable' : null);
        if (kind === null) throw error;
        if (kind === 'busy' && tries >= TRIES) staysLocked = true;
        if (kind !== 'busy' || staysLocked) throw new StorageTrouble(kind, error);
      }
      await sleep(PAUSE_MS);
    }
  }

  return {
    use: (work) =>
      patiently(async () => {
        const open = await current();
        return open && work(open);
      }),

    version: () =>
      patiently(async () => {
        const open = await current();
        // Each connection counts for itself.
        return open && `${open.number} ${open.dataVersion()}`;
      }),

    async close() {
      closed = true;
      await opening?.catch(() => {});
      await drop();
    },
  };
}

/** Puts the WAL of a copy of ours into it, or takes back what its journal says, so that the copy can be read alone. */
function settle(copy: string): void {
  const sqlite = new Database(copy, { timeout: 0 });
  try {
    sqlite.pragma('journal_mode = DELETE');
  } finally {
    sqlite.close();
  }
}

/** @param path what is opened; @param file the identity of the original */
function openAt(path: string, file: string, number: number): Opened {
  const sqlite = new Database(path, { readonly: true, fileMustExist: true, timeout: 0 });
  try {
    const statements = new Map<string, Database.Statement>();
    const dataVersion = sqlite.prepare('PRAGMA data_version').pluck();
    return {
      sqlite,
      file,
      copyOf: null,
      copy: null,
      columns: probeColumns(sqlite),
      prepare(text) {
        const statement = statements.get(text) ?? sqlite.prepare(text);
        statements.set(text, statement);
        return statement;
      },
      number,
      dataVersion: () => dataVersion.get() as number,
    };
  } catch (error) {
    sqlite.close();
    throw error;
  }
}
