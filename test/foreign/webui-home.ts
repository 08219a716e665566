/** A home as hermes-webui leaves it: `sessions/` with sidecars, `_index.json`, backups, deletions, run and turn journals. */
import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export type WebuiRow = { role: string; content: unknown; timestamp?: number } & Record<string, unknown>;

export interface WebuiHome {
  folder: string;
  sessions: string;
  /** Saves a sidecar as its writer does: a temporary file, renamed; then the index. */
  save(id: string, rows: readonly WebuiRow[], fields?: Record<string, unknown>): void;
  backup(id: string, rows: readonly WebuiRow[], fields?: Record<string, unknown>): void;
  index(): void;
  tombstones(...ids: string[]): void;
  journal(
    id: string,
    run: string,
    events: readonly [event: string, payload: object, terminal?: string][],
    at?: number,
  ): void;
  turns(id: string, events: readonly Record<string, unknown>[], pid?: number): void;
  write(name: string, text: string): void;
}

export function openWebuiHome(folder: string): WebuiHome {
  const sessions = path.join(folder, 'sessions');
  mkdirSync(sessions, { recursive: true });
  const listed = new Map<string, Record<string, unknown>>();

  const write = (name: string, text: string): void => {
    const file = path.join(sessions, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(`${file}.tmp.1.1`, text);
    renameSync(`${file}.tmp.1.1`, file);
  };

  const textOf = (id: string, rows: readonly WebuiRow[], fields: Record<string, unknown>): string => {
    const { context_messages, anchor_activity_scenes, ...scalars } = fields;
    return JSON.stringify(
      {
        session_id: id,
        title: 'Untitled',
        workspace: '/work-folder',
        created_workspace: null,
        model: 'm-2',
        model_provider: 'p',
        profile: null,
        project_id: 'their-project',
        created_at: 1_700_000_000.25,
        updated_at: 1_700_000_500.5,
        pinned: false,
        archived: false,
        read_only: false,
        input_tokens: 11,
        output_tokens: 12,
        estimated_cost: 0.5,
        context_length: 1000,
        active_stream_id: null,
        pending_user_message: null,
        pending_attachments: [],
        pending_started_at: null,
        pending_user_source: null,
        truncation_watermark: null,
        truncation_boundary: null,
        parent_session_id: null,
        ...scalars,
        message_count: rows.length,
        anchor_scene_index: {},
        messages: rows,
        tool_calls: [],
        anchor_activity_scenes: anchor_activity_scenes ?? {},
        ...(context_messages ? { context_messages } : {}),
      },
      null,
      2,
    );
  };

  const home: WebuiHome = {
    folder,
    sessions,
    save(id, rows, fields = {}) {
      write(`${id}.json`, textOf(id, rows, fields));
      listed.set(id, { session_id: id, title: 'Untitled', updated_at: 1_700_000_500.5, ...fields });
    },
    backup: (id, rows, fields = {}) => write(`${id}.json.bak`, textOf(id, rows, fields)),
    index: () => write('_index.json', JSON.stringify([...listed.values()])),
    tombstones: (...ids) => write('_deleted_webui_sessions.json', JSON.stringify({ version: 1, ids })),
    journal(id, run, events, at = 1_700_000_000) {
      let text = '';
      for (const [n, [event, payload, terminal]] of events.entries()) {
        const seq = n + 1;
        text += `${JSON.stringify({ version: 1, event_id: `${run}:${seq}`, seq, run_id: run, session_id: id, event, type: event, created_at: at + seq, terminal: terminal !== undefined, terminal_state: terminal ?? null, payload })}\n`;
      }
      write(path.join('_run_journal', id, `${run}.jsonl`), text);
    },
    turns(id, events, pid = 7) {
      const file = path.join(sessions, '_turn_journal', `${id}~${pid}.jsonl`);
      mkdirSync(path.dirname(file), { recursive: true });
      for (const event of events) appendFileSync(file, `${JSON.stringify({ version: 1, session_id: id, ...event })}\n`);
    },
    write,
  };
  return home;
}

/** Every file below a folder: its bytes and when it was last changed. */
export function stateBelow(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    const { mtimeMs } = statSync(file);
    const digest = entry.isFile() ? createHash('sha256').update(readFileSync(file)).digest('hex') : '-';
    found[path.relative(folder, file)] = `${mtimeMs} ${digest}`;
  }
  return found;
}
