/**
 * A turn that another program left open in its own home, as it is shown: settled as recovery would settle it here, in
 * memory alone and at each read anew, since nothing is written there (RE2: never while it may still run).
 */
import type { ForeignFolder } from '../../db/files/foreign/folder.ts';
import type { SidecarHeader, SidecarRow } from '../../db/files/sidecar-store.ts';
import { toSidecarRow } from '../../db/files/sidecar-store.ts';
import { type PendingPrompt, settleDeadTurn } from '../core/dead-turn.ts';
import { causeOf, isText, isTime, isYoung, runOf } from '../core/pending-turn.ts';
import { collapsed } from '../core/reconcile/row.ts';
import type { MarkerCause, Message } from '../core/terms.ts';
import { wellFormed } from '../core/text.ts';
import { readDeadJournal } from '../recovery/dead-journal.ts';

export interface OpenPrompt {
  prompt: PendingPrompt;
  /** The stream that its writer names; empty for none. */
  stream: string;
  cause: MarkerCause;
  /** Whether the sidecar itself names it; else a turn journal does, and its prompt may have been saved since. */
  told: boolean;
}

/** What a sidecar calls pending, or else its turn journal; null when no turn is open. */
export async function openPrompt(
  folder: ForeignFolder,
  sessionId: string,
  header: SidecarHeader,
  runIdFor: (text: string) => string,
): Promise<OpenPrompt | null> {
  if (header.pre_compression_snapshot === true) return null;
  const told = isText(header.pending_user_message);
  const journaled = told ? null : await folder.openTurn(sessionId);
  if (!told && !journaled) return null;
  const stream = told ? header.active_stream_id : journaled!.streamId;
  const text = told ? header.pending_user_message! : journaled!.text;
  const time = told ? header.pending_started_at : journaled!.startedAt;
  const attachments = namesOf(told ? header.pending_attachments : journaled!.attachments);
  return {
    prompt: { ...runOf(stream, text, time, runIdFor), text: wellFormed(text), attachments },
    stream: isText(stream) ? stream : '',
    cause: causeOf(stream),
    told,
  };
}

/** Rows at the end that an open turn can be among. */
const WINDOW = 1_000;

/**
 * The rows with the open turn as it ended.
 * @returns null while it may be running, or when nothing is to be changed
 */
export async function withEnd(
  folder: ForeignFolder,
  sessionId: string,
  rows: readonly SidecarRow[],
  { prompt, stream, cause, told }: OpenPrompt,
  now: number,
): Promise<SidecarRow[] | null> {
  const start = Math.max(0, rows.length - WINDOW);
  const messages = rows.slice(start).map((row) => JSON.parse(row.json) as Message);
  if (!told && messages.some((row) => isSaved(row, prompt))) return null;
  const lastSign = await lastLine(folder, sessionId, prompt.runId);
  if (stream !== '' && [prompt.startedAt, lastSign].some((sign) => isYoung(sign, now))) return null;
  const journal = await readDeadJournal(folder.journals, sessionId, prompt.runId);
  // By a time that stays, so that each read says the same.
  const at = lastSign ?? prompt.startedAt ?? messages.at(-1)?.timestamp ?? 0;
  const turn = settleDeadTurn({ rows: messages, pending: prompt, journal, cause, now: at });
  const settled = turn.rows.map((row) => (typeof row === 'number' ? rows[start + row]! : toSidecarRow(row)));
  return [...rows.slice(0, start), ...settled];
}

/** Whether a row is this prompt, saved when its turn began or later. Times of rows may be whole seconds. */
export const isSaved = (row: Message, { text, startedAt }: Pick<PendingPrompt, 'text' | 'startedAt'>): boolean =>
  row.role === 'user' && row.timestamp >= Math.floor(startedAt ?? 0) - 1 && collapsed(row.content) === collapsed(text);

/** When the journal of a run was last written to; null when it does not say. */
async function lastLine(folder: ForeignFolder, sessionId: string, runId: string): Promise<number | null> {
  const read = await folder.journals.readForeign(sessionId, runId);
  if (read.kind !== 'there') return null;
  const last = read.records.at(-1) as { created_at?: unknown } | undefined;
  return isTime(last?.created_at) ? last.created_at : null;
}

/** Attachments are names, or objects that have one. */
function namesOf(attachments: unknown): string[] {
  if (!Array.isArray(attachments)) return [];
  return attachments.flatMap((one: unknown) => {
    const name = typeof one === 'object' && one !== null && 'name' in one ? one.name : one;
    return typeof name === 'string' && name !== '' ? [name.split(/[\\/]/).at(-1)!] : [];
  });
}
