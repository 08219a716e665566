/**
 * `fs/read_text_file` and `fs/write_text_file`: files of the workspace for an agent, through the guards that hold for our
 * own tools (AC21, RU3, TL1, TL2). Reading asks nobody; writing asks the person, unless they just allowed it (AP1, AC20).
 */
import { readArguments } from '../../workspace/arguments.ts';
import type { Text } from '../../workspace/lines.ts';
import { sentence } from '../../workspace/path-words.ts';
import { MAX_EDIT_BYTES } from '../../workspace/replace.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import type { ClientParts } from './client-parts.ts';
import { recordOf } from './raw.ts';
import { notAllowed, notDone, notThere, unfit } from './refusals.ts';

export interface AgentFiles {
  /** Whole, or the lines from `line` (from 1) on, `limit` of them, with their ends. At most 4 MB. */
  readTextFile(params: unknown): Promise<{ content: string }>;
  /** Replaces the whole file; it may be new, and so may its folders. At most 4 MB. */
  writeTextFile(params: unknown, cancelled: AbortSignal): Promise<Record<string, never>>;
}

const MEGABYTES = MAX_EDIT_BYTES / 1024 / 1024;

export function createAgentFiles(
  parts: Pick<ClientParts, 'workspace' | 'signal' | 'justAllowed' | 'allow'>,
): AgentFiles {
  const { workspace, signal, justAllowed, allow } = parts;
  return {
    async readTextFile(params) {
      const { path, line, limit } = readRange(params);
      if (workspace === null) throw notThere(NO_WORKSPACE);
      const read = await workspace.readText(path, { line, limit, signal });
      if (!read.ok) throw notThere(sentence(read.problem, path));
      return { content: contentOf(read.text, path, line) };
    },

    async writeTextFile(params, cancelled) {
      const read = readArguments(params, { path: 'text', content: 'content' });
      if (!read.ok) throw unfit(read.problem);
      const { path } = read.values;
      const content = read.values.content.toWellFormed();
      if (workspace === null) throw notThere(NO_WORKSPACE);
      const bytes = Buffer.from(content);
      if (bytes.length > MAX_EDIT_BYTES) {
        throw unfit(`The content has ${bytes.length} bytes; ${MEGABYTES} MB are the most. Nothing was written.`);
      }
      // Nobody is asked about what cannot be done.
      const place = await workspace.place(path);
      if (!place.ok) throw unfit(sentence(place.problem, path));
      const current = justAllowed.hasWrite(place.name) ? await currentText(workspace, path, signal) : '';
      if (!justAllowed.useWrite(place.name, content, current)) {
        const args = { path: place.name, content };
        const decision = await allow({ name: 'write_file', effect: 'write' }, args, cancelled);
        if (!decision.ok) throw notAllowed(decision.result);
      }
      if (signal.aborted || cancelled.aborted) throw notAllowed(sentence('aborted', path));
      const written = await workspace.replace<never>(path, { create: true, signal }, () => ({ write: bytes }));
      if (written.ok !== true) throw notDone(sentence(written.ok === null ? 'aborted' : written.problem, path));
      return {};
    },
  };
}

/** What stands in a file; empty for what is no text, or not there yet. */
async function currentText(workspace: Workspace, path: string, signal: AbortSignal): Promise<string> {
  const read = await workspace.readText(path, { line: 1, limit: Number.POSITIVE_INFINITY, signal });
  return read.ok && read.text.kind === 'text' ? read.text.text : '';
}

export const NO_WORKSPACE = 'This session has no workspace, so its client has no files and runs nothing.';

function readRange(params: unknown): { path: string; line: number; limit: number } {
  const { path, line, limit } = recordOf(params);
  // Lines count from 1; some count from 0 and mean the first one.
  const read = readArguments(
    { path, line: line === 0 ? 1 : line, limit },
    { path: 'text', line: 'count?', limit: 'count?' },
  );
  if (!read.ok) throw unfit(read.problem);
  return { path: read.values.path, line: read.values.line ?? 1, limit: read.values.limit ?? Number.POSITIVE_INFINITY };
}

function contentOf(text: Text, path: string, line: number): string {
  const shown = JSON.stringify(path.slice(0, 200));
  switch (text.kind) {
    case 'text':
      return text.text;
    case 'past_end':
      if (line === 1) return '';
      throw unfit(`${shown} has ${text.total} lines; line ${line} is behind its end.`);
    case 'too_long':
      throw unfit(`${shown} is larger than ${MEGABYTES} MB from there on. Read less of it with "line" and "limit".`);
    case 'too_far':
      throw unfit(`Line ${line} of ${shown} lies too far into the file to be read.`);
    case 'binary':
      throw unfit(`${shown} is a binary file, not text.`);
    case 'not_text':
      throw unfit(`${shown} is no text in UTF-8.`);
    case 'aborted':
      throw notAllowed(sentence('aborted', path));
  }
}
