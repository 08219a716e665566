/**
 * Turn journals of another program: `_turn_journal/<session>~<pid>.jsonl`, one JSON object a line, `version` 1, with
 * `event`, `turn_id`, `stream_id`, `created_at` and, on `submitted`, the prompt. They tell of a prompt that was accepted and
 * reached no other file.
 */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { isMissing } from '../atomic.ts';
import { readPlainFile } from '../plain-file.ts';

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

export interface TurnJournals {
  /** The newest turn of a session, if it was accepted and neither completed nor interrupted since. */
  openTurn(sessionId: string): Promise<OpenTurn | null>;
}

/** @param folder the folder of sidecars */
export function createTurnJournals(folder: string): TurnJournals {
  const journals = path.join(folder, '_turn_journal');
  let listed: { state: string; names: Map<string, string[]> } = { state: '', names: new Map() };
  /** What the files of a session said when they were last read. */
  const read = new Map<string, { state: string; turn: OpenTurn | null }>();

  /** The files of each session, listed anew when one came or went. */
  async function namesOf(sessionId: string): Promise<string[]> {
    const state = await stateOf(journals);
    if (state !== listed.state) {
      const names = new Map<string, string[]>();
      for (const name of state === '-' ? [] : (await readdir(journals)).sort()) {
        const id = ownerOf(name);
        if (id !== null) names.set(id, [...(names.get(id) ?? []), name]);
      }
      listed = { state, names };
    }
    return listed.names.get(sessionId) ?? [];
  }

  return {
    async openTurn(sessionId) {
      const files = (await namesOf(sessionId)).map((name) => path.join(journals, name));
      if (files.length === 0) return null;
      const state = (await Promise.all(files.map(stateOf))).join(' ');
      const known = read.get(sessionId);
      if (known?.state === state) return known.turn;
      const texts = await Promise.all(
        files.map(async (file) => String((await readPlainFile(file).catch(() => null)) ?? '')),
      );
      const turn = newestOpen(texts.flatMap((text) => linesOf(text, sessionId)));
      read.set(sessionId, { state, turn });
      return turn;
    },
  };
}

function newestOpen(lines: Line[]): OpenTurn | null {
  // Of lines of one time the later one in the files is the newer.
  lines.sort((a, b) => a.created_at - b.created_at);
  const submitted = lines.findLast((line) => line.event === 'submitted');
  if (!submitted || typeof submitted.content !== 'string') return null;
  const hasEnded = lines.some(
    ({ turn_id, event }) => turn_id === submitted.turn_id && (event === 'completed' || event === 'interrupted'),
  );
  if (hasEnded) return null;
  return {
    streamId: typeof submitted.stream_id === 'string' ? submitted.stream_id : '',
    text: submitted.content,
    attachments: Array.isArray(submitted.attachments) ? submitted.attachments : [],
    startedAt: submitted.created_at,
  };
}

async function stateOf(file: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await stat(file, { bigint: true });
    return `${ino}:${size}:${mtimeNs}`;
  } catch (error) {
    if (isMissing(error)) return '-';
    throw error;
  }
}

/** The session that a file is of: `<session>~<pid>.jsonl`, or `<session>.jsonl` of older builds. */
const ownerOf = (name: string): string | null => /^(.+?)(?:~\d+)?\.jsonl$/.exec(name)?.[1] ?? null;
