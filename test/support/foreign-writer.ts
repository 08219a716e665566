/**
 * Another program that writes into our home, as hermes-webui and its agent do: a session's sidecar in their format,
 * rows of the state DB without our ids, run journals of version 1. All of it behind the server's back.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';

/** A row as those programs have it: any fields. */
export type ForeignRow = { role: string; content: unknown; timestamp?: number } & Record<string, unknown>;

export interface ForeignWriter {
  /** The sidecar as it stands, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever stands there.
  sidecar(): Promise<any>;
  /** Replaces it: their fields, what is named here, and these rows. */
  writeSidecar(rows: readonly ForeignRow[], fields?: Record<string, unknown>): Promise<void>;
  /** Appends rows to the state DB, as the agent does: no ids of ours, structured content behind a mark. */
  appendRows(rows: readonly ForeignRow[]): void;
  /** All rows of the session in the state DB. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  stateRows(): any[];
  /** Appends records of version 1 to a run's journal. */
  journal(runId: string, events: readonly [event: string, payload: object, terminal?: string][]): Promise<void>;
  journalFile(runId: string): string;
}

export function createForeignWriter(home: string, sessionId: string): ForeignWriter {
  const file = path.join(home, 'sessions', `${sessionId}.json`);
  const journalFile = (runId: string) => path.join(home, 'sessions', '_run_journal', sessionId, `${runId}.jsonl`);
  const seqs = new Map<string, number>();

  function withDb<T>(work: (db: Database.Database) => T): T {
    const db = new Database(path.join(home, 'state.db'), { timeout: 2000 });
    try {
      return work(db);
    } finally {
      db.close();
    }
  }

  return {
    sidecar: async () => JSON.parse(await readFile(file, 'utf8')),

    async writeSidecar(rows, { context_messages, ...fields } = {}) {
      const sidecar = {
        session_id: sessionId,
        title: 'From elsewhere',
        active_stream_id: null,
        pending_user_message: null,
        pending_attachments: [],
        pending_started_at: null,
        pending_user_source: null,
        ...fields,
        message_count: rows.length,
        messages: rows,
        tool_calls: [],
        ...(context_messages ? { context_messages } : {}),
      };
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, JSON.stringify(sidecar, null, 2));
    },

    appendRows: (rows) =>
      withDb((db) => {
        const insert = db.prepare(
          `INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, reasoning)
           VALUES (@sessionId, @role, @content, @toolCallId, @toolCalls, @name, @timestamp, @reasoning)`,
        );
        for (const row of rows) {
          insert.run({
            sessionId,
            role: row.role,
            content: typeof row.content === 'string' ? row.content : `\0json:${JSON.stringify(row.content)}`,
            toolCallId: row.tool_call_id ?? null,
            toolCalls: row.tool_calls ? JSON.stringify(row.tool_calls) : null,
            name: row.name ?? null,
            timestamp: row.timestamp ?? 0,
            reasoning: row.reasoning ?? null,
          });
        }
      }),

    stateRows: () =>
      withDb((db) => db.prepare('SELECT * FROM messages WHERE session_id = ? ORDER BY id').all(sessionId)),

    async journal(runId, events) {
      await mkdir(path.dirname(journalFile(runId)), { recursive: true });
      let text = '';
      for (const [event, payload, terminal] of events) {
        const seq = (seqs.get(runId) ?? 0) + 1;
        seqs.set(runId, seq);
        const record = {
          version: 1,
          event_id: `${runId}:${seq}`,
          seq,
          run_id: runId,
          session_id: sessionId,
          event,
          type: event,
          created_at: 1_700_000_000 + seq,
          terminal: terminal !== undefined,
          terminal_state: terminal ?? null,
          payload,
        };
        text += `${JSON.stringify(record)}\n`;
      }
      await writeFile(journalFile(runId), text, { flag: 'a' });
    },

    journalFile,
  };
}
