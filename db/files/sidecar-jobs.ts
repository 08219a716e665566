/**
 * The work on a long transcript that no thread with readers should do: reading and parsing its file, merging it with rows
 * of other programs. A worker thread does it (`sidecar-worker`), or whoever has none.
 */
import { closeSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import { type Merged, type MergeRules, mergeRows } from './sidecar-merge.ts';
import { type ParsedSidecar, parseSidecar } from './sidecar-text.ts';

/** What tells one state of a file from another without reading it. */
export type FileIdentity = string;

export const identityOf = (stats: Stats): FileIdentity =>
  `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;

/** A file to be read, in the state that somebody saw. */
export interface SidecarFile {
  sessionId: string;
  file: string;
}

export type ReadJob =
  | { kind: 'found'; sidecar: ParsedSidecar; identity: FileIdentity }
  | { kind: 'damaged'; reason: string };

/** Where the rows of the file come from: given with their values, or as the places of rows in a file that was read. */
export type MergeSource =
  | { kind: 'rows'; rows: RawRow[] }
  | (SidecarFile & { kind: 'file'; identity: FileIdentity; kept: Uint32Array | null });

/** What a thread is told: a file to read; or what to merge, piece by piece. It answers `read` and `go`. */
export type ToThread =
  | { kind: 'read'; file: SidecarFile }
  | { kind: 'merge'; source: MergeSource }
  | { kind: 'state'; rows: RawRow[] }
  | { kind: 'go'; rules: MergeRules };

interface Known {
  file: string;
  identity: FileIdentity;
  rows: readonly RawRow[];
}

/** Reads a file, and what its rows say. @throws the system's error */
function load({ sessionId, file }: SidecarFile): { job: ReadJob; known: Known | null } {
  const handle = openSync(file, 'r');
  try {
    // Identity and content of the same file, whatever is renamed over it meanwhile.
    const identity = identityOf(fstatSync(handle));
    let rows: readonly RawRow[] = [];
    const sidecar = parseSidecar(sessionId, readFileSync(handle), (raws) => {
      rows = raws;
    });
    if (typeof sidecar === 'string') return { job: { kind: 'damaged', reason: sidecar }, known: null };
    return { job: { kind: 'found', sidecar, identity }, known: { file, identity, rows } };
  } finally {
    closeSync(handle);
  }
}

export interface SidecarJobs {
  /** @throws the system's error */
  read(file: SidecarFile): ReadJob;
  /** Null when the file has changed since it was read. @throws the system's error */
  merge(source: MergeSource, state: readonly RawRow[], rules: MergeRules): Merged | null;
}

/** Does jobs, one after the other. */
export function createSidecarJobs(): SidecarJobs {
  /** Rows of another program that were read: mostly they are merged next. */
  let last: Known | null = null;

  function rowsOf(source: MergeSource): readonly RawRow[] | null {
    if (source.kind === 'rows') return source.rows;
    const { file, identity, kept } = source;
    const known = last?.file === file && last.identity === identity ? last : load(source).known;
    if (known?.identity !== identity) return null;
    return kept ? Array.from(kept, (at) => known.rows[at]!) : known.rows;
  }

  return {
    read(file) {
      last = null;
      const { job, known } = load(file);
      if (job.kind === 'found' && job.sidecar.rows.plain.includes(0)) last = known;
      return job;
    },

    merge(source, state, rules) {
      const rows = rowsOf(source);
      last = null;
      return rows && mergeRows(rows, state, rules);
    },
  };
}
