/**
 * The sidecar of an imported conversation: what its own had, all fields of it, under our id (IM2). Where it exists here
 * already, because a run of the import died or somebody went on meanwhile, it is given what only the source had. Pure.
 */
import type { FoundRow, Sidecar, SidecarHeader, SidecarRow } from '../../db/files/sidecar-store.ts';
import type { SessionRow } from '../../db/stores.ts';
import type { RawRow } from '../core/reconcile/row.ts';
import { ANCHOR_FIELD, fixContext, forContext } from './context.ts';
import type { Loaded } from './conversation.ts';
import type { ImportedRow } from './transcript.ts';

/** Where it comes from, as the sidecar says it: a field of ours that every save keeps. */
export interface Origin {
  home: string;
  session_id: string;
  model: string | null;
}

const NO_TURN = {
  active_stream_id: null,
  pending_user_message: null,
  pending_attachments: [],
  pending_started_at: null,
  pending_user_source: null,
};

export function importedSidecar(
  session: SessionRow,
  loaded: Loaded,
  rows: readonly ImportedRow[],
  origin: Origin,
): Sidecar {
  const { header } = loaded;
  const { tail, anchor } = contextOf(loaded, rows);
  const merged: SidecarHeader = {
    ...NO_TURN,
    ...header,
    session_id: session.session_id,
    title: session.title ?? 'Untitled',
    workspace: session.workspace,
    model: session.model,
    project_id: session.project_id,
    created_at: session.created_at,
    updated_at: session.updated_at,
    pinned: session.pinned,
    archived: session.archived,
    manual_title: session.title_source === 'user',
    edit_number: session.edit_number,
    imported_from: origin,
    ...(anchor ? { [ANCHOR_FIELD]: anchor } : {}),
    message_count: 0,
  };
  return {
    header: merged,
    rows: rows.map(toRow),
    get tail() {
      return tail.tail;
    },
    ...(tail.tailText ? { tailText: tail.tailText } : {}),
  };
}

/** The fields behind the transcript, with the context that a model is to be given. */
function contextOf({ header, tail, context, before }: Loaded, rows: readonly ImportedRow[]) {
  // The tail of a long conversation is as long as that: it is read only where it may say something of this.
  const { tailText } = tail;
  const keepsOne = tailText ? tailText.keys.includes('context_messages') : 'context_messages' in tail.tail;
  const own = before?.own ?? null;
  const kept = context ?? (keepsOne ? tail.tail.context_messages : null);
  const isKept = Array.isArray(kept) && kept.length > 0;
  // What other sessions said before a compression was told in this one by its summary.
  const found =
    isKept || !own
      ? kept
      : own.map(({ message, parts }) => forContext({ ...message, content: parts ?? message.content }));
  if (!Array.isArray(found)) return { tail, anchor: null };
  const list = found.filter((row: RawRow | null): row is RawRow => typeof row?.role === 'string');
  const { anchor, more } = fixContext(header?.[ANCHOR_FIELD], list, rows, own !== null);
  if (!context && isKept && more.length === 0) return { tail, anchor };
  return { tail: { tail: { tool_calls: [], ...tail.tail, context_messages: [...found, ...more] } }, anchor };
}

function toRow({ message, stored }: ImportedRow): SidecarRow {
  const row = { id: message.id, runId: message.run_id ?? null, role: message.role, json: JSON.stringify(message) };
  return stored === undefined ? row : { ...row, stored };
}

/** A sidecar that is here already, with what only the source had. Its rows, and whatever it says itself, stay. */
export function completedSidecar(there: Sidecar<FoundRow>, wanted: Sidecar, wasEdited: boolean): Sidecar {
  const theirs = new Map(wanted.rows.map((row) => [row.id, row]));
  const rows = there.rows.map((row): SidecarRow => {
    const same = row.id === null || !row.plain ? undefined : theirs.get(row.id);
    const { id, runId, role, json } = row;
    return { id: id!, runId, role, json, ...(same?.stored === undefined ? {} : { stored: same.stored }) };
  });
  const tail = { ...wanted.tail, ...there.tail };
  // It was made of more than is left.
  if (wasEdited) delete tail.context_messages;
  return { header: { ...wanted.header, ...there.header }, rows, tail };
}
