/**
 * What a model is given of a conversation (RC9): the context that an agent keeps, which after a compaction is shorter than the
 * transcript, brought up to date from the state DB, without what no model said or was told.
 *
 * Where a compaction has happened and nothing proves what lies behind it, nothing is added: too little is better than
 * the old conversation beside its own summary.
 */
import { attachApiContent } from './api-content.ts';
import { createRowReader, type Keyed } from './keys.ts';
import { reconcile } from './reconcile.ts';
import {
  callsTools,
  collapsed,
  contentText,
  type Fences,
  fieldOf,
  isErrorRow,
  isLiveOutput,
  type RawRow,
  secondsOf,
  untagged,
} from './row.ts';
import { sureTwins } from './twins.ts';

/** The last row before a compaction, as sidecars name it (`compression_anchor_message_key`). */
export interface CompactionAnchor {
  readonly role?: unknown;
  /** Its text or the beginning of it. */
  readonly text?: unknown;
  /** Epoch seconds or ISO 8601. */
  readonly ts?: unknown;
  /** A count or a list. */
  readonly attachments?: unknown;
  /** Of ours alone: what is before it was compressed, though no row of the context says so. */
  readonly compacted?: unknown;
}

export interface ContextInput {
  /** The transcript, reconciled. */
  readonly transcript: readonly RawRow[];
  /** What the sidecar keeps for the model (`context_messages`); null or empty: the transcript itself. */
  readonly context: readonly RawRow[] | null;
  readonly state: readonly RawRow[];
  readonly anchor: CompactionAnchor | null;
  readonly fences: Fences;
  readonly liveRunId: string | null;
  /** A session that another program began and this one goes on with: its context may be only the beginning. */
  readonly claimed?: boolean;
}

const SUMMARY = /^\s*(\[context compaction|context compaction)/i;
const ANCHOR_CHARS = 160;
const ANCHOR_TOLERANCE_S = 1e-6;

/** The rows for a model, oldest first, without fields that are no part of what was said. */
export function toContext(input: ContextInput): RawRow[] {
  const { transcript, context, fences, liveRunId } = input;
  if (!context || context.length === 0 || (input.claimed && isPrefix(context, transcript))) return forModel(transcript);
  const state = input.state.filter((row) => !isLiveOutput(row, liveRunId));
  const isCompacted = input.anchor?.compacted === true || context.some(isSummary);
  const source = isCompacted ? behindAnchor(state, input.anchor) : state;
  if (source === null || source.length === 0) return forModel(attachApiContent(context, state));
  // What lies behind the anchor was said behind the summary, also where nothing of it lies in the context yet.
  const delta = deltaOf(context, source, isCompacted) ?? (isCompacted ? source : null);
  if (delta === null)
    return forModel(reconcile({ sidecar: context, state: source, fences, liveRunId }).rows.map(({ row }) => row));
  const base = attachApiContent(context, state);
  const reader = createRowReader();
  const { ofState, repeated } = sureTwins(reader.read(base, 'sidecar'), reader.read(delta, 'state'));
  const fresh = delta.filter((_, at) => ofState[at] === null && !repeated[at]);
  return forModel([...base, ...fresh.map(untagged)]);
}

/** Whether a row is the summary of a compaction. */
export const isSummary = (row: RawRow): boolean => SUMMARY.test(contentText(row.content));

function isPrefix(context: readonly RawRow[], transcript: readonly RawRow[]): boolean {
  if (transcript.length <= context.length) return false;
  const reader = createRowReader();
  const whole = reader.read(transcript.slice(0, context.length), 'sidecar');
  return reader.read(context, 'sidecar').every((row, at) => row.content === whole[at]!.content);
}

/** The state rows behind the anchor; null when there is no anchor to trust. */
function behindAnchor(state: readonly RawRow[], anchor: CompactionAnchor | null): readonly RawRow[] | null {
  const at = anchor === null ? null : momentOf(anchor.ts);
  if (anchor === null || at === null) return null;
  const text = typeof anchor.text === 'string' ? collapsed(anchor.text).slice(0, ANCHOR_CHARS) : '';
  const found = state.findLastIndex((row) => {
    const moment = momentOf(row.timestamp);
    if (row.role !== anchor.role || moment === null || Math.abs(moment - at) > ANCHOR_TOLERANCE_S) return false;
    if (countOf(row.attachments) !== countOf(anchor.attachments)) return false;
    const said = collapsed(contentText(untagged(row).content)).slice(0, ANCHOR_CHARS);
    return text === '' || said === text;
  });
  return found < 0 ? null : state.slice(found + 1);
}

function momentOf(value: unknown): number | null {
  const seconds = secondsOf(value);
  if (seconds !== null || typeof value !== 'string') return seconds;
  const parsed = /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(parsed) ? null : parsed / 1000;
}

const countOf = (value: unknown): number =>
  Array.isArray(value) ? value.length : typeof value === 'number' ? value : 0;

/**
 * The state rows that the context does not have yet: what follows where the beginning of the state DB lies in the context.
 * @param isBehind whether the state rows are those behind an anchor: then the last row of the context may be their first
 * @returns null when it lies nowhere
 */
function deltaOf(context: readonly RawRow[], state: readonly RawRow[], isBehind: boolean): readonly RawRow[] | null {
  const reader = createRowReader();
  const mine = reader.read(context, 'sidecar').map(contentKey);
  const theirs = reader.read(state, 'state').map(contentKey);
  const { offset, length } = longestStart(mine, theirs);
  const first = context[0]!;
  const isRecovered = offset === 0 && first.role === 'user' && fieldOf(first, '_recovered') === true;
  const enough = isRecovered || (isBehind && offset + length === mine.length) ? 1 : 2;
  if (length < enough) return null;
  // The context may have dropped rows that the state DB still has; what follows its last row is new.
  let next = offset + length;
  for (let at = length; at < theirs.length && next < mine.length; at += 1) {
    if (theirs[at] === mine[next]) next += 1;
    if (next === mine.length) return state.slice(at + 1);
  }
  return state.slice(length);
}

const contentKey = ({ content }: Keyed): number => content;

/** Where the longest beginning of `theirs` lies in `mine`. Linear: the Z function of the one before the other. */
function longestStart(mine: readonly number[], theirs: readonly number[]): { offset: number; length: number } {
  const joined: (number | null)[] = [...theirs, null, ...mine];
  const run: number[] = [0];
  let best = { offset: 0, length: 0 };
  for (let at = 1, from = 0, to = 0; at < joined.length; at += 1) {
    let length = at < to ? Math.min(to - at, run[at - from]!) : 0;
    while (at + length < joined.length && joined[length] === joined[at + length]) length += 1;
    run.push(length);
    if (at + length > to) [from, to] = [at, at + length];
    if (at > theirs.length && length > best.length) best = { offset: at - theirs.length - 1, length };
  }
  return best;
}

/** Not part of what was said: display metadata, and what a model thought. */
const isInternal = (name: string): boolean =>
  name.startsWith('_') || name.startsWith('reasoning') || name === 'recovered';

/**
 * The rows of a transcript that a model is sent. A prompt that was only recovered is left out unless an answer follows: the
 * person sends it again or goes on without it.
 */
export function forModel(rows: readonly RawRow[]): RawRow[] {
  const said = rows.filter((row) => !isErrorRow(row) && !isEmptyFragment(row));
  return said
    .filter((row, at) => {
      const isRecovered = row.role === 'user' && fieldOf(row, '_recovered') === true;
      return !isRecovered || said[at + 1]?.role === 'assistant';
    })
    .map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !isInternal(name))) as unknown as RawRow);
}

const isEmptyFragment = (row: RawRow): boolean =>
  row.role === 'assistant' && !callsTools(row) && contentText(row.content).trim() === '';
