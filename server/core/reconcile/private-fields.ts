/**
 * Fields of rows that other programs write for themselves and for providers: kept in the file, never shown to anybody.
 * Fields that begin with an underscore are private as well.
 */
export const PRIVATE_FIELDS: ReadonlySet<string> = new Set([
  'api_content',
  'reasoning_content',
  'reasoning_details',
  'codex_reasoning_items',
  'codex_message_items',
  'state_db_row_id',
]);
