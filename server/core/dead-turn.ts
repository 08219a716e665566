/**
 * A turn that died and that no admission tells about: what a sidecar calls pending, what its journal and the other stores
 * still know, and the transcript that follows from it. Pure; the evidence in this order: a sealed journal, rows.
 *
 * The prompt is there once, with its own text, time and attachments. What it said is there once, in order. A marker
 * stands only where nothing says how the turn ended, and claims no more than that (RE4).
 */
import { isMarker, markerRow } from './marker.ts';
import type { MarkerCause, Message } from './terms.ts';

/** The turn as its sidecar names it. */
export interface PendingPrompt {
  /** Its run, 32 hexadecimal digits: the ids of its rows begin with it. */
  runId: string;
  text: string;
  attachments: readonly string[];
  /** Epoch seconds; null when its writer did not say. */
  startedAt: number | null;
}

/** What the journal of the turn says. */
export interface DeadJournal {
  /** `empty` may still be arriving, like `missing`; `there` has lines, whatever is in them. */
  state: 'missing' | 'empty' | 'there';
  /** What it shows of the agent's output, without the prompt. */
  rows: readonly Message[];
  /** It says that the turn came to its own end. */
  completed: boolean;
  /** A terminal error in the agent's own words. */
  error: Message | null;
}

export interface DeadTurn {
  rows: readonly Message[];
  pending: PendingPrompt;
  journal: DeadJournal;
  cause: MarkerCause;
  /** Epoch seconds. */
  now: number;
}

export interface SettledTurn {
  /** The transcript: a number is a row of the input as it stands. */
  rows: (Message | number)[];
  /** Whether nothing could be read yet, so that later reads should look again. */
  armed: boolean;
}

/** Texts are compared with every run of white space as one space. */
const collapsed = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

/** The transcript after a dead turn. Settling what is settled already changes nothing. */
export function settleDeadTurn({ rows, pending, journal, cause, now }: DeadTurn): SettledTurn {
  const at = promptAt(rows, pending, journal);
  const start = at < 0 ? placeOf(rows, pending) : at;
  const prompt = at < 0 ? newPrompt(pending, now) : ownText(rows[at]!, at, pending);
  const next = rows.findIndex((row, index) => index > at && index >= start && row.role === 'user');
  const end = next < 0 ? rows.length : next;
  const first = at < 0 ? start : start + 1;
  const standing = at < 0 ? [] : rows.slice(first, end);
  const output = withJournal(standing, first, journal.rows);
  const said = standing.some(isOutput);
  const last: Message[] = [];
  let armed = false;
  if (journal.error && !(journal.completed && output.length)) last.push(journal.error);
  else if (!isKnownEnd(journal, said)) {
    armed = !said && journal.rows.length === 0;
    last.push(markerRow(pending.runId, now, cause, armed ? 'pending' : 'recovered'));
  }
  const before = Array.from({ length: start }, (_, index) => index);
  const after = Array.from(
    { length: rows.length - (at < 0 ? start : end) },
    (_, index) => index + (at < 0 ? start : end),
  );
  return { rows: [...before, prompt, ...output, ...last, ...after], armed };
}

/** Whether no marker is due: the journal says so and there is output, or another program's rows are all there is. */
function isKnownEnd(journal: DeadJournal, said: boolean): boolean {
  if (journal.state === 'there') return journal.completed && (said || journal.rows.length > 0);
  return said;
}

const isOutput = (row: Message): boolean =>
  !isMarker(row) && (row.role === 'tool' || (row.role === 'assistant' && (row.content !== '' || !!row.tool_calls)));

/**
 * Where the prompt stands already: a row of exactly its time that begins with its text, or a last row, or (of a turn that
 * came to its end) a last prompt, with the same text. An older prompt with the same words is another one.
 */
function promptAt(rows: readonly Message[], { text, startedAt }: PendingPrompt, journal: DeadJournal): number {
  const wanted = collapsed(text);
  const exact = rows.findLastIndex(
    (row) => row.role === 'user' && row.timestamp === startedAt && collapsed(row.content).startsWith(wanted),
  );
  if (exact >= 0) return exact;
  const latest = rows.findLastIndex((row) => row.role === 'user');
  const row = rows[latest];
  if (!row || collapsed(row.content) !== wanted) return -1;
  const sameSecond = startedAt !== null && Math.floor(row.timestamp) === Math.floor(startedAt);
  return latest === rows.length - 1 || sameSecond || journal.completed ? latest : -1;
}

/** Where a prompt that is nowhere yet belongs: before the first prompt that is newer, else at the end. */
function placeOf(rows: readonly Message[], { startedAt }: PendingPrompt): number {
  if (startedAt === null) return rows.length;
  const newer = rows.findIndex((row) => row.role === 'user' && row.timestamp > startedAt);
  return newer < 0 ? rows.length : newer;
}

function newPrompt({ runId, text, attachments, startedAt }: PendingPrompt, now: number): Message {
  const row: Message = {
    id: `${runId}.0`,
    role: 'user',
    content: text,
    timestamp: startedAt ?? now,
    run_id: runId,
    recovered: true,
  };
  if (attachments.length) row.attachments = [...attachments];
  return row;
}

/** The prompt as the person wrote it: what only the agent added to its copy is for its model. */
function ownText(row: Message, at: number, { text, attachments, startedAt }: PendingPrompt): Message | number {
  const same = row.content === text && (attachments.length === 0 || row.attachments?.length === attachments.length);
  if (same) return at;
  const own: Message = { ...row, content: text, timestamp: startedAt ?? row.timestamp };
  if (attachments.length) own.attachments = [...attachments];
  return own;
}

/** Rows that stand, with what only the journal has put where it was said. */
export function withJournal(
  standing: readonly Message[],
  first: number,
  journal: readonly Message[],
): (Message | number)[] {
  const output: (Message | number)[] = [];
  let taken = 0;
  const takeTo = (index: number): void => {
    for (; taken < index; taken += 1) output.push(first + taken);
  };
  for (const row of journal) {
    const same = standing.findIndex((other, index) => index >= taken && isSame(other, row));
    if (same < 0) {
      output.push(row);
      continue;
    }
    takeTo(same);
    const { content } = standing[same]!;
    // Whichever of the two has more: one of the stores was cut.
    output.push(
      row.content.length > content.length && row.role === 'assistant' ? grown(standing[same]!, row) : first + same,
    );
    taken = same + 1;
  }
  takeTo(standing.length);
  return output;
}

const grown = (standing: Message, { content, reasoning }: Message): Message => ({
  ...standing,
  content,
  ...(reasoning ? { reasoning } : {}),
});

/** Whether two rows of one turn are the same, as two stores have it; one of them may have been cut. */
function isSame(standing: Message, journal: Message): boolean {
  if (standing.role !== journal.role || isMarker(standing)) return false;
  if (standing.role === 'tool') return standing.name === journal.name || standing.tool_call_id === journal.tool_call_id;
  const [a, b] = [collapsed(standing.content), collapsed(journal.content)];
  if (a === '' || b === '') return a === b && sameCalls(standing, journal);
  return a.startsWith(b) || (b.startsWith(a) && standing.status !== 'complete');
}

const sameCalls = (a: Message, b: Message): boolean =>
  (a.tool_calls ?? []).map((call) => call.function?.name).join() ===
  (b.tool_calls ?? []).map((call) => call.function?.name).join();
