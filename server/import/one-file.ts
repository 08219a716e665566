/** One sidecar or one exported document as something to be imported. */
import path from 'node:path';
import { filesOf, journalsIn, readJson } from '../../db/files/import-files.ts';
import type { Project } from '../../db/stores.ts';
import { isSessionId } from '../core/ids.ts';
import { fencesOf } from '../core/reconcile/fences.ts';
import type { RawRow } from '../core/reconcile/row.ts';
import { DOCUMENT_FORMAT } from '../core/session-document.ts';
import type { Conversation, Source } from './conversation.ts';
import { documentConversation } from './document.ts';
import type { SourceHeader } from './session-fields.ts';
import { digestOf, toTranscript } from './transcript.ts';

const nothing = async (): Promise<never[]> => [];

/** @returns a string when it is neither: why */
export async function openFile(file: string): Promise<Source | string> {
  const read = await readJson(file);
  if (typeof read === 'string') return `${file} cannot be imported: ${read}.`;
  const value = read.value as Record<string, unknown> | null;
  if (typeof value !== 'object' || value === null) return `${file} cannot be imported: it is no conversation.`;
  const label = path.basename(file);
  const common = { label, projects: new Map<string, Project>(), profiles: [], close: async () => {} };
  if (value.format === DOCUMENT_FORMAT) {
    const conversation = documentConversation(value);
    if (typeof conversation === 'string') return `${file} cannot be imported: ${conversation}.`;
    return { ...common, home: 'document', roots: [], conversations: [conversation] };
  }
  const id = value.session_id;
  if (typeof id !== 'string' || !isSessionId(id) || !Array.isArray(value.messages)) {
    return `${file} cannot be imported: it is neither a sidecar nor an exported conversation.`;
  }
  const folder = path.dirname(file);
  const base = path.dirname(folder);
  const isInHome = path.basename(folder) === 'sessions';
  const fields = Object.entries(value);
  const at = fields.findIndex(([key]) => key === 'messages');
  const header: SourceHeader = Object.fromEntries(fields.slice(0, at));
  const rows = value.messages.filter((row: unknown): row is RawRow => typeof (row as RawRow | null)?.role === 'string');
  const transcript = toTranscript(rows, [], fencesOf(header));
  const conversation: Conversation = {
    id,
    keepsId: true,
    seen: digestOf(transcript),
    summary: null,
    createdAt: 0,
    waits: false,
    load: async () => ({
      header,
      rows: transcript,
      tail: { tail: Object.fromEntries(fields.slice(at + 1)) },
      context: null,
      before: null,
    }),
    attachments: async () => (isInHome ? filesOf(path.join(base, 'attachments'), id) : nothing()),
    journals: () => (isInHome ? journalsIn(folder, id) : nothing()),
  };
  const home = isInHome ? base : folder;
  return { ...common, home, roots: isInHome ? [path.join(base, 'attachments')] : [], conversations: [conversation] };
}
