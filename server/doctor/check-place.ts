/** Where the home lies: versions, room on its disk, and who may read and write it. */
import { unreadableCode } from '../../db/files/home-files.ts';
import type { Check, Examination } from './examination.ts';
import { counted, type Finding, sizeText } from './finding.ts';

export const checkVersions: Check = async function* ({ view, version, nodeVersion }) {
  const parts = [`Turnkeep ${version}`, `Node.js ${nodeVersion}`];
  if (view) parts.push(`SQLite ${view.sqliteVersion}`);
  yield { severity: 'ok', area: 'versions', code: 'versions', message: parts.join(', '), remedy: null };
};

const LEAST_BYTES = 100_000_000;
const LEAST_SHARE = 0.01;

export const checkSpace: Check = async function* ({ files }) {
  const { free, total } = await files.space();
  const isLittle = free < LEAST_BYTES || free < total * LEAST_SHARE;
  yield {
    severity: isLittle ? 'warn' : 'ok',
    area: 'place',
    code: isLittle ? 'little_space' : 'space',
    message: `${sizeText(free)} of ${sizeText(total)} free`,
    remedy: isLittle ? 'make room on this disk: a prompt that cannot be stored is refused' : null,
  };
};

/** Readable by everybody, in a folder that everybody may enter. */
const [OTHERS_ENTER, OTHERS_READ, OTHERS_WRITE] = [0o001, 0o004, 0o002];
const SECRET = ['config.yaml', '.env', 'state.db', 'state.db-wal'];

export const checkPermissions: Check = async function* (examination) {
  const { files } = examination;
  const home = await files.entry('');
  if (!home) return;
  const found: Finding[] = [];
  if (!(await files.isWritable(''))) {
    found.push({
      severity: 'error',
      area: 'place',
      code: 'home_not_writable',
      message: 'this user may not write into the home',
      remedy: 'run as its owner, or give the folder to this user (chown)',
    });
  }
  // What stands in a folder that nobody else may enter is nobody else's, whatever its own mode says.
  if (home.mode & OTHERS_ENTER) {
    for (const name of SECRET) {
      const entry = await files.entry(name);
      if (!entry || !(entry.mode & (OTHERS_READ | OTHERS_WRITE))) continue;
      found.push({
        severity: 'warn',
        area: 'place',
        code: 'open_to_others',
        message: `${name} can be read by every user of this machine`,
        remedy: 'chmod 700 the home',
        path: name,
      });
    }
  }
  found.push(...(await filesOfOthers(examination, home.uid)));
  if (found.length) yield* found;
  else
    yield {
      severity: 'ok',
      area: 'place',
      code: 'permissions',
      message: 'owners and rights are as they should be',
      remedy: null,
    };
};

/** Files that the owner of the home cannot use, such as those that somebody made as another user. */
async function filesOfOthers({ files }: Examination, owner: number): Promise<Finding[]> {
  const found: Finding[] = [];
  let others = 0;
  let first = '';
  for (const folder of ['', 'sessions', 'sessions/_run_journal', 'attachments']) {
    try {
      for await (const entry of files.list(folder)) {
        if (entry.uid !== owner) {
          others += 1;
          first ||= entry.path;
        }
        const isFolder = entry.kind === 'folder';
        if (entry.uid === owner && !(await files.isReadable(entry.path))) {
          found.push(notReadable(entry.path));
        } else if ((isFolder || folder === '') && !isCopies(entry.path) && !(await files.isWritable(entry.path))) {
          found.push({
            severity: 'error',
            area: 'place',
            code: 'not_writable',
            message: `${entry.path} cannot be written`,
            remedy: 'give it to the owner of the home, and its owner the right to write (chown, chmod u+w)',
            path: entry.path,
          });
        }
      }
    } catch (error) {
      if (unreadableCode(error) === null) throw error;
      found.push(notReadable(folder));
    }
  }
  if (others) {
    found.push({
      severity: 'warn',
      area: 'place',
      code: 'other_owner',
      message: `${counted(others, 'file')} of another owner than the home's, the first is ${first}`,
      remedy: 'give them to the owner of the home (chown -R)',
      path: first,
    });
  }
  return found;
}

const isCopies = (path: string): boolean => path.startsWith('doctor-');

const notReadable = (path: string): Finding => ({
  severity: 'error',
  area: 'place',
  code: 'not_readable',
  message: `${path} cannot be read`,
  remedy: 'run as the owner of the home, or give the file to it (chown, chmod u+r)',
  path,
});
