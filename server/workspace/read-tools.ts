/**
 * The tools that only look at a workspace: `list_files`, `read_file`, `search_files`. Owns the words of their results,
 * not the reading.
 */
import { extname } from 'node:path';
import { oneLine, readArguments } from './arguments.ts';
import { MAX_READ_BYTES, MAX_SCAN_BYTES } from './lines.ts';
import { printable, sentence } from './path-words.ts';
import type { SearchFound } from './search.ts';
import { MAX_HITS } from './search.ts';
import { done, failed, inWorkspace, schema, type ToolContext, type ToolDefinition, type ToolResult } from './tool.ts';
import type { Read, Workspace } from './workspace.ts';
import { MAX_ENTRIES, MAX_LINES } from './workspace.ts';

/** Longest text that is searched for (characters). */
const MAX_QUERY = 200;

/** `list_files`, `read_file` and `search_files`. */
export function createReadTools(): ToolDefinition[] {
  return [
    {
      name: 'list_files',
      description: `List a folder of the workspace: folders end in "/", files have their size. At most ${MAX_ENTRIES} entries. Read-only.`,
      effect: 'read',
      parameters: schema(
        {
          path: { type: 'string', description: 'Folder, relative to the workspace. Default: the workspace itself.' },
          limit: { type: 'integer', minimum: 1, maximum: MAX_ENTRIES, description: 'Most entries to list.' },
        },
        [],
      ),
      preview: (args) => oneLine(args, 'path') || '.',
      execute: inWorkspace(listFiles),
    },
    {
      name: 'read_file',
      description: `Read lines of a text file in the workspace. At most ${MAX_LINES} lines or ${MAX_READ_BYTES / 1024} kB at once; go on with "offset". Read-only.`,
      effect: 'read',
      parameters: schema(
        {
          path: { type: 'string', description: 'File, relative to the workspace.' },
          offset: { type: 'integer', minimum: 1, description: 'First line, from 1. Default: 1.' },
          limit: { type: 'integer', minimum: 1, maximum: MAX_LINES, description: 'Most lines to read.' },
        },
        ['path'],
      ),
      preview: (args) => oneLine(args, 'path'),
      execute: inWorkspace(readFile),
    },
    {
      name: 'search_files',
      description: `Find a text (not a pattern; upper and lower case are the same) in the names and lines of the workspace's files. At most ${MAX_HITS} hits; node_modules, .git, binary files and files over 1 MB are skipped. Read-only.`,
      effect: 'read',
      parameters: schema(
        {
          query: { type: 'string', minLength: 1, maxLength: MAX_QUERY, description: 'The text to find.' },
          path: { type: 'string', description: 'Folder or file to search in. Default: the workspace itself.' },
        },
        ['query'],
      ),
      preview: (args) => oneLine(args, 'query'),
      execute: inWorkspace(searchFilesTool),
    },
  ];
}

async function listFiles(args: unknown, workspace: Workspace, { signal }: ToolContext): Promise<ToolResult> {
  const read = readArguments(args, { path: 'text?', limit: 'count?' });
  if (!read.ok) return failed(read.problem);
  if (signal.aborted) return failed(sentence('aborted', '.'));
  const path = read.values.path || '.';
  const listed = await workspace.list(path, read.values.limit);
  if (!listed.ok) return failed(sentence(listed.problem, path));
  if (listed.total === 0) return done(`"${listed.name}" is empty.`);
  const lines = listed.entries.map((entry) => {
    if (entry.kind === 'directory') return `${printable(entry.name)}/`;
    if (entry.kind === 'file') return `${printable(entry.name)}${entry.size === undefined ? '' : `  ${entry.size} B`}`;
    return `${printable(entry.name)}  (${entry.kind === 'link' ? 'link' : 'special file'})`;
  });
  const total = `${listed.uncounted ? 'more than ' : ''}${listed.total}`;
  if (listed.entries.length < listed.total || listed.uncounted) {
    lines.push(`[${lines.length} of ${total} entries are shown; list a folder below for less.]`);
  }
  return done(lines.join('\n'));
}

async function readFile(args: unknown, workspace: Workspace, { signal }: ToolContext): Promise<ToolResult> {
  const read = readArguments(args, { path: 'text', offset: 'count?', limit: 'count?' });
  if (!read.ok) return failed(read.problem);
  const { path, offset, limit } = read.values;
  const file = await workspace.read(path, { offset, limit, signal });
  return file.ok ? describeRead(file, offset ?? 1) : failed(sentence(file.problem, path));
}

function describeRead({ name, size, lines }: Read & { ok: true }, offset: number): ToolResult {
  switch (lines.kind) {
    case 'text': {
      const notes = [
        ...(lines.lineCut ? [`line ${lines.from} is longer than ${MAX_READ_BYTES / 1024} kB and is cut`] : []),
        ...(lines.next === null ? [] : [`the file goes on: read on with offset ${lines.next}`]),
      ];
      const last = lines.from + lines.count - 1;
      const note = notes.length === 0 ? '' : `\n[Lines ${lines.from} to ${last}; ${notes.join('; ')}.]`;
      return done(`${lines.text}${note}`);
    }
    case 'past_end':
      if (lines.total === 0) return done(`"${printable(name)}" is empty.`);
      return failed(`"${printable(name)}" has ${lines.total} lines; line ${offset} is behind its end.`);
    case 'too_far':
      return failed(`Line ${offset} lies more than ${MAX_SCAN_BYTES / 1024 / 1024} MB into the file, too far to read.`);
    case 'binary': {
      const kind = extname(name).slice(1);
      return failed(`"${printable(name)}" is a binary file${kind ? ` (${kind})` : ''} of ${size} bytes, not text.`);
    }
    case 'aborted':
      return failed(sentence('aborted', name));
  }
}

async function searchFilesTool(args: unknown, workspace: Workspace, { signal }: ToolContext): Promise<ToolResult> {
  const read = readArguments(args, { query: 'text', path: 'text?' });
  if (!read.ok) return failed(read.problem);
  const { query } = read.values;
  // A long text that repeats itself would take its own length for each character of a file.
  if (query.length > MAX_QUERY) return failed(`The "query" has ${query.length} characters; ${MAX_QUERY} are the most.`);
  const path = read.values.path || '.';
  const found = await workspace.search(query, { path, signal });
  return found.ok ? describeFound(found) : failed(sentence(found.problem, path));
}

function describeFound({ hits, files, skipped, cut }: SearchFound): ToolResult {
  const lines = hits.map(({ path, line, text }) =>
    line === null ? `${printable(path)} (name)` : `${printable(path)}:${line}: ${text}`,
  );
  const notes = [
    ...(cut === 'hits' ? [`only the first ${MAX_HITS} hits are shown`] : []),
    ...(cut === 'files' ? [`stopped after ${files} files`] : []),
    ...(skipped > 0 ? [`the text of ${skipped} binary or large files was not searched`] : []),
  ];
  if (lines.length === 0) lines.push(`Nothing found in ${files} files.`);
  if (notes.length > 0) lines.push(`[${notes.join('; ')}.]`);
  return done(lines.join('\n'));
}
