/**
 * The state DB of a home that is imported: of Hermes, or of another Turnkeep. It is only read, a session at a time, by a
 * connection that asks once and not before each step whether the file is still the same one.
 */
import type { RawRow } from '../server/core/reconcile/row.ts';
import type { StateSummary } from './files/foreign/summary.ts';
import { columnOr } from './foreign/columns.ts';
import { createForeignConnection, type ForeignConnection, type OpenForeign } from './foreign/connection.ts';
import { readRows } from './foreign/message-rows.ts';
import { readSummaries } from './foreign/session-rows.ts';
import { APPLICATION_ID } from './our-schema.ts';
import { toRawRow } from './rows.ts';
import { storageTroubleKind } from './storage-trouble.ts';
import type { Project } from './stores.ts';
import { contentOf, parsedOr } from './structured-content.ts';

/** A session of the source, with what only some builds say of one. */
export interface SourceSession extends StateSummary {
  title_source: string | null;
  project_id: string | null;
  updated_at: number | null;
  draft: string;
  context_used: number | null;
  context_length: number | null;
  /** Of a Turnkeep home: the last edit. */
  edit_number: number;
  /** Changes whenever its rows do. */
  rowMark: string;
}

export interface ImportSource {
  /** Whose it is; `none` where there is no database with sessions. @throws StorageTrouble */
  owner(): Promise<'turnkeep' | 'other' | 'none'>;
  sessions(): Promise<Map<string, SourceSession>>;
  projects(): Promise<Project[]>;
  /** Prompts that wait in a Turnkeep home, by session. */
  waiting(): Promise<Set<string>>;
  /** Rows that people may see. */
  rows(sessionId: string): Promise<RawRow[]>;
  /** What a model is given where that is not the rows that are shown; null where it is. */
  context(sessionId: string): Promise<RawRow[] | null>;
  close(): Promise<void>;
}

type Values = Record<string, unknown>;

/** @param copies a folder of our own, for a private copy where the original cannot be read without leaving traces */
export function openImportSource(file: string, copies: string, sleep: (ms: number) => Promise<void>): ImportSource {
  const connection = createForeignConnection({ file, copies, sleep });
  let pinned: { db: OpenForeign; left: number } | null = null;
  let owner: 'turnkeep' | 'other' | 'none' | null = null;

  /** The same connection without a look at the file before each step. */
  const steady: ForeignConnection = {
    ...connection,
    async use<T>(work: (db: OpenForeign) => T) {
      if (pinned && pinned.left > 0) {
        pinned.left -= 1;
        try {
          return work(pinned.db);
        } catch (error) {
          if (storageTroubleKind(error) !== 'busy') throw error;
        }
      }
      return connection.use((db) => {
        pinned = { db, left: STEADY };
        return work(db);
      });
    },
  };

  const values = async (text: (db: OpenForeign) => string | null, ...given: unknown[]): Promise<Values[]> =>
    (await steady.use((db) => {
      const statement = text(db);
      return statement === null ? [] : (db.prepare(statement).all(...given) as Values[]);
    })) ?? [];

  const ownerOf = async (): Promise<'turnkeep' | 'other' | 'none'> => {
    owner ??=
      (await steady.use((db) => {
        if (!db.columns.sessions.has('id') || !db.columns.messages.has('session_id')) return 'none' as const;
        const [{ application_id: id }] = db.prepare('PRAGMA application_id').all() as [{ application_id: number }];
        return id === APPLICATION_ID ? ('turnkeep' as const) : ('other' as const);
      })) ?? 'none';
    return owner;
  };

  return {
    owner: ownerOf,

    async sessions() {
      if ((await ownerOf()) === 'none') return new Map();
      const more = await values(({ columns: { sessions } }) => {
        const fields = [
          'title_source',
          'project_id',
          'updated_at',
          'draft',
          'context_used',
          'context_length',
          'edit_number',
          'hidden',
        ];
        return `SELECT id, ${fields.map((name) => columnOr(sessions, name)).join(', ')} FROM sessions`;
      });
      const marks = await values(({ columns: { messages } }) => {
        const live = messages.has('active') ? 'sum(coalesce(active, 1))' : '0';
        return `SELECT session_id AS id, count(*) || ' ' || max(rowid) || ' ' || ${live} AS mark FROM messages GROUP BY session_id`;
      });
      const isOurs = (await ownerOf()) === 'turnkeep';
      const moreOf = new Map(more.map((row) => [row.id, row]));
      const markOf = new Map(marks.map((row) => [row.id, row.mark as string]));
      // Whatever another program calls a session: it gets an id here that names it.
      const found = await readSummaries(steady, (id) => id !== '');
      return new Map(
        found.map((summary) => {
          const row = moreOf.get(summary.session_id) ?? {};
          const session: SourceSession = {
            ...summary,
            ...(isOurs ? asOurs(summary, row.hidden === 1) : {}),
            title_source: textIn(row.title_source),
            project_id: textIn(row.project_id),
            updated_at: numberIn(row.updated_at),
            draft: textIn(row.draft) ?? '',
            context_used: numberIn(row.context_used),
            context_length: numberIn(row.context_length),
            edit_number: numberIn(row.edit_number) ?? 0,
            rowMark: markOf.get(summary.session_id) ?? '',
          };
          return [summary.session_id, session];
        }),
      );
    },

    async projects() {
      if ((await ownerOf()) !== 'turnkeep') return [];
      const rows = await values(() => 'SELECT project_id, name, color FROM projects ORDER BY created_at');
      return rows as unknown as Project[];
    },

    async waiting() {
      if ((await ownerOf()) !== 'turnkeep') return new Set();
      const rows = await values(
        () => "SELECT DISTINCT target_session_id AS id FROM session_admissions WHERE status = 'queued'",
      );
      return new Set(rows.map((row) => row.id as string));
    },

    async rows(sessionId) {
      if ((await ownerOf()) === 'turnkeep') {
        const rows = await values(() => OURS, sessionId);
        return rows.map((row) => toRawRow(row as Parameters<typeof toRawRow>[0]));
      }
      const found: RawRow[] = [];
      for await (const step of readRows(steady, sessionId)) found.push(...step);
      return found;
    },

    async context(sessionId) {
      if ((await ownerOf()) !== 'other') return null;
      const rows = await values(({ columns: { messages } }) => {
        // Only a build that archives or hides rows gives its model others than it shows.
        if (!messages.has('compacted') && !messages.has('display_kind')) return null;
        const fields = ['tool_call_id', 'tool_calls', 'tool_name', 'timestamp', 'active', 'compacted', 'display_kind'];
        const list = ['role', 'content', ...fields.map((name) => columnOr(messages, name))].join(', ');
        return `SELECT ${list} FROM messages WHERE session_id = ? ORDER BY rowid`;
      }, sessionId);
      const isOther = rows.some((row) => row.display_kind === 'hidden' || (row.active === 0 && row.compacted === 1));
      return isOther ? rows.filter((row) => row.active !== 0).map(toContextRow) : null;
    },

    close: () => connection.close(),
  };
}

/** What a home of ours says of a session by other means than Hermes. */
const asOurs = (
  { parent_session_id, source }: StateSummary,
  hidden: boolean,
): Pick<StateSummary, 'hidden' | 'kind'> => ({
  hidden,
  kind: parent_session_id !== null && source !== 'fork' ? 'continuation' : 'root',
});

/** Steps after which the file is looked at again. */
const STEADY = 400;

/** Rows of a state DB of ours, named as our own reading names them. */
const OURS = `SELECT id, role, content, tool_call_id AS toolCallId, tool_calls AS toolCalls, tool_name AS toolName,
  timestamp, reasoning, message_id AS messageId, run_id AS runId, extra FROM messages
  WHERE session_id = ? AND active = 1 AND coalesce(display_kind, '') <> 'hidden' ORDER BY id`;

const textIn = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const numberIn = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;

function toContextRow(values: Values): RawRow {
  const calls = textIn(values.tool_calls);
  return {
    role: String(values.role),
    content: contentOf(values.content),
    timestamp: values.timestamp,
    ...(calls ? { tool_calls: parsedOr(calls) } : {}),
    ...(textIn(values.tool_call_id) ? { tool_call_id: values.tool_call_id } : {}),
    ...(textIn(values.tool_name) ? { name: values.tool_name } : {}),
  };
}
