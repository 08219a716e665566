/** The one place where an id becomes a path (SE1). Everything in the home is addressed through here. */
import path from 'node:path';
import { isRunId, isSessionId } from '../../server/core/ids.ts';

export interface Paths {
  home: string;
  stateDb: string;
  sessions: string;
  /** Those of the home, each behind the one that it is in. */
  folders: readonly string[];
  sidecar(sessionId: string): string;
  /** Folder of the files that a session was given. */
  attachments(sessionId: string): string;
  journals(sessionId: string): string;
  journal(sessionId: string, runId: string): string;
}

/**
 * @param home absolute path of the home folder
 * @param sessions its folder of sidecars, where that has another name
 */
export function createPaths(home: string, sessions = path.join(home, 'sessions')): Paths {
  const checked = (ok: boolean, id: string): string => {
    // Routes refuse such ids long before; a path must not be made of one all the same.
    if (!ok) throw new Error(`not an id: ${JSON.stringify(id)}`);
    return id;
  };
  const session = (id: string) => checked(isSessionId(id), id);
  const journals = (id: string) => path.join(sessions, '_run_journal', session(id));
  return {
    home,
    stateDb: path.join(home, 'state.db'),
    sessions,
    folders: [sessions, path.join(sessions, '_run_journal'), path.join(home, 'attachments')],
    sidecar: (id) => path.join(sessions, `${session(id)}.json`),
    attachments: (id) => path.join(home, 'attachments', session(id)),
    journals,
    journal: (id, run) => path.join(journals(id), `${checked(isRunId(run), run)}.jsonl`),
  };
}
