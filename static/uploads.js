/**
 * Files on their way to the server. A file is an object that lives in a box of drafts.js: `{id, name, size}`, and while
 * it is not there yet `bytes`, `progress` (0 to 1), `error` and `stop()`.
 */

/** A file that a person gave, not sent yet. */
export const newFile = (bytes) => ({
  id: null,
  name: bytes.name || 'file',
  size: bytes.size,
  bytes,
  progress: null,
  error: '',
  stop: () => {},
});

/**
 * Sends a file. `fetch` tells nothing of what is sent; XMLHttpRequest does.
 * @param file changes as it goes: `progress`, then `id` or `error`
 * @param onChange called when the file has changed
 * @returns whether it is there now; never rejects
 */
export function upload(sessionId, file, onChange) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    const end = (fields) => {
      Object.assign(file, { progress: null, ...fields });
      onChange();
      resolve(file.id !== null);
    };
    Object.assign(file, { progress: 0, error: '', stop: () => request.abort() });
    request.upload.addEventListener('progress', ({ loaded, total }) => {
      file.progress = total > 0 ? loaded / total : 0;
      onChange();
    });
    request.addEventListener('load', () => {
      const answer = parsed(request.responseText);
      if (request.status === 201 && answer)
        end({ id: answer.attachment.id, name: answer.attachment.name, bytes: null });
      else end({ error: answer?.error ?? `The server answered ${request.status}.` });
    });
    // A server that refuses a large file may close before it has all of it, and the browser then tells no status.
    request.addEventListener('error', () => end({ error: UNFINISHED }));
    request.addEventListener('abort', () => end({ error: 'It was stopped.' }));
    const form = new FormData();
    form.append('file', file.bytes, file.name);
    request.open('POST', `api/sessions/${sessionId}/attachments`);
    request.send(form);
    onChange();
  });
}

const UNFINISHED = 'It did not arrive: the connection was lost, or the file is larger than the server takes.';

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The files of a paste or a drop; none when it carries text. */
export const filesOf = (transfer) => [...(transfer?.files ?? [])];

/** A size as a person would say it. */
export function sizeOf(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const [size, unit] = bytes < 999_500 ? [bytes / 1000, 'kB'] : [bytes / 1_000_000, 'MB'];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${unit}`;
}
