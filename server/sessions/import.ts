/** Import: a new session from an exported document, whole or not at all (ED5). */
import { givenUp } from '../core/marker.ts';
import { toDisplay } from '../core/reconcile/display.ts';
import type { RawRow } from '../core/reconcile/row.ts';
import { type DocumentSession, documentMessage } from '../core/session-document.ts';
import type { Message } from '../core/terms.ts';
import { isDeeperThan, wellFormedJson } from '../core/text.ts';
import { AppError } from '../errors.ts';
import type { Copy, MakeCopy } from './copies.ts';
import type { SessionView } from './view.ts';

/** A document whose shape was checked; whoever wrote it by hand may leave out most of its session. */
export interface ImportedDocument {
  session: Partial<DocumentSession>;
  messages: readonly Message[];
}

/**
 * @throws AppError unacceptable, naming the place, when two messages have one id
 */
export type Import = (document: ImportedDocument) => Promise<SessionView>;

export function createImport({ makeCopy }: { makeCopy: MakeCopy }): Import {
  return async (document) => {
    if (isDeeperThan(document, MAX_DEPTH)) {
      throw new AppError('unacceptable', `The document is nested more than ${MAX_DEPTH} deep.`);
    }
    // A model may have gone away since, as it may for any session.
    const { title = null, title_source, model = null, created_at, usage } = wellFormedJson(document.session);
    const rows = document.messages.map(wellFormedJson).map(shown);
    checkIds(rows);
    const named = title !== null && title.trim() !== '';
    const copy: Copy = {
      parent_session_id: null,
      title: named ? title : null,
      title_source: named ? (title_source ?? 'user') : null,
      source: 'import',
      model,
      // A document never chooses the folder in which an agent works.
      workspace: null,
      project_id: null,
      created_at: created_at ?? null,
      usage: usage ?? null,
      rows,
    };
    return makeCopy(copy, null);
  };
}

/** Deeper than this nothing is that a person or a model wrote. */
const MAX_DEPTH = 200;

/** A message as it is shown, whoever wrote it: what nobody would see is not stored either. */
const shown = (message: Message): Message =>
  documentMessage(givenUp(toDisplay(message as unknown as RawRow, message.id)));

function checkIds(rows: readonly Message[]): void {
  const places = new Map<string, number>();
  for (const [place, { id }] of rows.entries()) {
    const first = places.get(id);
    if (first !== undefined) {
      throw new AppError('unacceptable', `The messages ${first} and ${place} have the same id ${JSON.stringify(id)}.`);
    }
    places.set(id, place);
  }
}
