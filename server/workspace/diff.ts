/**
 * What changed between two texts as a unified diff, bounded in work and in size. Pure.
 * Source of the method: Myers, "An O(ND) Difference Algorithm and Its Variations", 1986; of the format: diff(1) of POSIX.
 */

/** Longest diff that is given (characters). */
export const MAX_DIFF = 32 * 1024;
const CONTEXT = 3;
/** Changes up to which the shortest way is looked for; texts that differ in more are shown as replaced in that part. */
const MAX_EDITS = 400;

/** A stretch of lines: kept, or removed from the one and added from the other. */
interface Change {
  /** Lines `[from, to)` of the old text that are gone. */
  from: number;
  to: number;
  /** Lines `[start, end)` of the new text in their place. */
  start: number;
  end: number;
}

export interface Diff {
  /** Empty when nothing changed. */
  text: string;
  added: number;
  removed: number;
}

/**
 * Compares two texts line by line.
 * @param before null when there was no file
 * @param name path as it is shown
 */
export function diffOf(before: string | null, after: string, name: string): Diff {
  const old = linesOf(before ?? '');
  const now = linesOf(after);
  const changes = changesOf(old, now);
  const sum = (of: (change: Change) => number): number => changes.reduce((total, change) => total + of(change), 0);
  const counts = { added: sum(({ start, end }) => end - start), removed: sum(({ from, to }) => to - from) };
  if (changes.length === 0) return { text: '', ...counts };
  const head = `--- ${before === null ? '/dev/null' : `a/${name}`}\n+++ b/${name}\n`;
  return { text: head + bounded(hunksOf(changes, old.length), old, now), ...counts };
}

/** The lines with their ends; the last one may have none. */
const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

function changesOf(old: readonly string[], now: readonly string[]): Change[] {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  const most = Math.min(old.length, now.length) - head;
  while (tail < most && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++;
  const a = old.slice(head, old.length - tail);
  const b = now.slice(head, now.length - tail);
  if (a.length === 0 && b.length === 0) return [];
  return shortest(a, b).map(({ from, to, start, end }) => ({
    from: from + head,
    to: to + head,
    start: start + head,
    end: end + head,
  }));
}

/** The fewest changes from `a` to `b`; one that replaces everything where they are too many. */
function shortest(a: readonly string[], b: readonly string[]): Change[] {
  const whole = [{ from: 0, to: a.length, start: 0, end: b.length }];
  if (a.length === 0 || b.length === 0) return whole;
  // `reach[k]`: how far in `a` one comes on diagonal k (x - y) with the edits so far.
  let reach = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let edits = 0; edits <= Math.min(MAX_EDITS, a.length + b.length); edits++) {
    trace.push(new Map(reach));
    const next = new Map(reach);
    for (let k = -edits; k <= edits; k += 2) {
      let x = isDown(next, k, edits) ? (next.get(k + 1) ?? 0) : (next.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      next.set(k, x);
      if (x >= a.length && x - k >= b.length) return backwards(trace, a.length, b.length);
    }
    reach = next;
  }
  return whole;
}

/** Whether diagonal `k` is entered by adding a line (from k + 1) and not by removing one (from k - 1). */
const isDown = (reach: ReadonlyMap<number, number>, k: number, edits: number): boolean =>
  k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));

/** Follows the way back to the beginning and joins neighbouring steps. */
function backwards(trace: readonly Map<number, number>[], width: number, height: number): Change[] {
  const changes: Change[] = [];
  let x = width;
  let y = height;
  for (let edits = trace.length - 1; edits > 0; edits--) {
    const reach = trace[edits]!;
    const k = x - y;
    const down = isDown(reach, k, edits);
    const fromK = down ? k + 1 : k - 1;
    const fromX = reach.get(fromK) ?? 0;
    const fromY = fromX - fromK;
    const step = down
      ? { from: fromX, to: fromX, start: fromY, end: fromY + 1 }
      : { from: fromX, to: fromX + 1, start: fromY, end: fromY };
    const last = changes[0];
    if (last && last.from === step.to && last.start === step.end) {
      last.from = step.from;
      last.start = step.start;
    } else changes.unshift(step);
    x = fromX;
    y = fromY;
  }
  return changes;
}

/** Changes whose surroundings touch stand in one hunk. */
function hunksOf(changes: readonly Change[], length: number): Change[][] {
  const hunks: Change[][] = [];
  for (const change of changes) {
    const last = hunks.at(-1)?.at(-1);
    if (last && change.from - last.to <= 2 * CONTEXT && change.from <= length) hunks.at(-1)!.push(change);
    else hunks.push([change]);
  }
  return hunks;
}

/** The lines of a hunk, one by one: most of a long one are not shown. */
function* hunkLines(changes: readonly Change[], old: readonly string[], now: readonly string[]): Generator<string> {
  const first = changes[0]!;
  const last = changes.at(-1)!;
  const before = Math.min(CONTEXT, first.from);
  const behind = Math.min(CONTEXT, old.length - last.to);
  const [from, to] = [first.from - before, last.to + behind];
  const [start, end] = [first.start - before, last.end + behind];
  yield `@@ -${range(from, to)} +${range(start, end)} @@\n`;
  let at = from;
  for (const change of changes) {
    for (; at < change.from; at++) yield marked(' ', old[at]!);
    for (; at < change.to; at++) yield marked('-', old[at]!);
    for (let line = change.start; line < change.end; line++) yield marked('+', now[line]!);
  }
  for (; at < to; at++) yield marked(' ', old[at]!);
}

/** Lines `[from, to)` as the head of a hunk names them: the first from 1, and how many; none are named by the one before. */
const range = (from: number, to: number): string => `${to > from ? from + 1 : from},${to - from}`;

const marked = (mark: string, line: string): string =>
  line.endsWith('\n') ? `${mark}${line}` : `${mark}${line}\n\\ No newline at end of file\n`;

function bounded(hunks: readonly Change[][], old: readonly string[], now: readonly string[]): string {
  let text = '';
  let left = 0;
  for (const hunk of hunks) {
    for (const line of hunkLines(hunk, old, now)) {
      if (left === 0 && text.length + line.length <= MAX_DIFF) text += line;
      else left += 1;
    }
  }
  return left === 0 ? text : `${text}[${left} more lines of the diff are left out.]\n`;
}
