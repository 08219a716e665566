/** What killed processes, recoveries and repairs left beside the files that are used; and attachments of nobody. */
import type { HomeEntry } from '../../db/files/home-files.ts';
import { isSessionId } from '../core/ids.ts';
import { type Check, inGroups } from './examination.ts';
import { counted, type Finding, REPAIR, sizeText } from './finding.ts';

/** Names that `db/files` gives: temporary files of a save, and what was put aside. */
const TEMPORARY = /\.tmp\.\d+\.\d+$/;
const UNFINISHED = /\.unfinished\.\d+(-\d+)?$/;
const ASIDE = /\.(damaged|torn)-\d+(-\d+)?$/;
/** Copies that a migration or an earlier repair kept. */
const COPY = /^(doctor-\d{8}T\d{6}Z(-\d+)?|state\.db\.before-schema-.+)$/;

/** Seconds after which nobody is still writing it. */
const STALE_S = 3600;

/** What stands beside the files of a session under their names. */
const OF_SESSION = /^(?<id>[^/.]+)(\.json)?\.(damaged-|torn-|tmp\.|bak$)/;

export const checkLeftovers: Check = async function* ({ files, now, view }) {
  let problems = 0;
  const isOfDeleted = ({ name, path }: HomeEntry): boolean => {
    const { id = '' } = OF_SESSION.exec(name)?.groups ?? {};
    return path.startsWith('sessions/') && isSessionId(id) && view?.known([id]).get(id) === 'deleted';
  };
  const journals = async function* (): AsyncGenerator<HomeEntry> {
    for await (const folder of files.list('sessions/_run_journal')) {
      if (folder.kind === 'folder') yield* files.list(folder.path);
    }
  };
  for (const entries of [
    files.list(''),
    files.list('backups'),
    files.list('sessions'),
    files.list('sessions/_run_journal'),
    journals(),
  ]) {
    for await (const entry of entries) {
      const found = isOfDeleted(entry) ? ofDeleted(entry) : judge(entry, now);
      if (!found) continue;
      problems += 1;
      yield { area: 'leftovers', path: entry.path, ...found };
    }
  }
  if (problems) return;
  yield { severity: 'ok', area: 'leftovers', code: 'leftovers', message: 'nothing is left over', remedy: null };
};

/** A deletion takes everything that was said with it. */
const ofDeleted = ({ path }: HomeEntry): Omit<Finding, 'area'> => ({
  severity: 'warn',
  code: 'left_of_deleted',
  message: `${path} is of a session that was deleted`,
  remedy: `${REPAIR} removes it, and keeps a copy`,
  repair: { kind: 'remove_file', path },
});

function judge({ path, name, kind, size, changedAt }: HomeEntry, now: number): Omit<Finding, 'area'> | null {
  const bytes = kind === 'folder' ? 'a folder' : sizeText(size);
  if (TEMPORARY.test(name) && kind === 'file' && now - changedAt > STALE_S) {
    return {
      severity: 'warn',
      code: 'stale_temporary',
      message: `${path} was left by a save that never ended (${bytes})`,
      remedy: `${REPAIR} removes it, and keeps a copy`,
      repair: { kind: 'remove_file', path },
    };
  }
  if (UNFINISHED.test(name) && now - changedAt > STALE_S) {
    return {
      severity: 'warn',
      code: 'unfinished_backup',
      message: `${path} was left by a backup that never ended`,
      remedy: 'remove it: it may hold everything of this home, and nothing needs it',
    };
  }
  if (ASIDE.test(name)) {
    return {
      severity: 'info',
      code: 'put_aside',
      message: `${path} was put aside as damaged (${bytes})`,
      remedy: 'remove it when you have all that you need',
    };
  }
  if (COPY.test(path)) {
    return {
      severity: 'info',
      code: 'copy_kept',
      message: `${path} is a copy from before a change (${bytes})`,
      remedy: 'remove it when you have all that you need',
    };
  }
  return null;
}

/** An upload writes under a name that begins with a dot, which no attachment has. */
const isUnfinishedUpload = ({ name, kind, changedAt }: HomeEntry, now: number): boolean =>
  kind === 'file' && name.startsWith('.') && TEMPORARY.test(name) && now - changedAt > STALE_S;

/** Attachments stand in a folder of their session. */
export const checkAttachments: Check = async function* ({ files, now, view }) {
  let known = 0;
  let problems = 0;
  const left = async function* (folder: string): AsyncGenerator<HomeEntry> {
    for await (const entry of files.list(folder)) if (isUnfinishedUpload(entry, now)) yield entry;
  };
  for await (const group of inGroups(files.list('attachments'))) {
    const sessions = view?.known(group.map(({ name }) => name));
    for (const { name, path, kind } of group) {
      known += 1;
      for await (const entry of kind === 'folder' ? left(path) : []) {
        problems += 1;
        yield {
          severity: 'warn',
          area: 'attachments',
          code: 'stale_temporary',
          message: `${entry.path} was left by an upload that never ended (${sizeText(entry.size)})`,
          remedy: `start the server, or ${REPAIR}`,
          path: entry.path,
          repair: { kind: 'remove_file', path: entry.path },
        };
      }
      const about = isSessionId(name) ? (sessions?.get(name) ?? 'unknown') : 'unknown';
      if (!sessions || about === 'session') continue;
      problems += 1;
      yield {
        severity: 'info',
        area: 'attachments',
        code: 'attachment_without_session',
        message: `${path} is of no session`,
        remedy: 'take it out of the home if nobody needs it',
        path,
        ...(isSessionId(name) ? { session_id: name } : {}),
      };
    }
  }
  if (problems) return;
  const message = `${counted(known, 'folder')} of attachments, each of a session`;
  yield { severity: 'ok', area: 'attachments', code: 'attachments', message, remedy: null };
};
