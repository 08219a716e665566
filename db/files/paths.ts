/** The one place where an id becomes a path (SE1). Everything in the home is addressed through here. */
import path from 'node:path';
import { isAttachmentId } from '../../server/core/attachment-names.ts';
import { isRunId, isSessionId } from '../../server/core/ids.ts';

export interface Paths {
  home: string;
  /** The configuration, which a person writes. */
  config: string;
  stateDb: string;
  sessions: string;
  /** Those of the home, each behind the one that it is in. */
  folders: readonly string[];
  sidecar(sessionId: string): string;
  /** Folder of the files that a session was given. */
  attachments(sessionId: string): string;
  /** One of them. @param name of the file, which is made safe */
  attachment(sessionId: string, name: string): string;
  journals(sessionId: string): string;
  journal(sessionId: string, runId: string): string;
  /** Folder of the notes of commands that run. */
  commands: string;
  command(mark: string): string;
  /** Folder of a session that has no workspace, for an agent that must work in one. */
  agentFolder(sessionId: string): string;
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
  const commands = path.join(home, 'commands');
  const journals = (id: string) => path.join(sessions, '_run_journal', session(id));
  const attachments = (id: string) => path.join(home, 'attachments', session(id));
  return {
    home,
    config: path.join(home, 'config.yaml'),
    stateDb: path.join(home, 'state.db'),
    sessions,
    folders: [sessions, path.join(sessions, '_run_journal'), path.join(home, 'attachments'), commands],
    sidecar: (id) => path.join(sessions, `${session(id)}.json`),
    attachments,
    attachment: (id, name) => path.join(attachments(id), checked(isAttachmentId(name), name)),
    journals,
    journal: (id, run) => path.join(journals(id), `${checked(isRunId(run), run)}.jsonl`),
    commands,
    command: (mark) => path.join(commands, `${checked(isRunId(mark), mark)}.json`),
    agentFolder: (id) => path.join(home, 'agent-folders', session(id)),
  };
}
