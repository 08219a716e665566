/**
 * Files that came with a prompt: pictures in place, others as links. Rows have their ids; what they are is asked for once
 * per session. The server sends each so that it cannot run in this page's origin; here it is only ever a picture or a link.
 */
import { h, icon } from './dom.js';

/** The kinds that are shown in place, as the server tells them by their bytes. */
const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** A size in words. @param bytes how much */
export function sizeInWords(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${Math.round(bytes / 1000)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/**
 * @param api for the list of a session's attachments
 * @returns `(sessionId, ids)`: an element with all of them
 */
export function createAttachmentViews(api) {
  /** Attachments by id, or a promise of them, by session. */
  const known = new Map();

  const load = (base) =>
    api.get(base).then(
      ({ attachments }) => new Map(attachments.map((one) => [one.id, one])),
      () => new Map(),
    );

  async function filesOf(base, ids) {
    const files = await (known.get(base) ?? new Map());
    if (ids.every((id) => files.has(id))) return files;
    // New ones have come, or some are gone, or it was never asked.
    const asked = load(base);
    known.set(base, asked);
    return asked;
  }

  return (sessionId, ids) => {
    const base = `api/sessions/${encodeURIComponent(sessionId)}/attachments`;
    const addressOf = (id) => `${base}/${encodeURIComponent(id)}`;
    const element = h('div.attached', {}, ...ids.map((id) => link(addressOf(id), null)));
    filesOf(base, ids).then((files) => {
      element.replaceChildren(
        ...ids.map((id) => {
          const file = files.get(id);
          // It is gone, or was never here.
          if (!file) return h('span.attached-file', {}, icon('file'), id);
          return PICTURES.has(file.mime) ? picture(addressOf(id), file) : link(addressOf(id), file);
        }),
      );
    });
    return element;
  };
}

const OUTWARD = { target: '_blank', rel: 'noopener' };

const link = (href, file) =>
  h(
    'a.attached-file',
    { href, ...OUTWARD },
    icon('file'),
    h('span.attached-name', {}, file?.name ?? 'attached file'),
    file ? h('span.attached-size', {}, sizeInWords(file.size)) : null,
  );

function picture(href, file) {
  const image = h('img', { src: href, alt: file.name, loading: 'lazy', decoding: 'async' });
  const place = h('a.attached-picture', { href, title: file.name, ...OUTWARD }, image);
  image.addEventListener('error', () => place.replaceWith(link(href, file)));
  return place;
}
