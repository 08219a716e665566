/** What the open conversation wants of the server: its rows, page by page. */

/** Rows of the first page: what a screen shows, and a little more, so that a conversation is open at once. */
const FIRST = 30;
/** Rows that are asked for again after a turn: more than one has, so that they reach to what is here already. */
const AGAIN = 200;
/** Rows of each page before or behind them. */
const PAGE = 40;
/** How long to wait after a request that failed, in milliseconds. */
const RETRY_MS = 2_000;

/** @returns `load()` (fetches what the store wants), `older() newer() around(id) latest() trim() reload()` */
export function createConversationLoading({ api, store, notice }) {
  const { dispatch } = store;
  const current = () => store.get().open;
  const fetchPage = (sessionId, query) => api.get(`api/sessions/${sessionId}/messages?${query}`);
  const idOf = (row) => encodeURIComponent(row.id);

  async function load() {
    const open = current();
    if (open === null || open.gone !== null || open.loading || open.wanted <= open.loaded) return;
    const { sessionId } = open;
    dispatch({ type: 'rows.requested', sessionId });
    try {
      const limit = open.loaded === 0 ? FIRST : AGAIN;
      dispatch({ type: 'rows.loaded', sessionId, ...(await fetchPage(sessionId, `limit=${limit}`)) });
    } catch (failure) {
      if (failure.status === 404 || failure.status === 400) {
        const reason = failure.status === 404 ? null : failure.message;
        dispatch({ type: 'session.gone', sessionId, reason });
        return;
      }
      dispatch({ type: 'rows.troubled', sessionId, message: failure.message });
      // Tried again when the stream is back, or in a while.
      setTimeout(() => dispatch({ type: 'rows.failed', sessionId }), RETRY_MS);
    }
  }

  /** Fetches one more page at a side. Resolves with whether it is there. */
  async function more(type, side, row) {
    const { sessionId } = current();
    if (!row) return false;
    const page = await fetchPage(sessionId, `limit=${PAGE}&${side}=${idOf(row)}`).catch(() => null);
    if (page) dispatch({ type, sessionId, [side]: row.id, ...page });
    return page !== null;
  }

  /** The rows before and behind a message, and the message. */
  async function pieceAround(sessionId, id) {
    const name = encodeURIComponent(id);
    const [before, after] = await Promise.all([
      fetchPage(sessionId, `limit=${PAGE}&before=${name}`),
      fetchPage(sessionId, `limit=${PAGE}&after=${name}`),
    ]);
    // A page has neither the row that it begins behind nor the one that it ends before.
    const last = before.messages.at(-1);
    const next = after.messages[0];
    const own = last
      ? await fetchPage(sessionId, `limit=1&after=${idOf(last)}`)
      : next
        ? await fetchPage(sessionId, `limit=1&before=${idOf(next)}`)
        : await fetchPage(sessionId, 'limit=1');
    return { messages: [...before.messages, ...own.messages, ...after.messages], has_older: before.has_more };
  }

  return {
    load,
    older: () => more('older.loaded', 'before', (current().past ?? current()).rows[0]),
    newer: () => more('newer.loaded', 'after', current().past?.rows.at(-1)),
    /** Opens the conversation at a message. Resolves when it is there, or with a notice when it is not. */
    async around(id) {
      const { sessionId } = current();
      try {
        dispatch({ type: 'past.opened', sessionId, ...(await pieceAround(sessionId, id)) });
      } catch (failure) {
        notice(failure.code === 'unknown_message' ? 'This message is no longer in the conversation.' : failure.message);
      }
    },
    latest: () => dispatch({ type: 'past.left', sessionId: current()?.sessionId ?? '' }),
    trim: () => dispatch({ type: 'rows.trimmed', sessionId: current()?.sessionId ?? '' }),
    reload() {
      dispatch({ type: 'rows.failed', sessionId: current()?.sessionId ?? '' });
      void load();
    },
  };
}
