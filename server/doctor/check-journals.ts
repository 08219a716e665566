/**
 * Journals: each is read to its end, and held against the run that the state DB knows. One of a run that has ended is moved
 * aside when it is damaged, for both other stores have what it says; every other one is evidence, and left alone.
 */
import type { RunFound } from '../../db/doctor-view.ts';
import type { JournalLook } from '../../db/files/home-files.ts';
import { isRunId, isSessionId } from '../core/ids.ts';
import { type Check, inGroups } from './examination.ts';
import { counted, type Finding, REPAIR, sizeText } from './finding.ts';

const FOLDER = 'sessions/_run_journal';
const ENDING = '.jsonl';

type Told = Pick<Finding, 'severity' | 'code' | 'message' | 'remedy' | 'repair'>;

export const checkJournals: Check = async function* ({ files, view, now, journalKeepS, progress }) {
  let read = 0;
  let problems = 0;
  let old = 0;
  for await (const group of inGroups(files.list(FOLDER))) {
    const folders = group.filter(({ kind, name }) => kind === 'folder' && isSessionId(name));
    const known = view?.known(folders.map(({ name }) => name));
    for (const folder of folders) {
      const about = known ? (known.get(folder.name) ?? 'unknown') : null;
      if (about === 'deleted') continue; // Told with the deletions.
      if (about === 'unknown') {
        problems += 1;
        yield {
          severity: 'info',
          area: 'journals',
          code: 'journals_without_session',
          message: `${folder.path} is of a session that the state DB does not have`,
          remedy: 'it is left as it is: take it out of the home if nobody needs it',
          path: folder.path,
          session_id: folder.name,
        };
      }
      for await (const entries of inGroups(files.list(folder.path))) {
        const journals = entries.flatMap((entry) => {
          const runId = entry.name.endsWith(ENDING) ? entry.name.slice(0, -ENDING.length) : '';
          return isRunId(runId) ? [{ runId, path: entry.path }] : [];
        });
        const runs = view?.runs(journals.map(({ runId }) => runId)) ?? null;
        for (const { runId, path } of journals) {
          read += 1;
          const run = runs?.get(runId) ?? null;
          if (run && isOld(run, now - journalKeepS)) old += 1;
          // It is being written right now, or its dead turn is told elsewhere and sealed by the server.
          if (run?.status === 'started') continue;
          const told = judge(await files.journal(folder.name, runId), path, folder.name);
          if (!told) continue;
          problems += 1;
          const isSafe = run?.status === 'terminal' && told.severity !== 'info' && told.code !== 'journal_unreadable';
          yield { area: 'journals', path, session_id: folder.name, ...told, ...(isSafe ? aside(path) : {}) };
        }
      }
      progress(`journals: ${read}`);
    }
  }
  if (old) {
    yield {
      severity: 'info',
      area: 'journals',
      code: 'journals_past_time',
      message: `${counted(old, 'journal')} kept past journal.keep_h`,
      remedy: 'nothing: a server removes them when it starts and every hour',
    };
  }
  if (problems) return;
  yield {
    severity: 'ok',
    area: 'journals',
    code: 'journals',
    message: `${counted(read, 'journal')} read, all well`,
    remedy: null,
  };
};

const isOld = ({ status, endedAt, journalPruned }: RunFound, before: number): boolean =>
  status === 'terminal' && (journalPruned || (endedAt !== null && endedAt < before));

/** What a repair does about the damaged journal of a run that has ended. */
const aside = (path: string): Pick<Finding, 'remedy' | 'repair'> => ({
  remedy: `${REPAIR} moves it aside: the conversation is kept in the other two stores`,
  repair: { kind: 'move_aside', path },
});

const KEPT = 'nothing: what stands before it is used, and the conversation is kept in the other two stores';

function judge(look: JournalLook, path: string, sessionId: string): Told | null {
  switch (look.kind) {
    case 'missing':
    case 'foreign':
      return null; // Removed meanwhile; or of another program, whose lines are read one by one.
    case 'unreadable':
      if (look.code === 'EISDIR') {
        const message = `${path} is a folder`;
        return { severity: 'warn', code: 'journal_damaged', message, remedy: 'take it out of the home' };
      }
      return {
        severity: 'error',
        code: 'journal_unreadable',
        message: `${path} cannot be read (${look.code})`,
        remedy: 'see that the disk works and that the file belongs to the owner of the home',
      };
    case 'empty':
      return { severity: 'info', code: 'journal_empty', message: `${path} is empty`, remedy: KEPT };
    case 'ours':
      if (look.sessions.some((id) => id !== sessionId)) {
        return {
          severity: 'warn',
          code: 'journal_of_another',
          message: `${path} holds events of ${look.sessions.join(', ')}`,
          remedy: 'put it back into the folder of its session, or take it out of the home',
        };
      }
      if (look.rest === 'none') return null;
      return look.rest === 'torn'
        ? {
            severity: 'info',
            code: 'journal_torn',
            message: `${path} ends in the middle of a line (${sizeText(look.restBytes)} behind ${counted(look.events, 'event')})`,
            remedy: KEPT,
          }
        : {
            severity: 'warn',
            code: 'journal_damaged',
            message: `${path} is broken behind ${counted(look.events, 'event')} (${sizeText(look.restBytes)})`,
            remedy: 'see that the disk works; the conversation is kept in the other two stores',
          };
  }
}
