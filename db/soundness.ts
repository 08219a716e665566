/** Whether the state DB of a home can be trusted, before a server opens it for writing. It is only looked at. */
import Database from 'better-sqlite3';
import { stateDbPlace } from './files/state-db-place.ts';
import { APPLICATION_ID } from './our-schema.ts';

export type Soundness =
  | { kind: 'sound' }
  /** Cannot be judged now (locked, not ours, not to be read): whoever opens it is told why. */
  | { kind: 'unknown' }
  /** `reason` in the words of SQLite, or ours; `isOurs` when it still bears our mark, or is a log without anything. */
  | { kind: 'damaged'; reason: string; isOurs: boolean };

/** @param file absolute path of the state DB @returns `sound` also where there is nothing of one */
export function soundnessOf(file: string): Soundness {
  const place = stateDbPlace(file);
  if (place.kind === 'nothing') return { kind: 'sound' };
  if (place.kind === 'wrong') return { kind: 'damaged', reason: place.reason, isOurs: place.isLog };
  let isOurs = false;
  let sqlite: Database.Database | null = null;
  try {
    sqlite = new Database(file, { readonly: true, fileMustExist: true, timeout: 0 });
    // Not ours, or not yet anybody's.
    if (sqlite.pragma('application_id', { simple: true }) !== APPLICATION_ID) return { kind: 'unknown' };
    isOurs = true;
    // The whole check and not the quick one: an index that lost an entry would hide a prompt from its request.
    const answer = sqlite.pragma('integrity_check(1)', { simple: true });
    return answer === 'ok' ? { kind: 'sound' } : { kind: 'damaged', reason: String(answer), isOurs };
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error;
    return /^SQLITE_(CORRUPT|NOTADB)/.test(error.code)
      ? { kind: 'damaged', reason: error.message, isOurs }
      : { kind: 'unknown' };
  } finally {
    sqlite?.close();
  }
}
