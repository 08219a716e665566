/** Records of `messages`: the columns that a transcript row fills, and how many of them are appended at once. */
import { sql } from 'drizzle-orm';
import type { Db } from './client.ts';
import type { toMessageRecord } from './rows.ts';
import { messages } from './schema.ts';

export type MessageRecord = ReturnType<typeof toMessageRecord>;

/** All of them but the session's. */
export const MESSAGE_COLUMNS = [
  'role',
  'content',
  'toolCallId',
  'toolCalls',
  'toolName',
  'timestamp',
  'tokenCount',
  'finishReason',
  'reasoning',
  'displayKind',
  'messageId',
  'runId',
  'extra',
] as const;

const COLUMNS = ['sessionId', ...MESSAGE_COLUMNS] as const;
const NAMES = sql.raw(COLUMNS.map((column) => messages[column].name).join());
const VALUES = sql.raw(COLUMNS.map((_, at) => `value ->> ${at}`).join());

/** Rows that one statement takes: one for each row would cost a long transcript several times as much. */
const STEP = 1_000;
/** Characters after which it takes no more: all of them are one text first, and texts have an end. */
const STEP_CHARS = 8_000_000;

/** Appends records of which none is there yet, inside a transaction of the caller. */
export function insertRecords<Row>(db: Db, rows: readonly Row[], toRecord: (row: Row) => MessageRecord): void {
  let values: string[] = [];
  let chars = 0;
  const insert = (): void => {
    const list = `[${values.join()}]`;
    values = [];
    chars = 0;
    db.run(sql`INSERT INTO messages (${NAMES}) SELECT ${VALUES} FROM json_each(${list})`);
  };
  for (const row of rows) {
    const record = toRecord(row);
    const text = JSON.stringify(COLUMNS.map((column) => record[column] ?? null));
    values.push(text);
    chars += text.length;
    if (values.length === STEP || chars > STEP_CHARS) insert();
  }
  if (values.length > 0) insert();
}
