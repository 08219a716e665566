/** Files for a session: uploads as a client library sends them, and forms by hand. */
import type { RawRequest } from './raw.ts';
import type { Answer, TestServer } from './test-server.ts';

/** A picture of one dot. */
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

export const attachmentsOf = (sessionId: string): string => `/api/sessions/${sessionId}/attachments`;

/** Uploads a file as browsers do. */
export async function upload(
  server: Pick<TestServer, 'url'>,
  sessionId: string,
  name: string,
  bytes: string | Uint8Array,
): Promise<Answer> {
  const form = new FormData();
  form.append(
    'file',
    new Blob([typeof bytes === 'string' ? bytes : new Uint8Array(bytes)], { type: 'image/jpeg' }),
    name,
  );
  const response = await fetch(`${server.url}${attachmentsOf(sessionId)}`, { method: 'POST', body: form });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}

/** Uploads a file, which is taken. @returns its id */
export async function uploaded(
  server: Pick<TestServer, 'url'>,
  sessionId: string,
  name: string,
  bytes: string | Uint8Array,
): Promise<string> {
  const answer = await upload(server, sessionId, name, bytes);
  if (answer.status !== 201) throw new Error(`not taken: ${answer.text}`);
  return answer.json.attachment.id;
}

export const BOUNDARY = 'the-boundary';
export const END = `--${BOUNDARY}--\r\n`;

/** One part of a form, with its line end. @param about of its `Content-Disposition`, behind `form-data` */
export const part = (about: string, content: string | Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data${about}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ]);

/** A form by hand. */
export const formRequest = (
  sessionId: string,
  body: string | Buffer,
  headers: RawRequest['headers'] = {},
): RawRequest => ({
  method: 'POST',
  address: attachmentsOf(sessionId),
  headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}`, ...headers },
  body,
});
