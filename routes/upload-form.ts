/**
 * A form that brings one file (RFC 7578), read as it comes. Whatever is wrong with it is refused at once, and what came
 * until then is discarded: nothing counts before the form and its request have ended as they should (AT2).
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import type { Upload } from '../server/attachments/attachments.ts';
import { AppError } from '../server/errors.ts';

/** Name of the only field. */
const FIELD = 'file';
/** Few headers belong to one part; a long one is no header. */
const LIMITS = { fields: 1, fieldSize: 1024, files: 2, parts: 3, headerPairs: 20, headerSize: 16_384 };

/**
 * Reads the form of a request.
 * @param begin begins to take the file in, under the name that the client gives it
 * @returns what was taken in, complete; the caller keeps it
 * @throws AppError bad_request for what is no such form, and whatever `begin` and its `write` throw
 */
export async function receiveFile(request: IncomingMessage, begin: (name: string) => Promise<Upload>): Promise<Upload> {
  const form = openForm(request);
  let file: Readable | null = null;
  let fail: (error: Error) => void = () => {};
  const failed = new Promise<never>((_, reject) => {
    fail = (error) => {
      reject(error);
      file?.destroy(error);
    };
  });
  failed.catch(() => {}); // Whoever waits then hears of it.
  const left = (): void => {
    if (!request.complete) fail(malformed('The body ended before its end.'));
  };
  const found = new Promise<{ name: string; bytes: Readable }>((resolve) => {
    form.on('file', (field, bytes, name) => {
      // The error of a part is the form's as well, which is the one that is told.
      bytes.on('error', () => {});
      const first = file === null;
      file ??= bytes;
      if (!first) fail(malformed('One file at a time.'));
      else if (field !== FIELD) fail(malformed(`The field of the file is called "${FIELD}".`));
      else resolve({ name: name ?? '', bytes });
    });
  });
  form.on('field', () => fail(malformed(`A form has one field, "${FIELD}", with a file.`)));
  form.on('error', () => fail(malformed('The form is malformed.')));
  request.on('error', left).on('close', left);
  // It finishes with its request, not with its last boundary: a body that is shorter than it says was cut.
  const ended = new Promise<null>((resolve) => form.on('finish', () => resolve(null)));
  request.pipe(form);

  let upload: Upload | null = null;
  try {
    const first = await Promise.race([found, ended, failed]);
    if (!first) throw malformed(`The form has no field "${FIELD}" with a file.`);
    upload = await begin(first.name);
    for await (const bytes of first.bytes) await upload.write(bytes);
    await Promise.race([ended, failed]);
    return upload;
  } catch (error) {
    // The rest is read and thrown away, so that its sender gets to hear why.
    request.unpipe(form);
    request.resume();
    await upload?.discard();
    throw error;
  }
}

function openForm(request: IncomingMessage): BusboyInstance {
  const { 'content-type': type = '' } = request.headers;
  if (!/;\s*boundary\s*=/i.test(type)) throw malformed('The form has no boundary.');
  try {
    return new Busboy({ headers: { ...request.headers, 'content-type': type }, limits: LIMITS });
  } catch (error) {
    // It has no other way to say that it cannot read the header.
    throw malformed('The boundary of the form is malformed.', error);
  }
}

const malformed = (message: string, cause?: unknown): AppError =>
  Object.assign(new AppError('bad_request', message), cause === undefined ? {} : { cause });
