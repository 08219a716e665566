/**
 * The error that a foreign run ended with, where its journal holds the words that its person was to read (JO5). It stands
 * in the place of a marker, which could only say that the turn ended early (RE4).
 */
import { markerId } from '../marker.ts';
import type { Message, TurnError, TurnErrorCode } from '../terms.ts';
import { isRecord, wellFormed } from '../text.ts';
import { type ForeignPlace, type ForeignRecord, secondsIn, textIn } from './records.ts';

export interface ForeignError {
  error: TurnError;
  /** The row to show. It has the id of the run's marker, since it takes its place. */
  row: Message;
}

/** What the types of foreign errors are called here. */
const CODES: Readonly<Record<string, [code: TurnErrorCode, retryable: boolean]>> = {
  rate_limit: ['rate_limited', true],
  quota_exhausted: ['quota', false],
  auth_mismatch: ['auth', false],
  gateway_auth_error: ['auth', false],
  credential_pool_empty: ['auth', false],
  model_not_found: ['model_not_found', false],
  compression_exhausted: ['context_too_long', false],
  no_response: ['empty_reply', true],
  tool_limit_reached: ['provider_error', false],
  cancelled: ['interrupted', true],
  interrupted: ['interrupted', true],
};
const OTHER: [code: TurnErrorCode, retryable: boolean] = ['provider_error', true];

/**
 * The error in a terminal record. Null unless the record is an `apperror` of this session twice over (its own session
 * and the transcript that it carries), its writer did not get to store it, and the last reply after the last prompt of
 * that transcript is an error with words.
 * @param at epoch seconds, for a row that has no time of its own
 */
export function errorOf(record: ForeignRecord, { sessionId, runId }: ForeignPlace, at: number): ForeignError | null {
  const { event, payload } = record;
  const { session } = payload;
  if (event !== 'apperror' || payload.session_id !== sessionId) return null;
  if (!isRecord(session) || session.session_id !== sessionId) return null;
  // What reached its transcript needs no journal, and would stand there twice.
  if (payload.terminal_session_persisted === true) return null;
  const reply = lastReply(session.messages);
  if (reply?._error !== true) return null;
  const words = wellFormed(wordsOf(reply.content)).trim();
  if (words === '') return null;
  const type = textIn(payload.type);
  const [code, retryable] = (Object.hasOwn(CODES, type) ? CODES[type] : undefined) ?? OTHER;
  const error: TurnError = { code, message: words, retryable };
  const row: Message = {
    id: markerId(runId),
    role: 'assistant',
    content: words,
    timestamp: secondsIn(reply.timestamp) ?? record.at ?? at,
    run_id: runId,
    status: 'error',
    recovered: true,
    error,
  };
  return { error, row };
}

/** The last assistant row behind the last prompt of an embedded transcript. */
function lastReply(messages: unknown): Record<string, unknown> | null {
  if (!Array.isArray(messages)) return null;
  const last = messages.findLast((row) => isRecord(row) && (row.role === 'user' || row.role === 'assistant'));
  return isRecord(last) && last.role === 'assistant' ? last : null;
}

/** The words of a row: its text, or those of its text parts. */
function wordsOf(content: unknown): string {
  if (!Array.isArray(content)) return textIn(content);
  return content.map((part) => (isRecord(part) ? textIn(part.text) : textIn(part))).join('');
}
