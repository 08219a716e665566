/**
 * The edit fence of our own sessions (RC1): a sidecar that has not seen the last edit is cut where the edit ended.
 * The one way, with a marker that gives way to a late answer, in which a row of the sidecar is left out.
 */

export interface EditFence {
  /** Number of the last edit that the sidecar has seen. */
  readonly sidecarEdit: number;
  /** Number of the session's last edit. */
  readonly sessionEdit: number;
  /** Id of the last row that the edit kept; null when it kept none. */
  readonly fence: string | null;
  /** Ids of rows that edits took out of the state DB. */
  readonly inactive: ReadonlySet<string>;
  /** Ids of the rows that the state DB has. */
  readonly active: ReadonlySet<string>;
}

/**
 * The rows of a sidecar that are still part of the conversation, in order.
 * @returns the same array when the sidecar has seen the last edit
 */
export function cutAtEdit<Row extends { readonly id: string | null }>(
  rows: readonly Row[],
  { sidecarEdit, sessionEdit, fence, inactive, active }: EditFence,
): readonly Row[] {
  if (sidecarEdit >= sessionEdit) return rows;
  if (fence === null) return [];
  const kept = (row: Row): boolean => row.id === null || !inactive.has(row.id);
  let last = rows.findLastIndex((row) => row.id === fence);
  // The fence row is lost: what the state DB still has was kept by the edit, and what follows it was not.
  if (last < 0) last = rows.findLastIndex((row) => row.id !== null && active.has(row.id) && kept(row));
  return rows.slice(0, last + 1).filter(kept);
}
