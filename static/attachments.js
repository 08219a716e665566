/** Files that came with a prompt, as links. Rows have their ids; what they are called is asked for once per session. */
import { h } from './dom.js';

/**
 * @param api for the list of a session's attachments
 * @returns `(sessionId, ids)`: an element with one link for each
 */
export function createAttachmentLinks(api) {
  /** Names by id, or a promise of them, by session. */
  const known = new Map();

  const load = (base) =>
    api.get(base).then(
      ({ attachments }) => new Map(attachments.map(({ id, name }) => [id, name])),
      () => new Map(),
    );

  async function namesOf(base, ids) {
    const names = await (known.get(base) ?? new Map());
    if (ids.every((id) => names.has(id))) return names;
    // New ones have come, or some are gone, or it was never asked.
    const asked = load(base);
    known.set(base, asked);
    return asked;
  }

  return (sessionId, ids) => {
    const base = `api/sessions/${encodeURIComponent(sessionId)}/attachments`;
    const links = ids.map((id) =>
      h('a', { href: `${base}/${encodeURIComponent(id)}`, target: '_blank', rel: 'noopener' }, 'attached file'),
    );
    namesOf(base, ids).then((names) => {
      for (const [at, id] of ids.entries()) {
        links[at].textContent = names.get(id) ?? id;
        // It is gone, or was never here.
        if (!names.has(id)) links[at].removeAttribute('href');
      }
    });
    return h('div.attached', {}, ...links);
  };
}
