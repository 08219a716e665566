/**
 * A sound state DB in the place of one that is not (DR6, RE6): for `--repair`, and for a server that starts. What can be read
 * is put into a new one, of the file, or where that is gone of its WAL; sessions whose row was lost get it back by their
 * messages and by what their files say of them. Where nothing can be read a new one is made, and the files are adopted.
 */
import { openForRepair, type StateRepairs } from '../../db/doctor-repairs.ts';
import { canBeRead, describeIn, type Salvaged, salvage } from '../../db/doctor-salvage.ts';
import { type KnownSchema, makeEmpty } from '../../db/doctor-schema.ts';
import type { HomeCopies } from '../../db/files/home-copies.ts';
import type { SidecarHeader } from '../../db/files/sidecar-store.ts';
import { openLoneWal } from '../../db/lone-wal.ts';
import { rowOf } from '../recovery/adopt.ts';
import { counted } from './finding.ts';

export interface MakeSoundParts {
  copies: HomeCopies;
  /** Absolute path of the state DB. */
  stateDb: string;
  known: KnownSchema;
  /** What the file of a session says of it; null when it says nothing. */
  headerOf(sessionId: string): Promise<SidecarHeader | null>;
  /** Epoch seconds. */
  now: number;
}

export type Made =
  /** What was done, as a sentence without its end. */
  | { kind: 'mended' | 'failed'; message: string }
  /** Somebody else has the state DB open, or has just written it: nothing was changed. */
  | { kind: 'busy' }
  | { kind: 'changed' };

/** The state DB with the WAL that belongs to it. */
export const STATE_DB = ['state.db', 'state.db-wal'];

/**
 * Makes the state DB sound. Everything that it replaces is copied first.
 * @param anew into a new file, whatever the indexes of the old one say
 * @throws the system's error, such as that of a full disk
 */
export async function makeSound(parts: MakeSoundParts, anew: boolean): Promise<Made> {
  const { copies, stateDb } = parts;
  const odd = [];
  for (const name of ['state.db-wal', 'state.db-shm']) if (await copies.isOdd(name)) odd.push(name);
  for (const name of odd) await copies.remove(name);
  if (odd.length) return { kind: 'mended', message: `${odd.join(' and ')} was no file, and is moved to the copies` };
  // Copied before it is opened: to close a file that SQLite has open would let go of its locks.
  for (const name of STATE_DB) await copies.keep(name);
  const before = await identities(copies);
  // SQLite would delete the WAL of an empty file, and make one where there is none.
  if (!(await copies.isFilled('state.db'))) return makeAnew(parts);
  const opening = openForRepair(stateDb);
  if (opening.kind === 'busy') return { kind: 'busy' };
  if (opening.kind === 'damaged') {
    return /^SQLITE_(NOTADB|CORRUPT)/.test(opening.code)
      ? makeAnew(parts)
      : { kind: 'failed', message: `the state DB cannot be opened for a repair (${opening.code})` };
  }
  const state = opening.repairs;
  try {
    if ((await identities(copies)) !== before) return { kind: 'changed' };
    if (!anew && state.rebuildIndexes()) {
      return { kind: 'mended', message: 'the indexes of the state DB were built anew' };
    }
    return canBeRead(state.source) ? await replaceBySalvage(parts, state) : await makeAnew(parts, state);
  } finally {
    state.close();
  }
}

async function replaceBySalvage(parts: MakeSoundParts, state: StateRepairs): Promise<Made> {
  const made = await salvageInto(parts, state.source);
  if (!made.isSound) {
    return { kind: 'failed', message: 'what could be read gave no sound database: it is kept beside the copies' };
  }
  state.endWal();
  await putInPlace(parts.copies, made.file);
  return { kind: 'mended', message: `the rows of the state DB are in a new one: ${summaryOf(made)}` };
}

/** From the WAL alone, or from nothing. @param state the file where it can be opened and not be read */
async function makeAnew(parts: MakeSoundParts, state?: StateRepairs): Promise<Made> {
  const { copies, known } = parts;
  const log = await copies.take('state.db-wal', 'log.db-wal');
  const source = log === null ? null : await openLoneWal(log.slice(0, -'-wal'.length));
  try {
    if (source && canBeRead(source)) {
      const made = await salvageInto(parts, source);
      if (made.isSound) {
        state?.endWal();
        await putInPlace(copies, made.file);
        return { kind: 'mended', message: `a new state DB has what its log still had: ${summaryOf(made)}` };
      }
    }
  } finally {
    source?.close();
  }
  const file = await copies.place('new.db');
  makeEmpty(file, known);
  state?.endWal();
  await putInPlace(copies, file);
  return { kind: 'mended', message: 'nothing of the state DB could be read: there is a new one, with no session yet' };
}

/**
 * The old one goes only now, under the lock of whoever has it open; what its WAL held is in the copies, and must not be read
 * into the new one.
 */
async function putInPlace(copies: HomeCopies, file: string): Promise<void> {
  for (const name of ['state.db-wal', 'state.db-shm']) await copies.remove(name);
  // A rename takes the place of a file, and of nothing else.
  if (!(await copies.isFilled('state.db'))) await copies.remove('state.db');
  await copies.replace('state.db', file);
}

/** What tells whether somebody wrote between the copy and the lock. */
export async function identities(copies: HomeCopies): Promise<string> {
  return `${await copies.identity('state.db')} ${await copies.identity('state.db-wal')}`;
}

/** Puts what can be read into a new database beside the copies. */
async function salvageInto(
  { copies, known, headerOf, now }: MakeSoundParts,
  source: StateRepairs['source'],
): Promise<Salvaged & { file: string }> {
  const file = await copies.place('salvaged.db');
  const made = salvage(source, file, known);
  await copies.note('salvage.json', `${JSON.stringify(made, null, 2)}\n`);
  describeIn(file, await describedByFiles(made.remade, headerOf, now));
  return { ...made, file };
}

/** What files say of sessions that were made anew. */
export async function describedByFiles(
  sessionIds: readonly string[],
  headerOf: MakeSoundParts['headerOf'],
  now: number,
) {
  const described = [];
  for (const sessionId of sessionIds) {
    const header = await headerOf(sessionId);
    if (!header) continue;
    const { rows: _rows, usage: _usage, now: _now, ...row } = rowOf(sessionId, header, now);
    described.push(row);
  }
  return described;
}

function summaryOf({ tables, remade, unfit }: Salvaged): string {
  const kept = tables.reduce((sum, table) => sum + table.kept, 0);
  const lost = tables.flatMap((table) => table.lost).length;
  const parts = [`${counted(kept, 'row')} kept`, `${counted(lost, 'place')} that could not be read`];
  if (unfit) parts.push(`${counted(unfit, 'row')} left out`);
  if (remade.length) parts.push(`${counted(remade.length, 'session')} made anew from their messages`);
  return `${parts.join(', ')} (salvage.json says which)`;
}
