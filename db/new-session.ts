/** Sessions that have a transcript from their beginning: forks, imported documents, conversations of other homes. */
import type { Usage } from '../server/core/terms.ts';
import type { Db } from './client.ts';
import { sessions } from './schema.ts';
import { given, statement } from './statement.ts';

/** The columns of such a session. Times are epoch seconds. */
export interface NewSessionRow {
  id: string;
  source: string;
  model: string | null;
  parentSessionId: string | null;
  startedAt: number;
  messageCount: number;
  toolCallCount: number;
  usage: Usage | null;
  cwd: string | null;
  title: string | null;
  titleSource: string | null;
  projectId: string | null;
  archived: boolean;
  pinned: boolean;
  hidden: boolean;
  draft: string;
  updatedAt: number;
  lastActivityAt: number;
  lastMessageAt: number | null;
}

const PLAIN = [
  'id',
  'source',
  'model',
  'parentSessionId',
  'startedAt',
  'messageCount',
  'toolCallCount',
  'cwd',
  'title',
  'titleSource',
  'projectId',
  'draft',
  'updatedAt',
  'lastActivityAt',
  'lastMessageAt',
] as const;
const FLAGS = ['archived', 'pinned', 'hidden'] as const;
const COUNTS = [
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'reasoningTokens',
  'estimatedCostUsd',
  'contextUsed',
  'contextLength',
  'contextEstimated',
] as const;

const NEW_SESSION = statement((db) => {
  const values = Object.fromEntries([...PLAIN, ...FLAGS, ...COUNTS].map((column) => [column, given(column)]));
  // A session of generation 0 never ran and has no files; this one has a sidecar.
  return db
    .insert(sessions)
    .values({ ...values, runtimeRevision: 1, runtimeGeneration: 1 } as never)
    .prepare();
});

/** Inserts the row, inside a transaction of the caller, which knows that the id is free. */
export function insertNewSession(db: Db, { usage, archived, pinned, hidden, ...plain }: NewSessionRow): void {
  NEW_SESSION(db).run({
    ...plain,
    archived: archived ? 1 : 0,
    pinned: pinned ? 1 : 0,
    hidden: hidden ? 1 : 0,
    inputTokens: usage?.input_tokens ?? 0,
    outputTokens: usage?.output_tokens ?? 0,
    cacheReadTokens: usage?.cached_tokens ?? 0,
    reasoningTokens: usage?.reasoning_tokens ?? 0,
    estimatedCostUsd: usage?.cost_usd ?? null,
    contextUsed: usage?.context_used ?? null,
    contextLength: usage?.context_length ?? null,
    contextEstimated: usage?.context_estimated ? 1 : 0,
  });
}
