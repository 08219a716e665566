/**
 * The names of attachments: what a client calls a file, made safe, and the name under which it stands in the folder of
 * its session. An upload stands there as `<id>.<name>`; one that an import brought has its name as its id.
 */
import { utf8Length, wellFormed } from './text.ts';

const OWN_ID = /^[0-9a-f]{32}$/;
const OWN_FILE = /^([0-9a-f]{32})\.(.+)$/;
/** A name that begins with a dot is of a file that is being written. */
const SAFE = /^(?!\.)[\p{L}\p{M}\p{N}\p{So}_ .()+-]{1,200}$/u;
const UNSAFE = /[^\p{L}\p{M}\p{N}\p{So}_ .()+-]/gu;
/** Names that Windows takes for devices, whatever their ending. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/i;
/** Bytes of UTF-8, and characters of an ending: a name fits into any file system, and into an address. */
const [LONGEST, LONGEST_ENDING] = [100, 20];

/** Whether a client may name an attachment so; what is no such name becomes no path. */
export const isAttachmentId = (text: string): boolean => SAFE.test(text);

/** An attachment by the name of its file; null for what is none. */
export function attachmentOfFile(file: string): { id: string; name: string } | null {
  if (!SAFE.test(file)) return null;
  const [, id, name] = OWN_FILE.exec(file) ?? [];
  return id !== undefined && name !== undefined ? { id, name } : { id: file, name: file };
}

/** Whether an id is one of ours, which is not all of its file's name. */
export const isOwnAttachmentId = (id: string): boolean => OWN_ID.test(id);

/** The name of an upload's file. @param id 32 hexadecimal digits @param name a safe one */
export const fileOfAttachment = (id: string, name: string): string => `${id}.${name}`;

/** A name that is safe here and in a download, made of any other one. */
export function attachmentName(name: string): string {
  const safe = wellFormed(name)
    .normalize('NFC')
    .replaceAll(UNSAFE, '_')
    .replaceAll('\uFFFD', '_')
    .replace(/^[. ]+/, '')
    .replace(/[. ]+$/, '')
    .replace(DEVICE, '_$1');
  const dot = safe.lastIndexOf('.');
  const end = dot > 0 ? [...safe.slice(dot)].slice(0, LONGEST_ENDING).join('') : '';
  const base = dot > 0 ? safe.slice(0, dot) : safe;
  let short = '';
  for (const sign of base) {
    if (utf8Length(short + sign + end) > LONGEST) break;
    short += sign;
  }
  return `${short.trim() || 'file'}${end}`;
}
