/** An exported conversation (`turnkeep.session`) as something to be imported. Its shape is checked row by row. */
import { createHash } from 'node:crypto';
import type { SourceSession } from '../../db/import-source.ts';
import { NO_FENCES } from '../core/reconcile/reconcile.ts';
import type { RawRow } from '../core/reconcile/row.ts';
import { DOCUMENT_VERSION } from '../core/session-document.ts';
import type { Usage } from '../core/terms.ts';
import { wellFormedJson } from '../core/text.ts';
import type { Conversation } from './conversation.ts';
import { digestOf, toTranscript } from './transcript.ts';

const isRow = (row: unknown): row is RawRow =>
  typeof row === 'object' && row !== null && typeof (row as RawRow).role === 'string';

/**
 * A document has no id. What it began with stands for one, so that a longer one of the same conversation is known again.
 * @returns a string that says what is wrong with it
 */
export function documentConversation(document: Record<string, unknown>): Conversation | string {
  const { version, session, messages } = wellFormedJson(document);
  if (version !== DOCUMENT_VERSION) return `it is of version ${JSON.stringify(version)}, which this one does not know`;
  if (!Array.isArray(messages)) return 'it has no list of messages';
  const wrong = messages.findIndex((row) => !isRow(row));
  if (wrong >= 0) return `message ${wrong} is none`;
  const head = (typeof session === 'object' && session !== null ? session : {}) as Record<string, unknown>;
  const rows = toTranscript(messages as RawRow[], [], NO_FENCES);
  const beginning = JSON.stringify([head.created_at ?? null, rows[0]?.message.id ?? null, rows[0]?.shape ?? null]);
  const createdAt = typeof head.created_at === 'number' ? head.created_at : 0;
  const summary: SourceSession = {
    session_id: '',
    source: 'import',
    title: typeof head.title === 'string' ? head.title : null,
    title_source: typeof head.title_source === 'string' ? head.title_source : null,
    model: typeof head.model === 'string' ? head.model : null,
    // A document never chooses the folder in which an agent works.
    workspace: null,
    created_at: createdAt,
    activity: rows.at(-1)?.message.timestamp ?? createdAt,
    updated_at: null,
    message_count: rows.length,
    pinned: false,
    archived: false,
    hidden: false,
    parent_session_id: null,
    project_id: null,
    draft: '',
    kind: 'root',
    mark: '',
    rowMark: '',
    edit_number: 0,
    ...usageOf(head.usage),
  };
  return {
    id: createHash('sha256').update(beginning).digest('hex').slice(0, 32),
    keepsId: false,
    seen: digestOf(rows),
    summary,
    createdAt,
    waits: false,
    load: async () => ({ header: null, rows, tail: { tail: {} }, context: null, before: null }),
    attachments: async () => [],
    journals: async () => [],
  };
}

function usageOf(value: unknown): Pick<SourceSession, 'usage' | 'context_used' | 'context_length'> {
  const given = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const number = (name: string): number | null => {
    const found = given[name];
    return typeof found === 'number' && Number.isFinite(found) && found >= 0 ? found : null;
  };
  const usage: Usage = { input_tokens: number('input_tokens') ?? 0, output_tokens: number('output_tokens') ?? 0 };
  const [cached, reasoning, cost] = ['cached_tokens', 'reasoning_tokens', 'cost_usd'].map(number);
  if (cached) usage.cached_tokens = cached;
  if (reasoning) usage.reasoning_tokens = reasoning;
  if (cost !== null && cost !== undefined) usage.cost_usd = cost;
  return { usage, context_used: number('context_used'), context_length: number('context_length') };
}
