/**
 * The points of a prompt's way, and of an edit's, at which a test kills the process, in the order of the write order:
 * each name says what is durable when it is reached. In production nothing happens here.
 */
export type CrashPoint =
  | 'admitted'
  | 'claimed'
  | 'pending-saved'
  | 'journal-opened'
  | 'mid-stream'
  | 'row-committed'
  | 'steer-absorbed'
  | 'journal-sealed'
  | 'settled'
  | 'sidecar-saved'
  | 'compacting'
  | 'summarised'
  | 'summary-saved'
  | 'edited'
  | 'edit-saved';

export type ReachCrashPoint = (point: CrashPoint) => void;
