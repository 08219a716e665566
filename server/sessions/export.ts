/** Export: what is displayed and settled of a session as a file to be kept, read, or imported again (ED5). */
import type { SidecarRow } from '../../db/files/sidecar-store.ts';
import { type DocumentSession, documentMessage, writeDocument } from '../core/session-document.ts';
import type { Message } from '../core/terms.ts';
import { wellFormedJson } from '../core/text.ts';
import { HTML_POLICY, toHtml } from './export-html.ts';
import { toMarkdown } from './export-markdown.ts';
import { attachment, fileName } from './export-words.ts';
import type { ReadSettled } from './settled.ts';
import { usageOf } from './view.ts';

export type ExportFormat = 'json' | 'md' | 'html';

export interface ExportFile {
  contentType: string;
  /** Value of `Content-Disposition`. */
  disposition: string;
  /** Value of `Content-Security-Policy` for a browser that shows it all the same; null for the server's own. */
  policy: string | null;
  text: string;
}

/** @throws AppError session_not_found */
export type Export = (sessionId: string, format: ExportFormat) => Promise<ExportFile>;

const TYPES = { json: 'application/json', md: 'text/markdown', html: 'text/html' } as const;
const WRITERS = { json: writeDocument, md: toMarkdown, html: toHtml } as const;

export interface ExportParts {
  readSettled: ReadSettled;
  /** Names of a session's attachments by their ids. */
  attachmentNames(sessionId: string): Promise<Map<string, string>>;
}

export function createExport({ readSettled, attachmentNames }: ExportParts): Export {
  /** The files stay here, and their ids mean nothing elsewhere: a document has their names. */
  async function withNames(sessionId: string, messages: Message[]): Promise<Message[]> {
    if (!messages.some(({ attachments }) => attachments)) return messages;
    const names = await attachmentNames(sessionId);
    return messages.map((message) =>
      message.attachments ? { ...message, attachments: message.attachments.map((id) => names.get(id) ?? id) } : message,
    );
  }

  return async (sessionId, format) => {
    const { session, rows } = await readSettled(sessionId);
    const head: DocumentSession = {
      title: session.title,
      title_source: session.title_source,
      model: session.model,
      created_at: session.created_at,
      usage: usageOf(session),
    };
    const messages = await withNames(sessionId, rows.map(messageOf));
    return {
      contentType: `${TYPES[format]}; charset=utf-8`,
      disposition: attachment(fileName(session.title, format)),
      policy: format === 'html' ? `${HTML_POLICY}; sandbox; frame-ancestors 'none'` : null,
      text: WRITERS[format](wellFormedJson(head), messages),
    };
  };
}

/** How JSON writes what is not well formed: halves of surrogate pairs, and NUL. */
const MALFORMED = /\\u(?:d[89a-f]|0000)/i;

/** An import makes text well formed; so that the next export is the same, this one does too. */
function messageOf(row: SidecarRow): Message {
  const message = JSON.parse(row.json) as Message;
  return documentMessage(MALFORMED.test(row.json) ? wellFormedJson(message) : message);
}
