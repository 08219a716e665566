/**
 * `--repair`: what the examination found to be safe and certain, each after a copy of what it touches (DR5). Nobody else may
 * use the state DB meanwhile (DR4); files are changed under the same lock, so that no server starts in between.
 */
import { openForRepair, type StateRepairs } from '../../db/doctor-repairs.ts';
import { canBeRead, type Salvaged, salvage } from '../../db/doctor-salvage.ts';
import type { KnownSchema } from '../../db/doctor-schema.ts';
import type { HomeCopies } from '../../db/files/home-copies.ts';
import { filesOfSession } from './check-sidecars.ts';
import { changesStateDb, counted, type Finding, type Repair } from './finding.ts';

export interface RepairParts {
  copies: HomeCopies;
  /** Absolute path of the state DB. */
  stateDb: string;
  known: KnownSchema;
  /** Epoch seconds. */
  now: number;
  /** Told of each repair when it is done. */
  done(code: Repair['kind'], message: string): void;
}

/** The state DB with the WAL that belongs to it. */
const STATE_DB = ['state.db', 'state.db-wal'];

/**
 * Makes the repairs of these findings, once each.
 * @param hasStateDb whether the state DB can be opened, so that it can be locked
 * @returns a sentence when somebody else uses the state DB: then nothing was changed
 */
export async function repair(
  parts: RepairParts,
  findings: readonly Finding[],
  hasStateDb: boolean,
): Promise<string | null> {
  const all = findings.flatMap((finding) => (finding.repair ? [finding.repair] : []));
  const wanted = [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
  // A database whose pages are broken is made sound first; what its rows lack is looked at again then.
  const repairs = wanted.some(({ kind }) => kind === 'make_sound')
    ? wanted.filter((one) => one.kind === 'make_sound' || !changesStateDb(one))
    : wanted;
  if (repairs.length === 0) return null;
  const { copies } = parts;
  if (!hasStateDb) {
    for (const one of repairs) if (!changesStateDb(one)) await repairFile(parts, one);
    return null;
  }
  // Copied before it is opened: to close a file that SQLite has open would let go of its locks.
  for (const name of STATE_DB) await copies.keep(name);
  const before = await identities(copies);
  const opening = openForRepair(parts.stateDb);
  if (opening.kind === 'busy') return 'the state DB is in use by another process: stop that one, then try again.';
  if (opening.kind === 'damaged') {
    for (const one of repairs) {
      if (one.kind === 'make_sound')
        parts.done(one.kind, `the state DB cannot be opened for a repair (${opening.code})`);
      else if (!changesStateDb(one)) await repairFile(parts, one);
    }
    return null;
  }
  const state = opening.repairs;
  let isOpen = true;
  try {
    if ((await identities(copies)) !== before) return 'the state DB was changed meanwhile: try again.';
    for (const one of repairs) {
      if (one.kind === 'make_sound') {
        const made = !one.anew && state.rebuildIndexes() ? null : await salvageInto(parts, state);
        if (!made) parts.done(one.kind, 'the indexes of the state DB were built anew');
        if (!made?.isSound) continue;
        // The old one goes only now; what its WAL held is in the copies, and must not be read into the new one.
        state.close();
        isOpen = false;
        await copies.replace('state.db', made.file);
        for (const name of ['state.db-wal', 'state.db-shm']) await copies.remove(name);
        parts.done(one.kind, `the rows of the state DB are in a new one: ${summaryOf(made)}`);
        return null;
      }
      if (one.kind === 'finish_deletion') {
        for (const name of filesOfSession(one.sessionId)) await copies.remove(name);
        state.filesRemoved(one.sessionId);
        parts.done(one.kind, `the files of the deleted session ${one.sessionId} are removed`);
      } else if (changesStateDb(one)) parts.done(one.kind, repairRows(state, one));
      else await repairFile(parts, one);
    }
    return null;
  } finally {
    if (isOpen) state.close();
  }
}

/** What tells whether somebody wrote between the copy and the lock. */
async function identities(copies: HomeCopies): Promise<string> {
  return `${await copies.identity('state.db')} ${await copies.identity('state.db-wal')}`;
}

async function repairFile({ copies, now, done }: RepairParts, one: Repair): Promise<void> {
  if (one.kind === 'remove_file') {
    await copies.remove(one.path);
    done(one.kind, `${one.path} is removed`);
  }
  if (one.kind === 'move_aside') {
    const aside = await copies.moveAside(one.path, `damaged-${Math.floor(now)}`);
    done(one.kind, `${one.path} is now ${aside}`);
  }
}

function repairRows(state: StateRepairs, one: Repair): string {
  switch (one.kind) {
    case 'rebuild_search':
      state.rebuildSearch();
      return 'the search index was built anew';
    case 'delete_orphans':
      return `${counted(state.deleteOrphans(), 'row')} without a session are deleted`;
    case 'clear_lost_projects':
      return `${counted(state.clearLostProjects(), 'session')} taken out of a project that is lost`;
    case 'count_sessions':
      state.countSessions();
      return 'the sessions were counted';
    case 'count_messages':
      state.setMessageCount(one.sessionId, one.count);
      return `${one.sessionId} counts its ${counted(one.count, 'message')}`;
    case 'clear_flags':
      state.clearFlags(one.sessionId);
      return `the flags of ${one.sessionId} are empty`;
    case 'delete_lease':
      state.deleteLease(one.sessionId, one.leaseId);
      return `${one.sessionId} is held by nobody`;
    default:
      throw new Error(`no repair of rows: ${one.kind}`);
  }
}

/** Puts what can be read into a new database beside the copies. @returns null when nothing can be read */
async function salvageInto(
  { copies, known, done }: RepairParts,
  state: StateRepairs,
): Promise<(Salvaged & { file: string }) | { isSound: false }> {
  if (!canBeRead(state.source)) {
    done('make_sound', 'too little of the state DB can be read: restore it from a backup');
    return { isSound: false };
  }
  const file = await copies.place('salvaged.db');
  const made = salvage(state.source, file, known);
  await copies.note('salvage.json', `${JSON.stringify(made, null, 2)}\n`);
  if (!made.isSound) done('make_sound', 'what could be read gave no sound database: it is kept beside the copies');
  return { ...made, file };
}

function summaryOf({ tables, remade, unfit }: Salvaged): string {
  const kept = tables.reduce((sum, table) => sum + table.kept, 0);
  const lost = tables.flatMap((table) => table.lost).length;
  const parts = [`${counted(kept, 'row')} kept`, `${counted(lost, 'place')} that could not be read`];
  if (unfit) parts.push(`${counted(unfit, 'row')} left out`);
  if (remade.length) parts.push(`${counted(remade.length, 'session')} made anew from their messages`);
  return `${parts.join(', ')} (salvage.json says which)`;
}
