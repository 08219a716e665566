/** The state DB as a file: that it can be opened, its schema, its pages and indexes, and what must agree within it. */
import { isDamage } from '../../db/doctor-view.ts';
import { type Check, pages } from './examination.ts';
import { counted, type Finding, REPAIR } from './finding.ts';

type Told = Pick<Finding, 'severity' | 'code' | 'message' | 'remedy'> & Partial<Finding>;
const inStateDb = (told: Told): Finding => ({ area: 'state-db', ...told });
const inRows = (told: Told): Finding => ({ area: 'rows', ...told });

/** Where the file stands open, all of it is asked; a page that cannot be read ends the questions that need it. */
export const checkStateDb: Check = async function* ({ view, progress }) {
  if (!view) return;
  progress('integrity of the state DB');
  const { version, newest, missing } = view.schema();
  if (version < newest) {
    yield inStateDb({
      severity: 'info',
      code: 'schema_older',
      message: `the schema is ${version}, this program knows ${newest}`,
      remedy: 'it is brought up to date, after a copy, when the server starts',
    });
  } else if (missing.length) {
    yield inStateDb({
      severity: 'error',
      code: 'schema_incomplete',
      message: `the schema lacks ${missing.join(', ')}`,
      remedy: `${REPAIR} puts its rows into a new database`,
      repair: { kind: 'make_sound', anew: true },
    });
    return;
  }
  const complaints = integrityOf(() => view.integrity());
  if (complaints.length) {
    yield inStateDb({
      severity: 'error',
      code: 'not_sound',
      message: `the integrity check fails: ${complaints[0]}${complaints.length > 1 ? ` (and ${complaints.length - 1} more)` : ''}`,
      remedy: `${REPAIR} builds its indexes anew or saves its rows into a new database`,
      repair: { kind: 'make_sound', anew: false },
    });
    return;
  }
  yield inStateDb({
    severity: 'ok',
    code: 'sound',
    message: `schema ${version} of ${newest}, every page and index checked`,
    remedy: null,
  });
  const search = view.searchIndex();
  if (search === 'same' || search === null) return;
  yield inStateDb({
    severity: 'warn',
    code: 'search_stale',
    message: 'the search index does not say what the messages say',
    remedy: `${REPAIR} builds it anew`,
    repair: { kind: 'rebuild_search' },
  });
};

function integrityOf(check: () => string[]): string[] {
  try {
    return check();
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [(error as Error).message];
  }
}

/** Rows that lack what they belong to, and numbers that are kept beside them. */
export const checkRows: Check = async function* ({ view, files, progress }) {
  if (!view) return;
  let problems = 0;
  let sessions = 0;
  const told = (finding: Told): Finding => {
    problems += 1;
    return inRows(finding);
  };
  for (const [what, word, orphans] of [
    ['orphan_messages', 'message', view.orphanMessages()],
    ['orphan_admissions', 'prompt', view.orphanAdmissions()],
  ] as const) {
    for (const { sessionId, rows } of orphans) {
      yield told({
        severity: 'error',
        code: what,
        message: `${counted(rows, word)} of ${sessionId}, which is no session`,
        remedy: `${REPAIR} makes the session anew, or deletes the rest of one that was deleted`,
        session_id: sessionId,
        repair: { kind: 'adopt_orphans' },
      });
    }
  }
  for (const { table, parent, rows } of view.brokenReferences()) {
    const isProject = table === 'sessions' && parent === 'projects';
    yield told({
      severity: 'error',
      code: 'broken_reference',
      message: `${counted(rows, 'row')} of ${table} without their row of ${parent}`,
      remedy: isProject
        ? `${REPAIR} takes these sessions out of the project that is lost`
        : 'keep a copy of the home and report it',
      ...(isProject ? { repair: { kind: 'clear_lost_projects' } as const } : {}),
    });
  }
  for (const { table, column, rows } of view.unreadableJson()) {
    if (table === 'sessions') continue; // Told for each session below.
    yield told({
      severity: 'error',
      code: 'unreadable_json',
      message: `${counted(rows, 'row')} of ${table} with a broken ${column}`,
      remedy: 'restore the state DB from a backup of before, or keep a copy of the home and report it',
    });
  }
  if (view.wrongSessionCounts() > 0) {
    yield told({
      severity: 'warn',
      code: 'session_counts_off',
      message: 'the kept number of sessions is not how many there are',
      remedy: `${REPAIR} counts them`,
      repair: { kind: 'count_sessions' },
    });
  }
  for (const session of pages(view.sessions)) {
    const { id, messageCount, shown } = session;
    sessions += 1;
    if (sessions % 500 === 0) progress(`sessions: ${sessions}`);
    if (!session.flagsAreJson) {
      yield told({
        severity: 'error',
        code: 'unreadable_flags',
        message: `the flags of ${id} cannot be read, and with them the list of sessions`,
        remedy: `${REPAIR} empties them`,
        session_id: id,
        repair: { kind: 'clear_flags', sessionId: id },
      });
    }
    // A running turn is counted when it settles.
    if (session.hasRunning || messageCount === shown) continue;
    const sidecar = await files.sidecar(id);
    // Rows that only the sidecar has are counted too, and brought into the state DB by the next read.
    if (sidecar.kind === 'sound' && sidecar.rows === messageCount) continue;
    const isCertain = sidecar.kind !== 'sound' || sidecar.rows === shown;
    yield told({
      severity: 'warn',
      code: 'message_count_off',
      message: `${id} counts ${messageCount} of its ${counted(shown, 'message')}`,
      remedy: isCertain ? `${REPAIR} counts them` : 'open the session: reading it counts them',
      session_id: id,
      ...(isCertain ? { repair: { kind: 'count_messages', sessionId: id, count: shown } as const } : {}),
    });
  }
  if (problems) return;
  const message = `${counted(sessions, 'session')}, none lacks what belongs to it`;
  yield inRows({ severity: 'ok', code: 'rows', message, remedy: null });
};
