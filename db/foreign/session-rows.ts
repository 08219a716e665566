/**
 * Rows of `sessions` of another program's state.db as summaries. What is hidden, and what a session is of its parent,
 * is said as its writer says it: sources of helpers and jobs, markers in `model_config`, `end_reason` of the parent.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isSessionId } from '../../server/core/ids.ts';
import { isHiddenSource, type StateSummary } from '../files/foreign/summary.ts';
import type { ForeignConnection, OpenForeign } from './connection.ts';

const WANTED = [
  'source',
  'title',
  'model',
  'cwd',
  'parent_session_id',
  'model_config',
  'started_at',
  'ended_at',
  'end_reason',
  'message_count',
  'rewind_count',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'reasoning_tokens',
  'estimated_cost_usd',
  'actual_cost_usd',
  'archived',
  'pinned',
  'hidden',
  'last_activity_at',
];

/** Sessions that one step takes. */
const STEP = 500;

type Values = Record<string, unknown>;

const numberIn = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;
const textIn = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const countIn = (value: unknown): number => Math.max(0, Math.trunc(numberIn(value) ?? 0));

/** The statement for one build of the database. @param where names the rows of `s` */
function statementOf({ columns }: OpenForeign, where: string): string {
  const has = (name: string) => columns.sessions.has(name);
  const fields = WANTED.map((name) => (has(name) ? `s."${name}"` : `NULL AS "${name}"`));
  const parent = has('parent_session_id')
    ? `LEFT JOIN sessions p ON p.id = s.parent_session_id`
    : 'LEFT JOIN sessions p ON 0';
  const of = (name: string) => (has(name) ? `p."${name}"` : 'NULL');
  const messages = columns.messages.has('session_id') && columns.messagesBySession;
  const newest =
    messages && columns.messages.has('timestamp')
      ? '(SELECT max(m.timestamp) FROM messages m WHERE m.session_id = s.id)'
      : 'NULL';
  const count =
    messages && !has('message_count') ? '(SELECT count(*) FROM messages m WHERE m.session_id = s.id)' : 'NULL';
  return `SELECT s.rowid AS row, s.id, ${fields.join(', ')}, p.id AS parent, ${of('end_reason')} AS parent_end,
    ${of('ended_at')} AS parent_ended, ${newest} AS newest, ${count} AS counted
    FROM sessions s ${parent} WHERE ${where}`;
}

/** @returns null for a row whose id is none */
function toSummary(values: Values, isId: (id: string) => boolean): StateSummary | null {
  const id = values.id;
  if (typeof id !== 'string' || !isId(id)) return null;
  const source = textIn(values.source) ?? 'cli';
  const started = numberIn(values.started_at) ?? numberIn(values.newest) ?? 0;
  const newest = numberIn(values.newest);
  const reasoning = countIn(values.reasoning_tokens);
  const cached = countIn(values.cache_read_tokens);
  const cost = numberIn(values.actual_cost_usd) ?? numberIn(values.estimated_cost_usd);
  const kind = kindOf(values, source);
  return {
    session_id: id,
    source,
    title: textIn(values.title),
    model: textIn(values.model),
    workspace: textIn(values.cwd),
    created_at: started,
    activity: newest ?? numberIn(values.last_activity_at) ?? started,
    message_count: countIn(values.message_count ?? values.counted),
    pinned: values.pinned === 1,
    archived: values.archived === 1,
    parent_session_id: textIn(values.parent_session_id),
    usage: {
      input_tokens: countIn(values.input_tokens),
      output_tokens: countIn(values.output_tokens),
      ...(cached > 0 ? { cached_tokens: cached } : {}),
      ...(reasoning > 0 ? { reasoning_tokens: reasoning } : {}),
      ...(cost !== null && cost >= 0 ? { cost_usd: cost } : {}),
    },
    kind,
    hidden: values.hidden === 1 || isHiddenSource(source) || kind === 'child',
    mark: JSON.stringify([values.message_count, values.rewind_count, values.ended_at, values.end_reason]),
  };
}

function kindOf(values: Values, source: string): StateSummary['kind'] {
  // Of a parent that is gone nothing is left to be a child of.
  if (textIn(values.parent_session_id) === null || values.parent === null) return 'root';
  const markers = markersOf(values.model_config);
  if (markers.has('_branched_from') || values.parent_end === 'branched') return 'branch';
  if (markers.has('_reset_from')) return 'reset';
  if (markers.has('_delegate_from') || isHiddenSource(source)) return 'child';
  if (values.parent_end !== 'compression') return 'child';
  // Helpers of the parent began before it ended.
  const [started, ended] = [numberIn(values.started_at), numberIn(values.parent_ended)];
  return started === null || ended === null || started >= ended ? 'continuation' : 'child';
}

function markersOf(config: unknown): Set<string> {
  if (typeof config !== 'string' || !config.includes('_from')) return new Set();
  try {
    const value: unknown = JSON.parse(config);
    if (typeof value !== 'object' || value === null) return new Set();
    return new Set(Object.entries(value).flatMap(([key, of]) => (of ? [key] : [])));
  } catch (error) {
    if (error instanceof SyntaxError) return new Set();
    throw error;
  }
}

/** @param isId which ids count: by default those that an address can name */
export async function readSummaries(
  connection: ForeignConnection,
  isId: (id: string) => boolean = isSessionId,
): Promise<StateSummary[]> {
  const found: StateSummary[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const from: number = after;
    const rows: Values[] | null = await connection.use((db) => {
      if (!db.columns.sessions.has('id')) return [];
      return db.prepare(`${statementOf(db, 's.rowid > ?')} ORDER BY s.rowid LIMIT ${STEP}`).all(from) as Values[];
    });
    for (const row of rows ?? []) {
      const summary = toSummary(row, isId);
      if (summary) found.push(summary);
    }
    after = rows && rows.length === STEP ? (rows.at(-1)!.row as number) : null;
    await nextTurn();
  }
  return found;
}

export async function readSummary(connection: ForeignConnection, sessionId: string): Promise<StateSummary | null> {
  const row = await connection.use((db) =>
    db.columns.sessions.has('id') ? (db.prepare(statementOf(db, 's.id = ?')).get(sessionId) as Values) : null,
  );
  return row ? toSummary(row, isSessionId) : null;
}
