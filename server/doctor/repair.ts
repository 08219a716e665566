/**
 * `--repair`: what the examination found to be safe and certain, each after a copy of what it touches (DR5). Nobody else may
 * use the state DB meanwhile (DR4); files are changed under the same lock, so that no server starts in between.
 */
import { openForRepair, type StateRepairs } from '../../db/doctor-repairs.ts';
import { filesOfSession } from './check-sidecars.ts';
import { changesStateDb, counted, type Finding, type Repair } from './finding.ts';
import { describedByFiles, identities, type MakeSoundParts, makeSound, STATE_DB } from './make-sound.ts';

export interface RepairParts extends MakeSoundParts {
  /** Told of each repair when it is done. */
  done(code: Repair['kind'], message: string): void;
}

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
  // What takes the place of a damaged file comes when that one is out of the way.
  const inOrder = [...all.filter(isNoBackup), ...all.filter((one) => !isNoBackup(one))];
  const wanted = [...new Map(inOrder.map((one) => [JSON.stringify(one), one])).values()];
  if (wanted.length === 0) return null;
  const { copies } = parts;
  const files = wanted.filter((one) => !changesStateDb(one));
  const broken = wanted.find((one) => one.kind === 'make_sound');
  if (broken) {
    // What its rows lack is looked at again when its pages are sound.
    const made = await makeSound(parts, broken.anew);
    if (made.kind === 'busy') return IN_USE;
    if (made.kind === 'changed') return CHANGED;
    parts.done(broken.kind, made.message);
    if (made.kind === 'failed') for (const one of files) await repairFile(parts, one);
    return null;
  }
  if (!hasStateDb) {
    for (const one of files) await repairFile(parts, one);
    return null;
  }
  for (const name of STATE_DB) await copies.keep(name);
  const before = await identities(copies);
  const opening = openForRepair(parts.stateDb);
  if (opening.kind === 'busy') return IN_USE;
  if (opening.kind === 'damaged') return `the state DB cannot be opened for a repair (${opening.code}).`;
  const state = opening.repairs;
  try {
    if ((await identities(copies)) !== before) return CHANGED;
    for (const one of wanted) {
      if (one.kind === 'finish_deletion') {
        for (const name of filesOfSession(one.sessionId)) await copies.remove(name);
        state.filesRemoved(one.sessionId);
        parts.done(one.kind, `the files of the deleted session ${one.sessionId} are removed`);
      } else if (one.kind === 'adopt_orphans') {
        const made = state.adoptOrphans();
        state.describe(await describedByFiles(made, parts.headerOf, parts.now));
        parts.done(one.kind, `${counted(made.length, 'session')} made anew from rows that had lost theirs`);
      } else if (changesStateDb(one)) parts.done(one.kind, repairRows(state, one));
      else await repairFile(parts, one);
    }
    return null;
  } finally {
    state.close();
  }
}

const isNoBackup = ({ kind }: Repair): boolean => kind !== 'use_backup';

const IN_USE = 'the state DB is in use by another process: stop that one, then try again.';
const CHANGED = 'the state DB was changed meanwhile: try again.';

async function repairFile({ copies, now, done }: RepairParts, one: Repair): Promise<void> {
  if (one.kind === 'remove_file') {
    await copies.remove(one.path);
    done(one.kind, `${one.path} is removed`);
  }
  if (one.kind === 'use_backup') {
    const sidecar = `sessions/${one.sessionId}.json`;
    const copy = await copies.take(`${sidecar}.bak`, `${one.sessionId}.json`);
    if (copy !== null) {
      await copies.replace(sidecar, copy);
      done(one.kind, `${sidecar} is what its .bak was`);
    }
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
