/**
 * What a model is told of the files of a conversation (AT7, AT8): images as images, text as text, others by their names.
 * What a provider would refuse is never sent, and everything that is left out or cut says so.
 *
 * The newest files come first where not all have room: they are what is talked about.
 */
import { HEAD_BYTES, isImageType, isText, textOf } from '../../core/file-kinds.ts';
import { wellFormed } from '../../core/text.ts';
import type { Turn, TurnAttachment } from '../runner.ts';
import type { ProviderMessage, ProviderPrompt } from './chat-model.ts';

export type UserPart = Extract<ProviderMessage, { role: 'user' }>['content'][number];

/** Bounds of one request, in bytes. Of providers the strictest takes images of 5 MB, and 20 to 100 of them. */
export const IMAGE_BYTES = 5_000_000;
export const MAX_IMAGES = 20;
const ALL_IMAGE_BYTES = 16_000_000;
export const TEXT_BYTES = 65_536;
const ALL_TEXT_BYTES = 262_144;

/** The files of a turn, as far as they were looked at. */
export interface Attached {
  /** Looks at more files, oldest first. @returns those that were not known yet */
  add(ids: readonly string[]): Promise<string[]>;
  /** What stands for these files in a message. */
  partsOf(ids: readonly string[] | undefined): UserPart[];
  /** The images that are sent, by names that no other session has. */
  images(): string[];
  /** From now on no image is sent. */
  dropImages(): void;
}

/**
 * @param turn whose files they are
 * @param mayShow whether the model may be sent this image
 */
export function createAttached(
  turn: Pick<Turn, 'sessionId' | 'attachment'>,
  mayShow: (image: string) => boolean,
): Attached {
  const parts = new Map<string, UserPart>();
  const left = { images: MAX_IMAGES, imageBytes: ALL_IMAGE_BYTES, textBytes: ALL_TEXT_BYTES };
  let dropped = false;
  /** An id is one among those of its session. */
  const nameOf = (id: string): string => `${turn.sessionId}/${id}`;

  /** A disk that cannot give a file now must not end every turn of the conversation. */
  async function partOf(id: string): Promise<UserPart> {
    try {
      return await readPart(id);
    } catch (error) {
      const { errno, code } = error as NodeJS.ErrnoException;
      if (typeof errno !== 'number') throw error;
      return textPart(`[attached file ${quoted(id)}: it cannot be read (${code})]`);
    }
  }

  async function readPart(id: string): Promise<UserPart> {
    const file = await turn.attachment(id);
    if (!file) return textPart(gone(id));
    if (file.size === 0) return note(file, 'it is empty');
    if (isImageType(file.mime)) return imagePart(id, file);
    return file.mime === 'text/plain' ? textOfFile(file) : note(file, 'only its name is given');
  }

  async function imagePart(id: string, file: TurnAttachment): Promise<UserPart> {
    if (dropped || !mayShow(nameOf(id))) return note(file, NOT_TAKEN);
    if (file.size > IMAGE_BYTES) return note(file, `not shown, it is larger than ${IMAGE_BYTES / 1_000_000} MB`);
    if (left.images <= 0 || left.imageBytes < file.size) return note(file, 'not shown, there are newer images');
    const data = await file.read(IMAGE_BYTES);
    if (data.length < file.size) return textPart(gone(file.name));
    left.images -= 1;
    left.imageBytes -= data.length;
    return { type: 'file', mediaType: file.mime, data, filename: file.name };
  }

  async function textOfFile(file: TurnAttachment): Promise<UserPart> {
    const limit = Math.min(TEXT_BYTES, left.textBytes);
    if (limit < Math.min(HEAD_BYTES, file.size)) return note(file, 'left out, there are newer files');
    const bytes = await file.read(limit);
    const cut = bytes.length < file.size;
    // Only its beginning had been looked at.
    const text = isText(bytes, cut) ? textOf(bytes, cut) : null;
    if (text === null) return note(file, 'only its name is given');
    left.textBytes -= bytes.length;
    const about = cut ? `, cut: its first ${bytes.length} of ${file.size} bytes` : '';
    return textPart(`[attached file ${quoted(file.name)}${about}]\n${text}\n[end of the file]`);
  }

  return {
    async add(ids) {
      const fresh = [...new Set(ids)].filter((id) => !parts.has(id));
      for (const id of ids.toReversed()) if (!parts.has(id)) parts.set(id, await partOf(id));
      return fresh;
    },
    partsOf: (ids = []) => [...new Set(ids)].flatMap((id) => parts.get(id) ?? []),
    images: () => [...parts].flatMap(([id, part]) => (part.type === 'file' ? [nameOf(id)] : [])),
    dropImages() {
      dropped = true;
      for (const [id, part] of parts) parts.set(id, withoutImage(part));
    },
  };
}

/** Takes the images out of a conversation that was put together; their names stay. */
export function dropImages(prompt: ProviderPrompt): void {
  for (const message of prompt) {
    if (message.role !== 'user') continue;
    const parts = message.content.map(withoutImage);
    message.content = [];
    for (const part of parts) addPart(message.content, part);
  }
}

/** Adds to a message; texts in a row are one. */
export function addPart(content: UserPart[], part: UserPart): void {
  const before = content.at(-1);
  if (part.type === 'text' && before?.type === 'text') before.text += `\n\n${part.text}`;
  else content.push({ ...part });
}

/** Whether a conversation has images in it. */
export const hasImages = (prompt: ProviderPrompt): boolean =>
  prompt.some(({ role, content }) => role === 'user' && content.some(({ type }) => type === 'file'));

const gone = (name: string): string => `[attached file ${quoted(name)}: it is not there any more]`;

const NOT_TAKEN = 'not shown, this model does not take it';

function withoutImage(part: UserPart): UserPart {
  if (part.type !== 'file') return part;
  const name = part.filename ?? 'image';
  return textPart(`[attached file ${quoted(name)}, ${part.mediaType}: ${NOT_TAKEN}]`);
}

const note = ({ name, mime, size }: TurnAttachment, why: string): UserPart =>
  textPart(`[attached file ${quoted(name)}, ${mime}, ${size} bytes: ${why}]`);

const textPart = (text: string): UserPart => ({ type: 'text', text: wellFormed(text) });

const quoted = (name: string): string => JSON.stringify(name);
