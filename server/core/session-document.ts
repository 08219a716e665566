/**
 * A session as a document of its own, to be kept or taken to another home: format `turnkeep.session`, version 1. It holds
 * what a person made and sees, and nothing that is only true here and now (id, revision, status, a folder of this machine), so
 * that what is exported, imported and exported again is the same, byte for byte (ED5).
 */
import { isPrivateField } from './reconcile/private-fields.ts';
import type { Message, Usage } from './terms.ts';

export const DOCUMENT_FORMAT = 'turnkeep.session';
export const DOCUMENT_VERSION = 1;

export interface DocumentSession {
  title: string | null;
  title_source: 'user' | 'llm' | 'derived' | null;
  model: string | null;
  /** Epoch seconds. */
  created_at: number;
  usage: Usage;
}

export interface SessionDocument {
  format: typeof DOCUMENT_FORMAT;
  version: typeof DOCUMENT_VERSION;
  session: DocumentSession;
  messages: Message[];
}

/** The fields of a message that we know, in the order in which they are written. */
const FIELDS = [
  'id',
  'role',
  'content',
  'timestamp',
  'run_id',
  'status',
  'tool_calls',
  'tool_call_id',
  'name',
  'is_error',
  'duration_s',
  'diff',
  'denied',
  'todos',
  'reasoning',
  'attachments',
  'model',
  'usage',
  'recovered',
  'error',
];
const SESSION_FIELDS = ['title', 'title_source', 'model', 'created_at', 'usage'];
const USAGE_FIELDS = [
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'cost_usd',
  'context_used',
  'context_length',
  'context_estimated',
];

/**
 * An object with the fields in a fixed order: those that are named, then the others by name. A field without a value is
 * left out, but for those that say so by null.
 */
function ordered(value: object, fields: readonly string[], keepNull: boolean): object {
  const known = new Map(Object.entries(value));
  const others = [...known.keys()].filter((field) => !fields.includes(field)).sort();
  const entries = [...fields, ...others]
    .filter((field) => known.has(field) && !isPrivateField(field))
    .map((field): [string, unknown] => [field, known.get(field)])
    .filter(([, item]) => item !== undefined && (keepNull || item !== null));
  return Object.fromEntries(entries);
}

/** A message as a document has it: without private fields, and always in the same order. */
export function documentMessage(message: Message): Message {
  const plain = ordered(message, FIELDS, false) as Message;
  if (plain.usage) plain.usage = ordered(plain.usage, USAGE_FIELDS, false) as Usage;
  return plain;
}

/** The text of a document: one line for each message, so that two of them can be compared. */
export function writeDocument(session: DocumentSession, messages: readonly Message[]): string {
  const head = ordered(session, SESSION_FIELDS, true) as DocumentSession;
  const body = { ...head, usage: ordered(head.usage, USAGE_FIELDS, false) };
  const rows = messages.map((message) => `\n    ${JSON.stringify(documentMessage(message))}`);
  return `{
  "format": ${JSON.stringify(DOCUMENT_FORMAT)},
  "version": ${DOCUMENT_VERSION},
  "session": ${JSON.stringify(body)},
  "messages": [${rows.join()}${rows.length ? '\n  ' : ''}]
}
`;
}
