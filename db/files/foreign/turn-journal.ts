/**
 * Turn journals of another program: `_turn_journal/<session>~<pid>.jsonl`, one JSON object a line, `version` 1, with
 * `event`, `turn_id`, `stream_id`, `created_at` and, on `submitted`, the prompt. They tell of a prompt that was accepted and
 * reached no other file.
 */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { isMissing } from '../atomic.ts';

/** A prompt that was accepted and whose turn has no end. */
export interface OpenTurn {
  streamId: string;
  text: string;
  attachments: unknown[];
  /** Epoch seconds. */
  startedAt: number;
}

type Line = Record<string, unknown> & { created_at: number; turn_id: string; event: string };

function linesOf(text: string, sessionId: string): Line[] {
  return text.split('\n').flatMap((line) => {
    try {
      const value = JSON.parse(line);
      const isTurn = value?.version === 1 && value.session_id === sessionId && typeof value.turn_id === 'string';
      return isTurn && typeof value.created_at === 'number' && typeof value.event === 'string' ? [value as Line] : [];
    } catch (error) {
      if (error instanceof SyntaxError) return [];
      throw error;
    }
  });
}

/**
 * The newest turn of a session, if it was accepted and neither completed nor interrupted since.
 * @param folder the folder of sidecars
 */
export async function openTurn(folder: string, sessionId: string): Promise<OpenTurn | null> {
  const journals = path.join(folder, '_turn_journal');
  let names: string[];
  try {
    names = await readdir(journals);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  const own = names.filter((name) => name === `${sessionId}.jsonl` || shardOf(name) === sessionId).sort();
  const texts = await Promise.all(own.map((name) => readFile(path.join(journals, name), 'utf8').catch(() => '')));
  const lines = texts.flatMap((text) => linesOf(text, sessionId));
  // Of lines of one time the later one in the files is the newer.
  lines.sort((a, b) => a.created_at - b.created_at);
  const submitted = lines.findLast((line) => line.event === 'submitted');
  if (!submitted || typeof submitted.content !== 'string') return null;
  const ends = lines.some(
    ({ turn_id, event }) => turn_id === submitted.turn_id && (event === 'completed' || event === 'interrupted'),
  );
  if (ends) return null;
  return {
    streamId: typeof submitted.stream_id === 'string' ? submitted.stream_id : '',
    text: submitted.content,
    attachments: Array.isArray(submitted.attachments) ? submitted.attachments : [],
    startedAt: submitted.created_at,
  };
}

/** The session that a file of one process is of. */
const shardOf = (name: string): string | null => /^(.+)~\d+\.jsonl$/.exec(name)?.[1] ?? null;
