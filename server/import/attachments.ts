/** Which files come with a conversation, and under which names its rows have them here (IM6). */
import { fileBelow, type SourceFile } from '../../db/files/import-files.ts';
import { attachmentName } from '../core/attachment-names.ts';
import type { ImportedRow } from './transcript.ts';

export interface AttachmentPlan {
  /** Each file and its name here. */
  files: { file: SourceFile; name: string }[];
  rows: ImportedRow[];
  /** Those of an open turn, as its sidecar has them; null where they keep their names. */
  pending: unknown[] | null;
  /** Names that rows have and of which there is no file. */
  missing: string[];
}

interface Named {
  name?: unknown;
  path?: unknown;
}

/**
 * @param open what an open turn has, as its sidecar has it
 * @param own the files of the session's own folder
 * @param roots folders below which a row may name others
 */
export async function planAttachments(
  rows: readonly ImportedRow[],
  open: unknown,
  own: readonly SourceFile[],
  roots: readonly string[],
): Promise<AttachmentPlan> {
  const taken = new Set<string>();
  const names = new Map<string, string>();
  const files: AttachmentPlan['files'] = [];
  const add = (file: SourceFile): string => {
    const known = names.get(file.path);
    if (known !== undefined) return known;
    const name = freeName(attachmentName(file.name), taken);
    taken.add(name.toLowerCase());
    names.set(file.path, name);
    files.push({ file, name });
    return name;
  };
  for (const file of own) add(file);
  const byName = new Map(own.map((file) => [file.name, file]));
  const missing: string[] = [];
  const planned: ImportedRow[] = [];
  /** The names here of what is there under others. */
  const find = async (names: readonly string[], list: readonly unknown[]): Promise<string[]> => {
    const found: string[] = [];
    for (const [at, name] of names.entries()) {
      const path = pathOf(list[at]);
      const file = (path === null ? null : await fileBelow(roots, path)) ?? byName.get(name) ?? null;
      if (!file) missing.push(name);
      found.push(file ? add(file) : name);
    }
    return found;
  };
  for (const row of rows) {
    const shown = row.message.attachments;
    if (!shown?.length || (own.length === 0 && roots.length === 0)) {
      planned.push(row);
      continue;
    }
    const found = await find(shown, storedList(row));
    planned.push(found.every((name, at) => name === shown[at]) ? row : renamed(row, found));
  }
  const list = Array.isArray(open) ? open.filter((one) => nameOf(one) !== null) : [];
  const pending =
    list.length > 0
      ? withNames(
          list,
          await find(
            list.map((one) => nameOf(one)!),
            list,
          ),
        )
      : null;
  return { files, rows: planned, pending, missing };
}

function freeName(wanted: string, taken: ReadonlySet<string>): string {
  const dot = wanted.lastIndexOf('.');
  const [base, end] = dot > 0 ? [wanted.slice(0, dot), wanted.slice(dot)] : [wanted, ''];
  for (let n = 0; ; n += 1) {
    const name = n === 0 ? wanted : `${base}-${n}${end}`;
    if (!taken.has(name.toLowerCase())) return name;
  }
}

/** The list as the source has it, where it is as long as what is shown of it. */
function storedList({ stored, message }: ImportedRow): unknown[] {
  const list = stored === undefined ? null : (JSON.parse(stored) as { attachments?: unknown }).attachments;
  return Array.isArray(list) && list.length === message.attachments?.length ? list : [];
}

function pathOf(one: unknown): string | null {
  const path = typeof one === 'string' ? one : (one as Named | null | undefined)?.path;
  return typeof path === 'string' && path.startsWith('/') ? path : null;
}

function nameOf(one: unknown): string | null {
  const name = typeof one === 'object' && one !== null ? (one as Named).name : one;
  return typeof name === 'string' && name !== '' ? name : null;
}

/** A list of attachments, names or objects that have one, under other names. */
const withNames = (list: readonly unknown[], names: readonly string[]): unknown[] =>
  names.map((name, at) => (typeof list[at] === 'object' && list[at] !== null ? { ...list[at], name } : name));

function renamed(row: ImportedRow, names: string[]): ImportedRow {
  const message = { ...row.message, attachments: names };
  if (row.stored === undefined) return { ...row, message };
  const before = JSON.parse(row.stored) as { attachments: unknown[] };
  return { ...row, message, stored: JSON.stringify({ ...before, attachments: withNames(before.attachments, names) }) };
}
