/** The head of the conversation: its title, and whether the page is connected. */
import { h, iconButton, setText } from './dom.js';
import { titleOf } from './session-lines.js';

/**
 * @param pill says whether the page is connected
 * @param actions `menu()`, `rename(id, title)`
 * @returns `render(state)`, `menuOpen(isOpen)`, `focusMenu()`
 */
export function createHeader({ root, pill, actions }) {
  const menu = iconButton('menu', 'Conversations', {
    onclick: () => actions.menu(),
    'aria-controls': 'sidebar',
    'aria-expanded': 'false',
  });
  menu.classList.add('menu');
  const title = h('h1.title', {});
  const rename = iconButton('pencil', 'Rename this conversation', { onclick: startRename });
  root.append(menu, h('div.title-box', {}, title, rename), pill);

  let open = null;

  function startRename() {
    const { sessionId, session } = open;
    const input = h('input.rename', { value: session?.title ?? '', maxlength: '500', 'aria-label': 'Title' });
    let done = false;
    const finish = (save) => {
      if (done) return;
      done = true;
      const typed = input.value.trim();
      input.replaceWith(title);
      if (save && typed !== (session?.title ?? '')) void actions.rename(sessionId, typed === '' ? null : typed);
    };
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.isComposing) finish(true);
      if (event.key === 'Escape') finish(false);
    });
    input.addEventListener('blur', () => finish(true));
    title.replaceWith(input);
    input.select();
  }

  return {
    render(state) {
      open = state.open;
      const name = nameOf(open);
      setText(title, name);
      const isForeign = open?.session?.flags?.includes('foreign') ?? false;
      rename.hidden = open === null || open.gone !== null || open.session === null || isForeign;
      // What needs the person is told where they look when the page is not in sight.
      const waiting = state.list.sessions.filter(({ status }) => status === 'waiting').length;
      const here = open === null ? 'Turnkeep' : `${name} · Turnkeep`;
      document.title = waiting === 0 ? here : `(${waiting}) ${here}`;
    },
    menuOpen: (isOpen) => menu.setAttribute('aria-expanded', String(isOpen)),
    focusMenu: () => menu.focus(),
  };
}

function nameOf(open) {
  if (open === null) return 'New conversation';
  if (open.gone === null) return titleOf(open.session);
  return open.gone === 'deleted' ? 'Deleted conversation' : 'No conversation';
}
