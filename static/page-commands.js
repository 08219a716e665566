/** What the commands of the page do. Each resolves with a sentence when it was not understood, else with null; a request that failed rejects. */
import { CHOICES } from './settings.js';

const FORMATS = ['md', 'html', 'json'];

/**
 * @param actions `open()` (the open conversation of the store, or null), `create(text)`, `openModel()`, `chooseModel(words)`,
 *   `help()`, `known(session)`, `follow()`, `notice(text)`
 * @returns `run({name, rest}, requestId)`: a command of commands.js, and the id of its request, that of the last try of the same
 */
export function createPageCommands({ api, settings, actions }) {
  const NONE = 'There is no conversation yet.';

  /** Does something with the open conversation. */
  async function withOpen(work) {
    const open = actions.open();
    if (!open?.session) return NONE;
    return (await work(`api/sessions/${open.sessionId}`, open)) ?? null;
  }

  const commands = {
    async new(rest) {
      actions.create(rest);
      return null;
    },
    async model(rest) {
      if (rest !== '') return actions.chooseModel(rest);
      actions.openModel();
      return null;
    },
    retry: (_rest, requestId) =>
      withOpen(async (base) => {
        await api.post(`${base}/retry`, { request_id: requestId });
        actions.follow();
      }),
    rewind: (rest) =>
      withOpen(async (base, { session }) => {
        const turns = rest === '' ? 1 : Number(rest);
        if (!Number.isInteger(turns) || turns < 1) return 'Say how many turns to take back: /rewind 2';
        const answer = await api.post(`${base}/rewind`, { turns, revision: session.revision });
        actions.known(answer.session);
        actions.notice(`Taken back: ${answer.removed} ${answer.removed === 1 ? 'message' : 'messages'}.`);
      }),
    compact: (rest) =>
      withOpen(async (base) => {
        const answer = await api.post(`${base}/compact`, rest === '' ? {} : { focus: rest });
        actions.known(answer.session);
        const { status, message, before_tokens: before, after_tokens: after } = answer;
        actions.notice(
          status === 'compressed'
            ? `The model is now given about ${after.toLocaleString()} tokens instead of ${before.toLocaleString()}. What you see stays.`
            : (message ?? 'Nothing was summarised.'),
        );
      }),
    export: (rest) =>
      withOpen(async (base) => {
        const format = rest || 'md';
        if (!FORMATS.includes(format)) return `Say md, html or json: /export ${FORMATS[0]}`;
        const link = document.createElement('a');
        Object.assign(link, { href: `${base}/export?format=${format}`, download: '' });
        link.click();
      }),
    async theme(rest) {
      const { theme } = settings.get();
      const wanted = rest || (theme === 'dark' ? 'light' : 'dark');
      if (!CHOICES.theme.includes(wanted)) return 'Say light, dark or system: /theme dark';
      settings.set({ theme: wanted });
      return null;
    },
    async help() {
      actions.help();
      return null;
    },
  };
  return { run: ({ name, rest }, requestId) => commands[name](rest, requestId) };
}
