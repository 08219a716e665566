/** The list of conversations: search, new, open, rename in place, delete. */
import { confirmWith } from './dialog.js';
import { h, icon, iconButton, setText } from './dom.js';
import { longTime, shortTime } from './times.js';

const BADGES = { running: 'running', waiting: 'needs you', queued: 'queued', unknown: 'unclear' };

/** What a conversation without a title is called. */
export const titleOf = (session) => session?.title || 'New conversation';

/**
 * @param actions `search(q)`, `more()`, `rename(id, title)`, `remove(id)`, `create()`
 * @returns `render(state)`
 */
export function createSessionList({ tools, root, actions }) {
  const items = new Map();
  let searchTimer = null;
  const search = h('input', {
    type: 'search',
    placeholder: 'Search',
    'aria-label': 'Search conversations',
    oninput: () => {
      clearTimeout(searchTimer);
      searchTimer = setTimeout(() => actions.search(search.value.trim()), 200);
    },
  });
  tools.append(
    h('button.primary.new', { type: 'button', onclick: () => actions.create() }, icon('plus'), 'New conversation'),
    h('label.search', {}, icon('search'), search),
  );
  const list = h('ul');
  const empty = h('p.list-empty', { hidden: true });
  const more = h('button.more', { type: 'button', hidden: true, onclick: () => actions.more() }, 'Show more');
  const hits = h('ul', {});
  const hitsBox = h('section.hits', { hidden: true, 'aria-labelledby': 'hits-name' });
  hitsBox.append(h('h2', { id: 'hits-name' }, 'In conversations'), hits);
  root.append(list, empty, more, hitsBox);

  let shownHits = '';
  /** Conversations whose text matches, each once and not those that stand above already. */
  function renderHits({ hits: found, sessions }) {
    const seen = new Set(sessions.map((session) => session.session_id));
    const fresh = (found ?? []).filter(({ session_id: id }) => !seen.has(id) && seen.add(id));
    const key = JSON.stringify(fresh);
    if (key === shownHits) return;
    shownHits = key;
    hitsBox.hidden = fresh.length === 0;
    hits.replaceChildren(...fresh.map(hitItem));
  }

  function createItem(id) {
    const title = h('span.session-title');
    const badge = h('span.badge', { hidden: true });
    const time = h('time');
    const link = h('a.session-link', { href: `#/s/${id}` }, title, h('span.session-meta', {}, badge, time));
    let session = null;
    const item = h(
      'li.session',
      { 'data-session': id },
      link,
      h(
        'span.session-actions',
        {},
        iconButton('pencil', 'Rename', { onclick: () => rename() }),
        iconButton('bin', 'Delete', { onclick: () => remove() }),
      ),
    );

    function rename() {
      if (item.classList.contains('renaming')) return;
      const input = h('input.rename', { value: session.title ?? '', maxlength: '500', 'aria-label': 'Title' });
      let done = false;
      const finish = (save) => {
        if (done) return;
        done = true;
        const typed = input.value.trim();
        item.classList.remove('renaming');
        input.remove();
        if (save && typed !== (session.title ?? '')) void actions.rename(id, typed === '' ? null : typed);
      };
      input.addEventListener('keydown', (event) => {
        if (event.isComposing) return;
        if (event.key === 'Enter') finish(true);
        else if (event.key === 'Escape') finish(false);
        else return;
        event.preventDefault();
        link.focus();
      });
      input.addEventListener('blur', () => finish(true));
      item.classList.add('renaming');
      item.prepend(input);
      input.select();
    }

    async function remove() {
      const busy = session.status !== 'idle';
      const agreed = await confirmWith({
        title: `Delete “${titleOf(session)}”?`,
        text: `${busy ? 'What it is doing now is stopped. ' : ''}All its messages are deleted. This cannot be undone.`,
        action: 'Delete',
      });
      if (agreed) await actions.remove(id);
    }

    return {
      item,
      update(next, isOpen, now) {
        session = next;
        setText(title, titleOf(session));
        item.classList.toggle('untitled', !session.title);
        if (isOpen) link.setAttribute('aria-current', 'page');
        else link.removeAttribute('aria-current');
        const word = BADGES[session.status];
        badge.hidden = word === undefined;
        badge.dataset.status = session.status;
        setText(badge, word ?? '');
        const at = session.last_message_at ?? session.created_at;
        time.dateTime = new Date(at * 1000).toISOString();
        time.title = longTime(at);
        setText(time, shortTime(at, now));
      },
    };
  }

  return {
    render({ list: state, open }) {
      const now = Date.now() / 1000;
      let place = list.firstChild;
      for (const session of state.sessions) {
        const id = session.session_id;
        let entry = items.get(id);
        if (!entry) {
          entry = createItem(id);
          items.set(id, entry);
        }
        entry.update(session, open?.sessionId === id, now);
        if (entry.item === place) place = place.nextSibling;
        else list.insertBefore(entry.item, place);
      }
      const ids = new Set(state.sessions.map((session) => session.session_id));
      for (const [id, entry] of items) {
        if (ids.has(id)) continue;
        entry.item.remove();
        items.delete(id);
      }
      more.hidden = state.next === null;
      more.disabled = state.loading;
      empty.hidden = state.sessions.length > 0 || state.loaded < state.wanted;
      renderHits(state);
      const isNothing = state.hits?.length === 0;
      setText(empty, state.q === '' ? 'No conversations yet.' : isNothing ? 'Nothing matches.' : 'No title matches.');
    },
  };
}

const hitItem = (hit) =>
  h(
    'li',
    {},
    h(
      'a.hit',
      { href: `#/s/${hit.session_id}` },
      h('span.hit-title', {}, titleOf(hit)),
      h('span.hit-snippet', { dir: 'auto' }, hit.snippet),
    ),
  );
