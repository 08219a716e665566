/** Fetches the list: its beginning when it may have changed, the rest as one scrolls, and what a search finds. */

/** As many as a window shows, and some. */
const FIRST = 100;
/** As many as are quickly parsed and drawn while somebody scrolls. */
const PAGE = 500;
const HITS = 30;
/** With fewer signs the text of conversations is not searched: nearly all of them would match. */
const FEWEST_SIGNS = 2;
const AGAIN_MS = 2000;

/** @returns `load()` when something is wanted, `more()` for the next page; both do nothing while one is on its way */
export function createListLoading({ api, store }) {
  const list = () => store.get().list;

  async function page(view, limit, cursor) {
    const query = new URLSearchParams({ limit: String(limit) });
    if (cursor !== null) query.set('cursor', cursor);
    if (view.q !== '') query.set('q', view.q);
    if (view.project !== null) query.set('project_id', view.project);
    if (view.archived) query.set('archived', 'only');
    return api.get(`api/sessions?${query}`);
  }

  /** The beginning, at least as long as it was: who has scrolled far must not lose the place. */
  async function beginning(view, count) {
    let all = await page(view, Math.max(FIRST, Math.min(count, PAGE)), null);
    while (all.sessions.length < count && all.next_cursor !== null) {
      const next = await page(view, PAGE, all.next_cursor);
      all = { ...next, sessions: [...all.sessions, ...next.sessions] };
    }
    return all;
  }

  async function fetchInto(view, append, get) {
    store.dispatch({ type: 'list.requested' });
    try {
      const loaded = await get();
      store.dispatch({ type: 'list.loaded', view, append, ...loaded });
    } catch {
      setTimeout(() => store.dispatch({ type: 'list.failed', view }), AGAIN_MS);
    }
  }

  /** Looks into the text of conversations. */
  async function loadHits(view) {
    const isShort = [...view.q].length < FEWEST_SIGNS;
    const answer = isShort
      ? { hits: [] }
      : await api.get(`api/search?q=${encodeURIComponent(view.q)}&limit=${HITS}`).catch(() => null);
    store.dispatch({ type: 'hits.loaded', view, hits: answer?.hits ?? null });
  }

  async function loadProjects() {
    const answer = await api.get('api/projects').catch(() => null);
    if (answer) store.dispatch({ type: 'projects.loaded', projects: answer.projects });
  }

  return {
    async load() {
      const { loading, wanted, loaded, view, sessions } = list();
      if (loading || wanted <= loaded || store.get().auth !== 'ok') return;
      const titles = fetchInto(view, false, () => beginning(view, sessions.length));
      await Promise.all([titles, loadProjects(), view.q === '' ? null : loadHits(view)]);
    },
    async more() {
      const { loading, next, view } = list();
      if (loading || next === null) return;
      await fetchInto(view, true, () => page(view, PAGE, next));
    },
    loadProjects,
  };
}
