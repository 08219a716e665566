/** Sidecars: each is read, and held against the sessions that there are; then sessions whose sidecar is missing. */
import type { HomeEntry } from '../../db/files/home-files.ts';
import { isSessionId } from '../core/ids.ts';
import { type Check, type Examination, inGroups, pages } from './examination.ts';
import { counted, type Finding, REPAIR } from './finding.ts';

const ENDING = '.json';

/** The session whose sidecar has this name; null for any other name. */
export function sessionOfSidecar(name: string): string | null {
  const id = name.endsWith(ENDING) ? name.slice(0, -ENDING.length) : '';
  return isSessionId(id) ? id : null;
}

/** A copy that another program left of a sidecar before it saved fewer rows. */
function backupOf({ name, path }: HomeEntry): { id: string; path: string }[] {
  const id = name.endsWith('.bak') ? sessionOfSidecar(name.slice(0, -'.bak'.length)) : null;
  return id === null ? [] : [{ id, path }];
}

type Told = Pick<Finding, 'severity' | 'code' | 'message' | 'remedy'> & Partial<Finding>;

export const checkSidecars: Check = async function* (examination) {
  const { files, view, progress } = examination;
  let read = 0;
  let problems = 0;
  for await (const group of inGroups(files.list('sessions'))) {
    const sidecars = group.flatMap((entry) => {
      const id = sessionOfSidecar(entry.name);
      return id === null ? [] : [{ id, entry }];
    });
    const known = view?.known(sidecars.map(({ id }) => id)) ?? null;
    for (const { id, entry } of sidecars) {
      read += 1;
      const about = known ? (known.get(id) ?? 'unknown') : null;
      const told = await judge(examination, id, entry, about);
      if (!told) continue;
      problems += 1;
      yield { area: 'sidecars', path: entry.path, session_id: id, ...told };
    }
    for (const { id, path } of group.flatMap(backupOf)) {
      if (view?.known([id]).get(id) !== 'session') continue;
      const more = await files.moreInBackup(id);
      if (more === 0) continue;
      problems += 1;
      yield {
        severity: 'warn',
        area: 'sidecars',
        code: 'backup_has_more',
        message: `${path} has ${counted(more, 'row')} that another program took out of the file beside it`,
        remedy: `${REPAIR} puts it in the place of that file: what only the state DB has is added by the next read`,
        path,
        session_id: id,
        repair: { kind: 'use_backup', sessionId: id },
      };
    }
    progress(`sidecars: ${read}`);
  }
  if (problems === 0) {
    const message = `${counted(read, 'sidecar')} read, all well`;
    yield { severity: 'ok', area: 'sidecars', code: 'sidecars', message, remedy: null };
  }
  let lacking = 0;
  let first = '';
  for (const { id, generation, hasRunning, shown } of view ? pages(view.sessions) : []) {
    if (generation === 0 || hasRunning || shown === 0 || (await files.entry(`sessions/${id}${ENDING}`))) continue;
    lacking += 1;
    first ||= id;
  }
  if (lacking === 0) return;
  yield {
    severity: 'info',
    area: 'sidecars',
    code: 'sidecars_missing',
    message: `${counted(lacking, 'session')} without a sidecar, the first is ${first}`,
    remedy: 'nothing: the next read of a session writes it',
    session_id: first,
  };
};

async function judge(
  { files }: Examination,
  id: string,
  entry: HomeEntry,
  about: 'session' | 'deleted' | 'unknown' | null,
): Promise<Told | null> {
  if (about === 'deleted') return null; // Told with the deletions.
  const look = await files.sidecar(id);
  switch (look.kind) {
    case 'missing':
      return null; // It went away meanwhile.
    case 'unreadable':
      return {
        severity: 'error',
        code: 'sidecar_unreadable',
        message: `${entry.path} cannot be read (${look.code})`,
        remedy: 'see that the disk works, and give the file to the owner of the home: a server moves it aside',
      };
    case 'damaged':
      if (about !== 'session') {
        return {
          severity: 'warn',
          code: 'sidecar_damaged',
          message: `${entry.path} is damaged: ${look.reason}`,
          remedy: 'restore it from a backup, or take it out of the home: no session needs it',
        };
      }
      return {
        severity: 'error',
        code: 'sidecar_damaged',
        message: `${entry.path} is damaged: ${look.reason}`,
        remedy: `${REPAIR} moves it aside, and the next read writes it anew from the state DB`,
        repair: { kind: 'move_aside', path: entry.path },
      };
    case 'sound':
      if (about === 'unknown') {
        return {
          severity: 'info',
          code: 'sidecar_without_session',
          message: `${entry.path} is of a session that the state DB does not have`,
          remedy: 'nothing: a server that starts lists it again',
        };
      }
      if (look.damage !== null) {
        return {
          severity: 'warn',
          code: 'sidecar_damaged',
          message: `${entry.path} is damaged in places: ${look.damage}`,
          remedy: 'nothing: the next read keeps a copy of it, and all messages that it has',
        };
      }
      if (look.repeatedIds.length === 0) return null;
      return {
        severity: 'warn',
        code: 'sidecar_repeats',
        message: `${entry.path} has ${counted(look.repeatedIds.length, 'message id')} more than once`,
        remedy: 'nothing is lost by it; keep a copy of the home and report it',
      };
  }
}

/** Deleted sessions whose files are there, and deletions that were never finished. */
export const checkDeletions: Check = async function* ({ files, view }) {
  if (!view) return;
  for (const { id, filesRemoved } of pages(view.tombstones)) {
    const left = [];
    for (const name of filesOfSession(id)) if (await files.entry(name)) left.push(name);
    if (left.length === 0 && filesRemoved) continue;
    yield {
      severity: 'warn',
      area: 'sidecars',
      code: 'deletion_unfinished',
      message: left.length
        ? `${id} was deleted and has ${left.join(' and ')} left`
        : `${id} was deleted and is not noted as removed`,
      remedy: filesRemoved ? `${REPAIR} removes them, and keeps a copy` : `start the server, or ${REPAIR}`,
      ...(left[0] === undefined ? {} : { path: left[0] }),
      session_id: id,
      repair: { kind: 'finish_deletion', sessionId: id },
    };
  }
};

/** Everything that a session may have outside the state DB. */
export const filesOfSession = (id: string): string[] => [
  `sessions/${id}${ENDING}`,
  `sessions/_run_journal/${id}`,
  `attachments/${id}`,
];
