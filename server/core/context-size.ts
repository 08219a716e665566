/**
 * How much of a model's window a conversation takes, before anybody has counted it. Pure, and rough on purpose: each
 * provider cuts text into tokens in its own way, and none tells before it is asked.
 */
import type { Message } from './terms.ts';

/** A letter of ASCII is about a quarter of a token, any other sign about three quarters. */
const [PLAIN, WIDE] = [0.25, 0.75];
/** What a message takes besides its words: its role and its ends. */
const PER_MESSAGE = 4;

/** Tokens of a text, estimated. */
export function tokensOf(text: string): number {
  let wide = 0;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 0x7f) wide += 1;
  return Math.ceil((text.length - wide) * PLAIN + wide * WIDE);
}

/** Tokens of a row as a model is sent it, estimated. Its thoughts are not sent. */
export function tokensOfRow({ content, tool_calls }: Pick<Message, 'content' | 'tool_calls'>): number {
  let tokens = PER_MESSAGE + tokensOf(content);
  for (const call of tool_calls ?? []) {
    tokens += PER_MESSAGE + tokensOf(String(call?.function?.name ?? '')) + tokensOf(argumentsText(call));
  }
  return tokens;
}

/** Tokens of several rows. */
export const tokensOfRows = (rows: readonly Message[]): number => rows.reduce((sum, row) => sum + tokensOfRow(row), 0);

/** Rows of other programs may have anything there. */
function argumentsText(call: NonNullable<Message['tool_calls']>[number]): string {
  const text: unknown = call?.function?.arguments;
  return typeof text === 'string' ? text : (JSON.stringify(text ?? null) ?? '');
}
