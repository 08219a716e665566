/**
 * The files of an imported session: its sidecar, then its journals and attachments (IM2, IM6). What of the source cannot be
 * read is a line of the report; a disk of ours that fails ends the import.
 */
import { copyAttachment, copyJournal, type SourceFile } from '../../db/files/import-files.ts';
import type { Paths } from '../../db/files/paths.ts';
import type { SidecarStore } from '../../db/files/sidecar-store.ts';
import { toSidecar } from '../../db/files/sidecar-text.ts';
import type { SessionRow } from '../../db/stores.ts';
import { planAttachments } from './attachments.ts';
import type { Conversation, Loaded, Source } from './conversation.ts';
import { addProblem, type ImportReport } from './report.ts';
import { completedSidecar, importedSidecar } from './sidecar.ts';

/** A file and its name here. */
export interface Attached {
  file: SourceFile;
  name: string;
}

export interface SessionFiles {
  /** Which files come with a conversation, and the names that these have here in it. */
  plan(conversation: Conversation, loaded: Loaded): Promise<{ loaded: Loaded; attached: Attached[] }>;
  /** @param touched the session went on here before it had its files: what it has is completed, and nothing replaced */
  write(
    conversation: Conversation,
    loaded: Loaded,
    session: SessionRow,
    attached: readonly Attached[],
    touched: { wasEdited: boolean } | null,
  ): Promise<void>;
}

export function createSessionFiles(
  source: Source,
  { sidecars, paths }: { sidecars: SidecarStore; paths: Paths },
  report: ImportReport,
): SessionFiles {
  async function writeSidecar(
    conversation: Conversation,
    loaded: Loaded,
    session: SessionRow,
    touched: { wasEdited: boolean } | null,
  ): Promise<void> {
    const { session_id: sessionId } = session;
    const model = loaded.header?.model ?? conversation.summary?.model ?? null;
    const origin = { home: source.home, session_id: conversation.id, model: typeof model === 'string' ? model : null };
    const wanted = importedSidecar(session, loaded, loaded.rows, origin);
    const there = touched ? await sidecars.read(sessionId) : null;
    if (touched && there?.kind === 'found') {
      await sidecars.save(sessionId, completedSidecar(there.sidecar, wanted, touched.wasEdited));
      return;
    }
    // Behind an edit it is cut by whoever reads it next.
    const header = touched?.wasEdited ? { ...wanted.header, edit_number: 0 } : wanted.header;
    await sidecars.save(sessionId, toSidecar(header, wanted.rows, wanted));
  }

  return {
    async plan(conversation, loaded) {
      const own = await conversation.attachments(loaded.before?.parts.map(({ id }) => id) ?? []);
      if (own.length === 0 && source.roots.length === 0) return { loaded, attached: [] };
      const plan = await planAttachments(loaded.rows, loaded.header?.pending_attachments, own, source.roots);
      for (const name of plan.missing) {
        const message = `the attachment ${JSON.stringify(name)} is not there`;
        addProblem(report, { id: conversation.id, code: 'attachment', message });
      }
      const { rows, pending } = plan;
      const header = pending ? { ...loaded.header, pending_attachments: pending } : loaded.header;
      return { loaded: { ...loaded, header, rows }, attached: plan.files };
    },

    async write(conversation, loaded, session, attached, touched) {
      const { session_id: sessionId } = session;
      await writeSidecar(conversation, loaded, session, touched);
      const told = (code: 'journal' | 'attachment', name: string, why: 'too_big' | 'gone'): void => {
        const message = `the ${code} ${JSON.stringify(name)} ${why === 'too_big' ? 'is too big' : 'cannot be read'}`;
        addProblem(report, { id: conversation.id, code, message });
      };
      for (const journal of await conversation.journals()) {
        const copied = await copyJournal(paths, journal, sessionId, conversation.id);
        if (copied === 'copied') report.journals += 1;
        else if (copied !== 'there') told('journal', journal.file.name, copied);
      }
      for (const { file, name } of attached) {
        const copied = await copyAttachment(paths, sessionId, file, name);
        if (copied === 'copied') report.attachments += 1;
        else if (copied !== 'there') told('attachment', file.name, copied);
      }
    },
  };
}
