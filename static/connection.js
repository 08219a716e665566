/**
 * Whether the page is connected, in words that are true: the pill in the header, and a banner while it is not, or when
 * the server was started anew. That a turn ended early is another matter, and never said here.
 */
import { h, setText } from './dom.js';

const WORDS = {
  live: 'live',
  connecting: 'connecting…',
  reconnecting: 'reconnecting…',
  offline: 'offline',
  resting: 'resting',
};
/** How long it is told that the server was started anew. */
const NEWS_MS = 10_000;

/**
 * @param actions `retry()`
 * @returns `pill`, `render(connection)`, `met(server)`, `server()`
 */
export function createConnection({ banner, actions }) {
  const word = h('span');
  const pill = h('span.connection', { role: 'status' }, h('i', { 'aria-hidden': 'true' }), word);
  const sentence = h('span');
  const retry = h('button', { type: 'button', onclick: () => actions.retry() }, 'Try now');
  const reload = h('button', { type: 'button', onclick: () => location.reload() }, 'Reload the page');
  banner.append(sentence, retry, reload);

  let connection = { kind: 'connecting' };
  /** `{version, start}` as the server told it last. */
  let server = null;
  /** What is to be told although the page is connected, or null. */
  let news = null;
  let newsTimer = null;

  function lostSentence() {
    if (connection.kind === 'offline') return 'This device is offline. It goes on by itself when the network is back.';
    const seconds = Math.max(0, Math.ceil(((connection.at ?? 0) - Date.now()) / 1000));
    const when = seconds > 0 ? ` in ${seconds} s.` : '…';
    const what = connection.code === 'draining' ? 'The server is shutting down.' : 'Connection interrupted.';
    return `${what} Reconnecting${when}`;
  }

  function draw() {
    const isLost = connection.kind === 'reconnecting' || connection.kind === 'offline';
    pill.dataset.state = connection.kind;
    setText(word, WORDS[connection.kind]);
    banner.hidden = !isLost && news === null;
    banner.dataset.kind = isLost ? 'lost' : 'news';
    retry.hidden = !isLost;
    reload.hidden = isLost || !news?.isOld;
    if (!banner.hidden) setText(sentence, isLost ? lostSentence() : news.text);
  }
  setInterval(draw, 1000);

  function tell(next) {
    news = next;
    clearTimeout(newsTimer);
    if (!next.isOld) {
      newsTimer = setTimeout(() => {
        news = null;
        draw();
      }, NEWS_MS);
    }
    draw();
  }

  return {
    pill,
    render(next) {
      connection = next;
      draw();
    },
    /** The server says who it is; it does so first on every connection. */
    met(next) {
      const before = server;
      server = next;
      if (!next || before === null || before.start === next.start) return;
      const isOld = before.version !== next.version;
      const text = isOld
        ? `The server was started anew as version ${next.version}; this page is of ${before.version}.`
        : 'The server was restarted. Everything is up to date again.';
      tell({ text, isOld });
    },
    server: () => server,
  };
}
