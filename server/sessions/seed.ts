/** A new session that begins with a conversation which a client has brought. */
import type { Message, MessageRole } from '../core/terms.ts';
import { wellFormed } from '../core/text.ts';
import type { Copy, MakeCopy } from './copies.ts';

export interface SeedRow {
  role: Exclude<MessageRole, 'tool'>;
  content: string;
}

export interface SeedParts {
  makeCopy: MakeCopy;
  /** Epoch seconds. */
  now(): number;
  /** 32 hexadecimal digits, new each time. */
  newRunId(): string;
}

/** Fields of the session as they are stored: checked by the caller. @returns its id */
export type Seed = (
  session: { title: string | null; model: string | null; workspace: string | null; source: string },
  rows: readonly SeedRow[],
) => Promise<string>;

export function createSeed({ makeCopy, now, newRunId }: SeedParts): Seed {
  return async ({ title, model, workspace, source }, rows) => {
    const timestamp = now();
    const runId = newRunId();
    const messages = rows.map(
      ({ role, content }, index): Message => ({
        id: `${runId}.${index}`,
        role,
        content: wellFormed(content),
        timestamp,
      }),
    );
    const copy: Copy = {
      parent_session_id: null,
      title,
      title_source: title === null ? null : 'user',
      source,
      model,
      workspace,
      project_id: null,
      created_at: null,
      usage: null,
      rows: messages,
    };
    return (await makeCopy(copy, null)).session_id;
  };
}
