/** The tools that change files of a workspace: `write_file` and `edit_file`. Owns their words; the writing is replace.ts. */
import { oneLine, readArguments } from './arguments.ts';
import { diffOf } from './diff.ts';
import { countOf, replaceAll } from './edit.ts';
import { printable, sentence } from './path-words.ts';
import { MAX_EDIT_BYTES, type Replaced } from './replace.ts';
import { done, failed, inWorkspace, schema, type ToolContext, type ToolDefinition, type ToolResult } from './tool.ts';
import type { Workspace } from './workspace.ts';

const MEGABYTES = MAX_EDIT_BYTES / 1024 / 1024;

/** `write_file` and `edit_file`. */
export function createWriteTools(): ToolDefinition[] {
  return [
    {
      name: 'write_file',
      description: `Write a whole text file in the workspace, new or in place of what is there; missing folders are made. At most ${MEGABYTES} MB. To change a part of a file use edit_file.`,
      effect: 'write',
      parameters: schema(
        {
          path: { type: 'string', description: 'File, relative to the workspace.' },
          content: { type: 'string', description: 'Everything that the file is to hold.' },
        },
        ['path', 'content'],
      ),
      preview: (args) => oneLine(args, 'path'),
      execute: inWorkspace(writeFile),
    },
    {
      name: 'edit_file',
      description: `Replace a text in a file of the workspace, exactly as it stands there, with its spaces and line breaks. It must stand there once, unless "replace_all" is true. Files up to ${MEGABYTES} MB.`,
      effect: 'write',
      parameters: schema(
        {
          path: { type: 'string', description: 'File, relative to the workspace.' },
          old_text: { type: 'string', minLength: 1, description: 'The text to replace, without line numbers.' },
          new_text: { type: 'string', description: 'What is to stand there; empty removes the text.' },
          replace_all: { type: 'boolean', description: 'Replace it wherever it stands. Default: false.' },
        },
        ['path', 'old_text', 'new_text'],
      ),
      preview: (args) => oneLine(args, 'path'),
      execute: inWorkspace(editFile),
    },
  ];
}

async function writeFile(args: unknown, workspace: Workspace, { signal }: ToolContext): Promise<ToolResult> {
  const read = readArguments(args, { path: 'text', content: 'content' });
  if (!read.ok) return failed(read.problem);
  const { path } = read.values;
  if (signal.aborted) return failed(sentence('aborted', path));
  const content = Buffer.from(read.values.content.toWellFormed());
  if (content.length > MAX_EDIT_BYTES) {
    return failed(`The content has ${content.length} bytes; ${MEGABYTES} MB are the most. Nothing was written.`);
  }
  const written = await workspace.replace<never>(path, { create: true, signal }, () => ({ write: content }));
  if (written.ok !== true) return failed(sentence(written.ok === null ? 'aborted' : written.problem, path));
  return reportOf(written, written.existed ? 'Wrote' : 'Created');
}

async function editFile(args: unknown, workspace: Workspace, { signal }: ToolContext): Promise<ToolResult> {
  const read = readArguments(args, { path: 'text', old_text: 'text', new_text: 'content', replace_all: 'flag?' });
  if (!read.ok) return failed(read.problem);
  const { path, old_text, new_text, replace_all = false } = read.values;
  if (old_text === new_text) return failed('"old_text" and "new_text" are the same: there is nothing to change.');
  if (signal.aborted) return failed(sentence('aborted', path));
  const wanted = Buffer.from(old_text.toWellFormed());
  const edited = await workspace.replace<string>(path, { create: false, signal }, (found, name) => {
    const shown = `"${printable(name)}"`;
    if (!found.exists || found.bytes === null) return { refuse: sentence('too_large', name) };
    if (found.bytes.includes(0)) return { refuse: `${shown} is a binary file; only text can be edited.` };
    const count = countOf(found.bytes, wanted);
    if (count === 0) return { refuse: notFound(shown, found.bytes, old_text) };
    if (count > 1 && !replace_all) {
      return {
        refuse: `"old_text" stands ${count} times in ${shown}. Give more of the lines around it, or set "replace_all". Nothing was changed.`,
      };
    }
    const write = replaceAll(found.bytes, wanted, Buffer.from(new_text.toWellFormed()), MAX_EDIT_BYTES);
    return write ? { write } : { refuse: `${shown} would grow over ${MEGABYTES} MB. Nothing was changed.` };
  });
  if (edited.ok === null) return failed(edited.refusal);
  return edited.ok ? reportOf(edited, 'Changed') : failed(sentence(edited.problem, path));
}

/** Zero matches, with what may be the reason. */
function notFound(shown: string, bytes: Buffer, text: string): string {
  const withReturns = Buffer.from(text.replace(/\r?\n/g, '\r\n'));
  const hint =
    text.includes('\n') && countOf(bytes, withReturns) > 0
      ? ' The lines of this file end in \\r\\n; give them so.'
      : ' Read the file again and copy the text exactly.';
  return `"old_text" stands 0 times in ${shown}.${hint} Nothing was changed.`;
}

function reportOf({ name, before, existed, after }: Replaced, verb: string): ToolResult {
  const shown = `"${printable(name)}"`;
  const bytes = `${after.length} bytes`;
  // A file that was too large to be read, or was no text, has no lines to compare.
  if (existed && (before === null || before.includes(0))) return done(`${verb} ${shown} (${bytes}).`);
  if (before?.equals(after)) return done(`${shown} holds this already (${bytes}).`);
  const { text, added, removed } = diffOf(before?.toString('utf8') ?? null, after.toString('utf8'), printable(name));
  const lines = existed ? `+${added} −${removed} lines` : `${added} lines`;
  return { ...done(`${verb} ${shown} (${lines}, ${bytes}).`), ...(text === '' ? {} : { diff: text }) };
}
