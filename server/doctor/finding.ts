/** What the doctor finds: one thing each, for a person as a line and for a program as a code that stays. */

export type Severity = 'ok' | 'info' | 'warn' | 'error';

export type Area =
  | 'versions'
  | 'place'
  | 'config'
  | 'state-db'
  | 'rows'
  | 'processes'
  | 'sidecars'
  | 'journals'
  | 'attachments'
  | 'leftovers';

export interface Finding {
  severity: Severity;
  area: Area;
  /** Never changes its meaning; `ok` of an area in which all is well. */
  code: string;
  message: string;
  /** What helps; null where nothing needs to be done. */
  remedy: string | null;
  /** From the home on. */
  path?: string;
  session_id?: string;
  /** What `--repair` does about it; a finding without one is left to the server or to a person. */
  repair?: Repair;
}

/** A repair that is safe and certain. Each is made again from what stands when it is made. */
export type Repair =
  /** `anew`: into a new file whatever its indexes say. */
  | { kind: 'make_sound'; anew: boolean }
  | { kind: 'rebuild_search' }
  | { kind: 'adopt_orphans' }
  | { kind: 'clear_lost_projects' }
  | { kind: 'count_sessions' }
  | { kind: 'count_messages'; sessionId: string; count: number }
  | { kind: 'clear_flags'; sessionId: string }
  | { kind: 'delete_lease'; sessionId: string; leaseId: string }
  | { kind: 'finish_deletion'; sessionId: string }
  | { kind: 'use_backup'; sessionId: string }
  | { kind: 'remove_file'; path: string }
  | { kind: 'move_aside'; path: string };

/** Repairs that change the state DB. */
const IN_STATE_DB: ReadonlySet<Repair['kind']> = new Set([
  'make_sound',
  'rebuild_search',
  'adopt_orphans',
  'clear_lost_projects',
  'count_sessions',
  'count_messages',
  'clear_flags',
  'delete_lease',
  'finish_deletion',
]);

export const changesStateDb = (repair: Repair): boolean => IN_STATE_DB.has(repair.kind);

/** Whether somebody should do something about it: this decides the exit code. */
export const isProblem = ({ severity }: Finding): boolean => severity === 'warn' || severity === 'error';

export const REPAIR = 'turnkeep doctor --repair';

/** A number of bytes as people say it. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = bytes / 1000;
  let unit = 0;
  for (; value >= 999.5 && unit < units.length - 1; unit += 1) value /= 1000;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** A count with its word: `1 row`, `2 rows`. */
export const counted = (count: number, word: string): string => `${count} ${count === 1 ? word : `${word}s`}`;
