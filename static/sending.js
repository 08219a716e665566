/**
 * What becomes of a box when it is sent: its session is made where there is none, its files are brought, its prompt is
 * posted, or its command is done. Whatever fails leaves the text where it is (UI2); see drafts.js.
 */
import { RequestFailed } from './api.js';
import { commandIn, forAgent } from './commands.js';
import { uploadAll } from './composer-files.js';
import { NEW } from './drafts.js';

const KEPT = 'Your text is still here.';
/** So many of the last prompts are looked through for one whose answer never came. */
const LAST = 50;

/**
 * @param actions `next()` (resolves with the fields of a new session), `moved(session)` (the box of a new conversation is now that of this
 *   session), `filesChanged(id)`, `command(command, requestId)` (resolves with a sentence when it was not understood)
 * @returns `send(id, mode)`, `settle(id)`
 */
export function createSending({ api, drafts, actions }) {
  async function runCommand(id, command) {
    const { text } = drafts.box(id);
    const { id: requestId } = drafts.tryOf(id, 'command', text);
    // Its words may go to this very box.
    if (command.name === 'new') drafts.accepted(id, text, []);
    const refused = await actions.command(command, requestId);
    if (refused) throw new RequestFailed('refused', refused);
    drafts.accepted(id, text, []);
  }

  async function createSession() {
    const fields = Object.fromEntries(Object.entries(await actions.next()).filter(([, value]) => value !== null));
    const { id: key } = drafts.tryOf(NEW, 'session', fields);
    const { session } = await api.post('api/sessions', fields, { 'idempotency-key': key });
    drafts.moved(session.session_id);
    actions.moved(session);
    return session.session_id;
  }

  async function sendPrompt(id, mode) {
    const box = drafts.box(id);
    await uploadAll(id, box.files, () => actions.filesChanged(id));
    const { text } = box;
    const attachments = box.files.map((file) => file.id);
    if (attachments.includes(null)) {
      throw new RequestFailed('refused', 'Not every file could be sent: try it again, or remove it.');
    }
    // A second try is the same prompt in every respect, also in how it was meant.
    const { id: requestId, how } = drafts.tryOf(id, 'prompt', { text, attachments }, mode);
    await api.post(`api/sessions/${id}/prompts`, {
      text: forAgent(text),
      request_id: requestId,
      ...(attachments.length > 0 && { attachments }),
      ...(how !== null && { mode: how }),
    });
    drafts.accepted(id, text, attachments);
  }

  function failed(id, failure) {
    if (failure.code === 'admission_conflict' || failure.code === 'idempotency_conflict') drafts.spent(id);
    const later = failure.kind === 'network' ? ' Send it again when the connection is back.' : '';
    const soon = failure.retryAfter ? ` Try again in ${failure.retryAfter} s.` : '';
    const why = failure.code === 'unauthorized' ? 'You are logged out.' : failure.message;
    const error = `${why} ${KEPT}${later}${soon}`;
    Object.assign(drafts.box(id), {
      error,
      unreachable: failure.kind === 'network' || failure.code === 'unauthorized',
    });
  }

  return {
    /**
     * Sends a box.
     * @param mode `steer` to say it to the running turn; null for what the server does with it
     * @returns `{id, kind}`: the session that it went to, which a new conversation gets on the way; `prompt`, `command` or `failed`
     */
    async send(id, mode) {
      const box = drafts.box(id);
      const command = box.files.length === 0 ? commandIn(box.text) : null;
      Object.assign(box, { sending: true, error: '', unreachable: false });
      let at = id;
      try {
        if (command) await runCommand(at, command);
        else {
          if (at === NEW) at = await createSession();
          await sendPrompt(at, mode);
        }
        return { id: at, kind: command ? 'command' : 'prompt' };
      } catch (failure) {
        failed(at, failure);
        return { id: at, kind: 'failed' };
      } finally {
        drafts.box(at).sending = false;
      }
    },

    /** A prompt whose answer never came may have arrived: then it leaves the box. Resolves with whether it did. */
    async settle(id) {
      const { tries, sending } = drafts.box(id);
      if (id === NEW || sending || !tries.prompt) return false;
      const answer = await api.get(`api/sessions/${id}/prompts?limit=${LAST}`).catch(() => null);
      const isThere = answer?.admissions.some((one) => one.request_id === tries.prompt.id) ?? false;
      if (!isThere || drafts.box(id).tries.prompt !== tries.prompt) return false;
      const { text, attachments } = JSON.parse(tries.prompt.of);
      drafts.accepted(id, text, attachments);
      return true;
    },
  };
}
