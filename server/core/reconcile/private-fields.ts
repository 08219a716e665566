/**
 * Fields of rows that other programs write for themselves and for providers, and that recovery keeps beside a marker: kept in
 * the file, never shown to anybody (RC9).
 */
export const PRIVATE_FIELDS: ReadonlySet<string> = new Set([
  'api_content',
  'reasoning_content',
  'reasoning_details',
  'codex_reasoning_items',
  'codex_message_items',
  'state_db_row_id',
]);

/** Whether a field of a row is for no person to see. */
export const isPrivateField = (name: string): boolean => name.startsWith('_') || PRIVATE_FIELDS.has(name);
