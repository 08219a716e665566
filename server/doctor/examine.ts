/** The whole examination: opens the state DB to look at it, and makes every check in turn. */
import { openStateView, type StateOpening } from '../../db/doctor-open.ts';
import type { KnownSchema } from '../../db/doctor-schema.ts';
import { isDamage } from '../../db/doctor-view.ts';
import type { HomeFiles } from '../../db/files/home-files.ts';
import { checkJournals } from './check-journals.ts';
import { checkAttachments, checkLeftovers } from './check-leftovers.ts';
import { checkPermissions, checkSpace, checkVersions } from './check-place.ts';
import { checkProcesses, servingProcesses } from './check-processes.ts';
import { checkDeletions, checkSidecars } from './check-sidecars.ts';
import { checkRows, checkStateDb } from './check-state-db.ts';
import type { Check, Examination } from './examination.ts';
import { type Finding, REPAIR } from './finding.ts';

export type ExaminationParts = Omit<Examination, 'view'> & { stateDb: string; known: KnownSchema };

/** Why a home cannot be examined at all, as a sentence; or what was found. */
export type Outcome =
  | { kind: 'refused'; sentence: string }
  | { kind: 'examined'; findings: Finding[]; serving: number[]; canBeAsked: boolean };

const CHECKS: readonly [Finding['area'], Check][] = [
  ['versions', checkVersions],
  ['place', checkSpace],
  ['place', checkPermissions],
  ['state-db', checkStateDb],
  ['rows', checkRows],
  ['processes', checkProcesses],
  ['sidecars', checkSidecars],
  ['sidecars', checkDeletions],
  ['journals', checkJournals],
  ['attachments', checkAttachments],
  ['leftovers', checkLeftovers],
];

/** @param found receives each finding when it is found; a long examination is told as it goes */
export async function examine(parts: ExaminationParts, found: (finding: Finding) => void = () => {}): Promise<Outcome> {
  const { files, stateDb, known, ...rest } = parts;
  const sentence = await refusal(files, stateDb);
  if (sentence !== null) return { kind: 'refused', sentence };
  const opening = openStateView(stateDb, await files.stateDb(), known);
  const view = opening.kind === 'open' ? opening.view : null;
  const refused = refusalOf(opening, stateDb, known);
  if (refused !== null) {
    view?.close();
    return { kind: 'refused', sentence: refused };
  }
  const findings: Finding[] = [];
  const tell = (finding: Finding): void => {
    findings.push(finding);
    found(finding);
  };
  try {
    const trouble = troubleOf(opening);
    if (trouble) tell(trouble);
    const serving = view ? readable(() => servingProcesses(view, parts.isAlive), []) : [];
    for (const [area, check] of CHECKS) await runCheck(area, check, { ...rest, files, view }, tell);
    return { kind: 'examined', findings, serving, canBeAsked: view !== null };
  } finally {
    view?.close();
  }
}

/** A damaged page ends the check that needs it, and no other. */
async function runCheck(
  area: Finding['area'],
  check: Check,
  examination: Examination,
  tell: (finding: Finding) => void,
): Promise<void> {
  try {
    for await (const finding of check(examination)) tell(finding);
  } catch (error) {
    if (!isDamage(error)) throw error;
    tell({
      severity: 'error',
      area,
      code: 'not_examined',
      message: 'the state DB is too damaged to say more',
      remedy: `${REPAIR} saves what can be read`,
      repair: { kind: 'make_sound', anew: false },
    });
  }
}

/** What can be read; the damage itself is told by the checks. */
function readable<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if (!isDamage(error)) throw error;
    return otherwise;
  }
}

async function refusal(files: HomeFiles, stateDb: string): Promise<string | null> {
  const home = await files.entry('');
  const folder = stateDb.slice(0, -'/state.db'.length);
  if (!home) return `there is no home ${folder}: name another one (--home DIR).`;
  if (home.kind !== 'folder') return `the home ${folder} is no folder: name another one (--home DIR).`;
  if (!(await files.isReadable(''))) return `the home ${folder} cannot be read by this user: run as its owner.`;
  const isHome = (await files.entry('state.db')) !== null || (await files.entry('sessions')) !== null;
  return isHome ? null : `${folder} holds nothing of Turnkeep: name another home (--home DIR).`;
}

function refusalOf(opening: StateOpening, stateDb: string, known: KnownSchema): string | null {
  if (opening.kind === 'foreign') return `${stateDb} belongs to another program: nothing of it was read further.`;
  if (opening.kind === 'busy') return `${stateDb} is locked by another program: end that one, then try again.`;
  if (opening.kind !== 'open') return null;
  const { view } = opening;
  const version = readable(() => view.schema().version, 0);
  if (version <= known.version) return null;
  return `${stateDb} was written by a newer Turnkeep (schema ${version}, this one knows ${known.version}): use that one.`;
}

/** What is wrong with a state DB that cannot be asked. */
function troubleOf(opening: StateOpening): Finding | null {
  switch (opening.kind) {
    case 'missing':
      return {
        severity: 'error',
        area: 'state-db',
        code: 'missing',
        message: 'there is no state.db, and so no session, whatever files there are',
        remedy: 'restore it from a backup; or start the server: it makes one, and lists every session that has a file',
        path: 'state.db',
      };
    case 'needs_writer':
      return {
        severity: 'error',
        area: 'state-db',
        code: 'needs_writer',
        message: `state.db was left half written, or its folder cannot be written (${opening.code})`,
        remedy: 'start the server once as the owner of the home: only a writer can finish it',
        path: 'state.db',
      };
    case 'damaged':
      return {
        severity: 'error',
        area: 'state-db',
        code: 'no_database',
        message: `state.db is no database (${opening.code})`,
        remedy: `restore it from a backup; or ${REPAIR}, or a start of the server, makes a new one of what is left`,
        path: 'state.db',
        repair: { kind: 'make_sound', anew: true },
      };
    default:
      return null;
  }
}
