/**
 * A transcript row as a file or a foreign state DB holds it, and how to read one without trusting it (RC3).
 * Rows are read by these functions only; nothing here changes a row.
 */

/** A row of any program: a JSON object with a role. Fields are of unknown type until they were read. */
export interface RawRow {
  readonly role: string;
  readonly content?: unknown;
  readonly timestamp?: unknown;
  /** Id of ours (`<run id>.<n>`, `.m`), one that was made for a row without (`x<16 hex>.<k>`), or another program's. */
  readonly id?: unknown;
  readonly message_id?: unknown;
  readonly run_id?: unknown;
  readonly tool_calls?: unknown;
  readonly tool_call_id?: unknown;
  readonly tool_name?: unknown;
  readonly name?: unknown;
  readonly attachments?: unknown;
  /** The exact bytes that a provider was sent for this row; private. */
  readonly api_content?: unknown;
  /** Row number in the state DB; private. */
  readonly _state_db_row_id?: unknown;
}

/** Edit fences of another program: timestamps (epoch seconds) of the last kept row and of the last edit. */
export interface Fences {
  readonly watermark: number | null;
  readonly boundary: number | null;
}

export const NO_FENCES: Fences = { watermark: null, boundary: null };

export interface ReconcileInput {
  /** Rows as the file has them, in order. */
  readonly sidecar: readonly RawRow[];
  /** Active rows of the state DB in row order; `id` only where the DB has a message id of ours. */
  readonly state: readonly RawRow[];
  readonly fences: Fences;
  /** The run that is live right now: of it only the prompt is shown. */
  readonly liveRunId: string | null;
}

/** One row of the result and where it comes from. */
export interface Placed {
  /** The very object of the input, unless something was added to it or its workspace tag was taken off. */
  readonly row: RawRow;
  readonly source: 'sidecar' | 'state';
  /** Index in its own input. */
  readonly index: number;
  /** Index of the same row in the other store; null when only one has it. */
  readonly twin: number | null;
}

export interface Reconciled {
  readonly rows: readonly Placed[];
  /** Sidecar indexes of markers that a late answer supersedes; they are not in `rows`. */
  readonly replaced: readonly number[];
  /** Whether the sidecar must be saved: rows were added or replaced, or one was given a missing field. */
  readonly changed: boolean;
}

const OUR_ID = /^([0-9a-f]{32})\.(\d+|m)$/;

/** Any field of a row, by name. */
export const fieldOf = (row: RawRow, name: string): unknown => (row as unknown as Record<string, unknown>)[name];

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** The id of a row, whoever gave it; null without one. */
export function idOf(row: RawRow): string | null {
  if (isText(row.id)) return row.id;
  return isText(row.message_id) ? row.message_id : null;
}

/** Whether an id is one that this program gives: a row under it was acknowledged or settled, and is never lost. */
export const isOurId = (id: string | null): boolean => id !== null && OUR_ID.test(id);

/** Run and place in it of a row under an id of ours; its marker is behind everything. */
export function placeInRun(id: string | null): { run: string; at: number } | null {
  const [, run, at] = OUR_ID.exec(id ?? '') ?? [];
  return run === undefined ? null : { run, at: at === 'm' ? Number.POSITIVE_INFINITY : Number(at) };
}

/** The run that a row belongs to; null for rows of other programs. */
export function runIdOf(row: RawRow): string | null {
  if (isText(row.run_id)) return row.run_id;
  return placeInRun(idOf(row))?.run ?? null;
}

/** Whether a row is output of the live run, which only its events show until it has settled. */
export const isLiveOutput = (row: RawRow, liveRunId: string | null): boolean =>
  liveRunId !== null && row.role !== 'user' && runIdOf(row) === liveRunId;

/** Epoch seconds of a stamp: a number or its decimal text. Null when absent, empty, not a number or not finite. */
export function secondsOf(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'string' || value.trim() === '') return null;
  const seconds = Number(value);
  return Number.isFinite(seconds) ? seconds : null;
}

/** Whether a stamp is there but no finite number: such a row is trusted less than one without a stamp. */
export const isBadStamp = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== '' && secondsOf(value) === null;

/** How an image reads in the text of a row, as the agent writes it where it stores text only. */
export const IMAGE_TEXT = '[screenshot]';

const IMAGE_PARTS = new Set(['image', 'image_url', 'input_image']);
const isPart = (part: unknown): part is Record<string, unknown> => typeof part === 'object' && part !== null;

export const isImagePart = (part: unknown): boolean => isPart(part) && IMAGE_PARTS.has(String(part.type));

/** The text of one part of a content list; null for what is neither text nor image. */
export function partText(part: unknown, image: string | null): string | null {
  if (typeof part === 'string') return part;
  if (!isPart(part)) return null;
  if (isImagePart(part)) return image;
  return typeof part.text === 'string' ? part.text : null;
}

/** The text of a content: a string, or a list of parts joined by line breaks with images as `image`, or without them. */
export function contentText(content: unknown, image: string | null = IMAGE_TEXT): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part) => partText(part, image))
    .filter((text) => text !== null)
    .join('\n');
}

/** Collapses every run of white space to one space, as two programs do not agree on it. */
export const collapsed = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** An agent stores the workspace in front of a prompt; the person never wrote it. The bracket ends before white space. */
const WORKSPACE_TAG = /^\s*\[Workspace(?:::v1)?:[^\n]*?\](?:\s+|$)/;

/** A prompt of the state DB without its workspace tag. */
export const withoutWorkspaceTag = (text: string): string => text.replace(WORKSPACE_TAG, '');

/** A state row as a person may see it in the transcript: the workspace tag of an agent's prompt is taken off. */
export function untagged(row: RawRow): RawRow {
  if (row.role !== 'user' || idOf(row) !== null) return row;
  if (typeof row.content === 'string') {
    const content = withoutWorkspaceTag(row.content);
    return content === row.content ? row : { ...row, content };
  }
  if (!Array.isArray(row.content)) return row;
  const first = row.content.findIndex((part) => partText(part, '') !== null && !isImagePart(part));
  const text = first < 0 ? null : partText(row.content[first], '');
  if (text === null || withoutWorkspaceTag(text) === text) return row;
  const bare = withoutWorkspaceTag(text);
  const part: unknown = row.content[first];
  return { ...row, content: row.content.with(first, isPart(part) ? { ...part, text: bare } : bare) };
}

/** Whether a row calls tools. */
export const callsTools = (row: RawRow): boolean => Array.isArray(row.tool_calls) && row.tool_calls.length > 0;

/** Whether a row is a marker: it says that a turn was interrupted, and is nobody's answer. */
export function isMarkerRow(row: RawRow): boolean {
  if (row.role !== 'assistant') return false;
  if (isOurId(idOf(row)) && idOf(row)?.endsWith('.m')) return true;
  return fieldOf(row, '_error') === true && fieldOf(row, 'type') === 'interrupted';
}

/** Whether a row is a notice of an error or a cancel, which no model said. */
export const isErrorRow = (row: RawRow): boolean => fieldOf(row, '_error') === true || isMarkerRow(row);

/** Whether a row holds only the beginning of an answer: cut short, or brought back from a journal. */
export function isPartialRow(row: RawRow): boolean {
  const status = fieldOf(row, 'status');
  return (
    fieldOf(row, '_partial') === true ||
    fieldOf(row, '_recovered_from_run_journal') === true ||
    fieldOf(row, 'recovered') === true ||
    status === 'partial' ||
    status === 'interrupted'
  );
}

/** Whether a row is an answer that closes its turn: text of the assistant, whole, with no tool call open behind it. */
export const isAnswer = (row: RawRow): boolean =>
  row.role === 'assistant' &&
  !callsTools(row) &&
  !isErrorRow(row) &&
  !isPartialRow(row) &&
  fieldOf(row, 'status') !== 'error' &&
  contentText(row.content).trim() !== '';
