/**
 * A turn that died and that no admission tells about: what a sidecar calls pending, what its journal and the other stores
 * still know, and the transcript that follows from it. Pure; the evidence in this order: a sealed journal, rows.
 *
 * The prompt is there once, with its own text, time and attachments. What it said is there once, in order. A marker
 * stands only where nothing says how the turn ended, and claims no more than that (RE4).
 */
import { isMarker, markerRow } from './marker.ts';
import { collapsed } from './reconcile/row.ts';
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
  /** It has its last line: nothing more will come. */
  ended: boolean;
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
  /** Whether not all could be read yet, so that later reads should look again. */
  armed: boolean;
}

/** Seconds within which an agent stores a prompt that it was given. */
const STORED_WITHIN_S = 30;

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
    const isNothing = !said && journal.rows.length === 0;
    // A journal without its last line may be longer when it is looked at again.
    armed = isNothing || (journal.state === 'there' && !journal.ended);
    last.push(markerRow(pending.runId, now, cause, isNothing ? 'pending' : 'recovered'));
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
  // An agent stores the prompt a moment after its person sent it; a stamp without fractions may lie before.
  const late = startedAt === null ? Number.NaN : row.timestamp - Math.floor(startedAt);
  const isIts = late >= 0 && late <= STORED_WITHIN_S;
  return latest === rows.length - 1 || isIts || journal.completed ? latest : -1;
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

/**
 * Rows that stand, with what only the journal has put where it was said.
 * @param first the number of the first of them in the transcript
 */
export function withJournal(
  standing: readonly Message[],
  first: number,
  journal: readonly Message[],
): (Message | number)[] {
  const output: (Message | number)[] = [];
  const keys = standing.map(keyOf);
  /** Where each key stands, the last place first: what was passed is taken off the end. */
  const places = new Map<string, number[]>();
  for (let at = keys.length - 1; at >= 0; at -= 1) {
    const list = places.get(keys[at]!);
    if (list) list.push(at);
    else places.set(keys[at]!, [at]);
  }
  let taken = 0;
  const takeTo = (index: number): void => {
    for (; taken < index; taken += 1) output.push(first + taken);
  };
  for (const row of journal) {
    const key = keyOf(row);
    let same = nextPlace(places.get(key), taken) ?? -1;
    // A row of which one store has only a part stands near: its neighbours are there.
    const end = Math.min(standing.length, taken + NEAR);
    for (let at = taken; at < (same < 0 ? end : Math.min(same, end)); at += 1) {
      if (isCut(standing[at]!, keys[at]!, row, key)) same = at;
    }
    if (same < 0) {
      output.push(row);
      continue;
    }
    takeTo(same);
    const { content } = standing[same]!;
    // Whichever of the two has more: one of the stores was cut.
    const isLonger = row.content.length > content.length && row.role === 'assistant';
    output.push(isLonger ? grown(standing[same]!, row) : first + same);
    taken = same + 1;
  }
  takeTo(standing.length);
  return output;
}

/** How far ahead a row that was cut is looked for. */
const NEAR = 8;

function nextPlace(places: number[] | undefined, from: number): number | undefined {
  while (places?.length && places.at(-1)! < from) places.pop();
  return places?.at(-1);
}

const grown = (standing: Message, { content, reasoning }: Message): Message => ({
  ...standing,
  content,
  ...(reasoning ? { reasoning } : {}),
});

/** An id that a journal without call ids was read with says nothing about the other store. */
const isCallId = (id: string | undefined): id is string => id !== undefined && !id.startsWith('journal-');

/** What a row of a turn is known by in two stores: of a tool row its call or its tool, of any other what it says. */
function keyOf(row: Message): string {
  if (isMarker(row)) return `marker ${row.id}`;
  if (row.role === 'tool') return `tool ${isCallId(row.tool_call_id) ? row.tool_call_id : `named ${row.name ?? ''}`}`;
  const text = collapsed(row.content);
  return `${row.role} ${text === '' ? callsOf(row) : text}`;
}

const callsOf = (row: Message): string =>
  (row.tool_calls ?? []).map((call) => (isCallId(call.id) ? call.id : call.function?.name)).join();

/** Whether two rows are the same although one store has less of it: a text that was cut, a call whose id it never had. */
function isCut(standing: Message, standingKey: string, journal: Message, journalKey: string): boolean {
  if (standing.role !== journal.role || isMarker(standing)) return false;
  if (standing.role === 'tool') {
    const bothKnown = isCallId(standing.tool_call_id) && isCallId(journal.tool_call_id);
    return !bothKnown && standing.name === journal.name;
  }
  if (standing.content === '' || journal.content === '') {
    const names = (row: Message) => (row.tool_calls ?? []).map((call) => call.function?.name).join();
    const known = [standing, journal].every((row) => row.tool_calls?.every((call) => isCallId(call.id)));
    return standing.content === journal.content && !known && names(standing) === names(journal);
  }
  return standingKey.startsWith(journalKey) || (journalKey.startsWith(standingKey) && standing.status !== 'complete');
}
