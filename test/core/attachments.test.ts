/** Names and kinds of attachments, as rules over any input. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  attachmentName,
  attachmentOfFile,
  fileOfAttachment,
  isAttachmentId,
} from '../../server/core/attachment-names.ts';
import { HEAD_BYTES, isText, sniffType } from '../../server/core/file-kinds.ts';

const ID = 'a'.repeat(32);

it('[AT3] any name at all becomes one that is safe, short, and stays as it is the second time', () => {
  const anything = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.string({ unit: fc.constantFrom('.', '/', '\\', ' ', '\0', 'a', 'é', '日', '👩‍👩‍👧', '\u202e', 'CON') }),
  );
  fc.assert(
    fc.property(anything, (name) => {
      const safe = attachmentName(name);
      expect(safe).not.toMatch(/[/\\\p{Cc}\p{Cf}\p{Cs}\uFFFD]|^[. ]|^$/u);
      expect(Buffer.byteLength(safe)).toBeLessThanOrEqual(100);
      expect(attachmentName(safe)).toBe(safe);
      expect(isAttachmentId(safe)).toBe(true);
      expect(attachmentOfFile(fileOfAttachment(ID, safe))).toEqual({ id: ID, name: safe });
    }),
  );
});

it('[AT3] a file that is being written is no attachment, and an imported one has its name as its id', () => {
  expect(attachmentOfFile(`.${ID}.tmp.1.0`)).toBeNull();
  expect(attachmentOfFile('a/b')).toBeNull();
  expect(attachmentOfFile('photo.png')).toEqual({ id: 'photo.png', name: 'photo.png' });
});

it('[AT1] text is what decodes as UTF-8, wherever its beginning is cut', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }), fc.nat(3), (text, shift) => {
      const bytes = Buffer.from(`${'x'.repeat(HEAD_BYTES - shift)}${text}`).subarray(0, HEAD_BYTES);
      if (/\p{Cc}/u.test(text)) return;
      expect(sniffType(bytes)).toBe('text/plain');
    }),
  );
  expect(isText(Buffer.from([0xc3]), false)).toBe(false);
  expect(isText(Buffer.from([0xc3]), true)).toBe(true);
  expect(isText(Buffer.alloc(0), true)).toBe(false);
});
