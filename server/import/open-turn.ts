/**
 * A turn that was open there when its conversation was imported. It comes as fields of the sidecar, by which recovery here
 * settles it as any other (RE2): with what its journal has, once nobody can be running it any more.
 */
import { createHash } from 'node:crypto';
import type { ForeignFolder } from '../../db/files/foreign/folder.ts';
import type { SidecarHeader } from '../../db/files/sidecar-store.ts';
import { isText, runOf } from '../core/pending-turn.ts';
import { isSaved } from '../foreign/pending.ts';
import type { Loaded } from './conversation.ts';
import type { SourceHeader } from './session-fields.ts';
import type { ImportedRow } from './transcript.ts';

/** Rows at the end that an open turn can be among. */
const WINDOW = 1_000;

const hasRow = (rows: readonly ImportedRow[], text: string, startedAt: number | null): boolean =>
  rows.slice(-WINDOW).some(({ message }) => isSaved(message, { text, startedAt }));

/** The header with the prompt that only a turn journal tells of: one that was accepted, and then its program died. */
export async function withJournaledTurn(
  folder: ForeignFolder,
  sessionId: string,
  header: SidecarHeader,
  rows: readonly ImportedRow[],
): Promise<SourceHeader> {
  if (isText(header.pending_user_message) || header.pre_compression_snapshot === true) return header;
  const turn = await folder.openTurn(sessionId);
  if (!turn || hasRow(rows, turn.text, turn.startedAt)) return header;
  return {
    ...header,
    active_stream_id: turn.streamId || null,
    pending_user_message: turn.text,
    pending_attachments: turn.attachments,
    pending_started_at: turn.startedAt,
  };
}

/** The run of a prompt that no row has: by it its rows are known once it is settled here. Null for none. */
export function openRun({ header, rows }: Loaded): string | null {
  const { active_stream_id: stream, pending_user_message: text, pending_started_at: time } = header ?? {};
  if (!isText(text) || header?.pre_compression_snapshot === true) return null;
  const { runId, startedAt } = runOf(stream, text, time, runIdFor);
  return hasRow(rows, text, startedAt) ? null : runId;
}

/** As the server names a run that has no name. */
const runIdFor = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);
