/** What a person does to conversations in the list. Everything that fails is told; what worked is shown at once. */
import { chooseFiles, importFiles } from './import-files.js';
import { openMenu } from './menu.js';
import { openProjects } from './projects.js';
import { createRemoval } from './removal.js';
import { titleOf } from './session-lines.js';

const FORMATS = [
  ['md', 'Export as Markdown'],
  ['html', 'Export as a web page'],
  ['json', 'Export as JSON'],
];

/**
 * @param attempt does something and tells when it did not work; resolves with the answer, or null
 * @param open goes to a conversation by its id
 * @param leave see removal.js
 * @param loadProjects reads the projects again
 */
export function createListActions({ api, store, attempt, notice, open, leave, loadProjects }) {
  const removal = createRemoval({ api, store, notice, leave });
  const list = () => store.get().list;

  /** Puts what the server answered into the store; the stream tells the same to everybody. */
  function known(session) {
    store.dispatch({ type: 'sessions.changed', session_id: session.session_id, session, reason: 'changed' });
    store.dispatch({ type: 'session.known', sessionId: session.session_id, session });
  }

  async function change(id, changes) {
    const answer = await attempt(() => api.patch(`api/sessions/${id}`, changes));
    if (answer) known(answer.session);
    return answer !== null;
  }

  async function archive({ session_id: id, archived, ...session }) {
    if (!(await change(id, { archived: !archived }))) return;
    notice(`${archived ? 'Brought back' : 'Archived'} “${titleOf(session)}”.`, {
      action: 'Undo',
      run: () => change(id, { archived }),
    });
  }

  /** @param atMessage the last message of the copy; all of it without one */
  async function fork(id, atMessage) {
    const body = atMessage === undefined ? {} : { at_message: atMessage };
    const answer = await attempt(() => api.post(`api/sessions/${id}/fork`, body));
    if (answer) open(answer.session.session_id);
  }

  async function takeFiles(files) {
    const made = await importFiles(files, { api, notice });
    const last = made.at(-1);
    if (!last) return;
    notice(made.length === 1 ? `Imported “${titleOf(last)}”.` : `Imported ${made.length} conversations.`);
    open(last.session_id);
  }

  const projects = {
    async create(fields) {
      const answer = await attempt(() => api.post('api/projects', fields));
      await loadProjects();
      return answer?.project ?? null;
    },
    async change(id, changes) {
      await attempt(() => api.patch(`api/projects/${id}`, changes));
      await loadProjects();
    },
    async remove(id) {
      await attempt(() => api.remove(`api/projects/${id}`));
      await loadProjects();
    },
  };

  const editProjects = (onCreate) =>
    openProjects({ projects: () => list().projects, actions: projects, ...(onCreate ? { onCreate } : {}) });

  /** The second menu of a conversation: to which project it belongs. */
  function chooseProject(session, where) {
    const { session_id: id, project_id: its } = session;
    const assign = (project) => change(id, { project_id: project });
    openMenu({
      ...where,
      label: `Project of ${titleOf(session)}`,
      items: [
        { label: 'No project', isChecked: its === null, run: () => assign(null) },
        ...list().projects.map(({ project_id: project, name, color }) => ({
          label: name,
          color: color ?? '',
          isChecked: its === project,
          run: () => assign(project),
        })),
        null,
        { label: 'New project…', icon: 'plus', run: () => editProjects((made) => assign(made.project_id)) },
      ],
    });
  }

  /**
   * The menu of a conversation.
   * @param where `at` and `from`, see menu.js
   * @param rename begins to rename it in its place
   */
  function sessionMenu(session, where, rename) {
    const { session_id: id, pinned, archived, flags } = session;
    const isForeign = flags.includes('foreign');
    const own = [
      { label: 'Rename', icon: 'pencil', keys: 'F2', run: rename },
      {
        label: pinned ? 'Unpin' : 'Pin',
        icon: 'pin',
        run: () => change(id, { pinned: !pinned }),
      },
      { label: 'Project…', icon: 'folder', run: () => chooseProject(session, where) },
      { label: archived ? 'Take out of the archive' : 'Archive', icon: 'archive', run: () => archive(session) },
    ];
    openMenu({
      ...where,
      label: titleOf(session),
      items: [
        ...(isForeign ? [] : own),
        { label: 'Fork', icon: 'fork', run: () => fork(id) },
        null,
        ...FORMATS.map(([format, label]) => ({
          label,
          icon: 'download',
          href: `api/sessions/${id}/export?format=${format}`,
        })),
        ...(isForeign
          ? []
          : [null, { label: 'Delete', icon: 'bin', keys: 'Del', isDanger: true, run: () => removal.remove(session) }]),
      ],
    });
  }

  const view = (changes) => store.dispatch({ type: 'list.view', view: changes });

  /** The menu of the list: what it shows, and what concerns no single conversation. */
  function listMenu(where) {
    const { view: now, projects: all } = list();
    openMenu({
      ...where,
      label: 'What the list shows',
      items: [
        {
          label: 'All conversations',
          isChecked: now.project === null && !now.archived,
          run: () => view({ project: null, archived: false }),
        },
        ...all.map(({ project_id: project, name, color }) => ({
          label: name,
          color: color ?? '',
          isChecked: now.project === project && !now.archived,
          run: () => view({ project, archived: false }),
        })),
        {
          label: 'Archived',
          icon: 'archive',
          isChecked: now.archived,
          run: () => view({ project: null, archived: true }),
        },
        null,
        { label: 'Projects…', icon: 'folder', run: () => editProjects() },
        { label: 'Import…', icon: 'upload', run: () => chooseFiles(takeFiles) },
      ],
    });
  }

  return {
    rename: (id, title) => change(id, { title }),
    change,
    fork,
    takeFiles,
    sessionMenu,
    listMenu,
    remove: (session) => removal.remove(session),
    undo: () => removal.undo(),
    search: (q) => view({ q }),
    expand: () => store.dispatch({ type: 'list.expand' }),
  };
}
