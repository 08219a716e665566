/**
 * The work on a long transcript that no thread with readers should do: reading and parsing its file, merging it with rows
 * of other programs. A worker thread does it (`sidecar-worker`), or whoever has none.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
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
  | { kind: 'damaged'; reason: string; identity: FileIdentity };

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

/** Opens a file and gives its bytes to `use`, with the identity of the very file that they are of. */
function withFile<Made>(file: string, use: (bytes: Buffer, identity: FileIdentity) => Made): Made {
  const handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    // Identity first: what is written meanwhile is another state, and is read again.
    const identity = identityOf(fstatSync(handle));
    return use(readFileSync(handle), identity);
  } finally {
    closeSync(handle);
  }
}

/** Reads and parses a file. @throws the system's error */
export const readJob = ({ sessionId, file }: SidecarFile): ReadJob =>
  withFile(file, (bytes, identity): ReadJob => {
    const sidecar = parseSidecar(sessionId, bytes);
    if (typeof sidecar === 'string') return { kind: 'damaged', reason: sidecar, identity };
    return { kind: 'found', sidecar, identity };
  });

/**
 * Merges the rows of a file with those of the state DB.
 * @returns null when the file has changed since it was read
 * @throws the system's error
 */
export function mergeJob(source: MergeSource, state: readonly RawRow[], rules: MergeRules): Merged | null {
  const rows = source.kind === 'rows' ? source.rows : rowsOf(source);
  return rows && mergeRows(rows, state, rules);
}

/** What the rows of a file say, which is not handed over with them. */
const rowsOf = ({ sessionId, file, identity, kept }: MergeSource & { kind: 'file' }): readonly RawRow[] | null =>
  withFile(file, (bytes, found) => {
    if (found !== identity) return null;
    let rows: readonly RawRow[] = [];
    parseSidecar(sessionId, bytes, (raws) => {
      rows = raws;
    });
    return kept ? Array.from(kept, (at) => rows[at]!) : rows;
  });
