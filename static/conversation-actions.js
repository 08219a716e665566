/** What a person does with the open conversation: answers its questions, and edits what was said. */
import { newRequestId } from './api.js';

/**
 * @param actions `open(sessionId)` (goes there), `known(session)`, `notice(text)`, `follow()` (shows the end), `done()`
 * @returns for conversation.js; those that send resolve with whether it was accepted, or with the sentence of a refusal
 */
export function createConversationActions({ api, store, actions }) {
  const { dispatch } = store;
  const current = () => store.get().open;
  const address = (path) => `api/sessions/${current().sessionId}/${path}`;
  /** Keys of requests whose answer never came, by what they ask for: the next try is the same one. */
  const keys = new Map();

  /** Sends something once, however often it has to be tried. */
  async function send(path, body) {
    const what = JSON.stringify([path, current().session?.revision, body]);
    const key = keys.get(what) ?? newRequestId();
    keys.set(what, key);
    try {
      const answer = await api.post(path, { ...body, request_id: key });
      keys.delete(what);
      return answer;
    } catch (failure) {
      if (failure.kind !== 'network') keys.delete(what);
      throw failure;
    }
  }

  /** Does something and tells when it did not work. */
  async function attempt(work) {
    try {
      await work();
      return true;
    } catch (failure) {
      actions.notice(failure.message);
      return false;
    }
  }

  async function retry() {
    await send(address('retry'), {});
    actions.follow();
  }

  return {
    /** Resolves with a sentence when the answer was not taken, else null. */
    async answer(requestId, body) {
      const { sessionId } = current();
      try {
        const { status } = await api.post(address(`requests/${requestId}`), body);
        dispatch({ type: 'request.answered', sessionId, id: requestId });
        if (status === 'expired') actions.notice('This question was answered elsewhere, or is no longer open.');
        return null;
      } catch (failure) {
        return failure.message;
      }
    },
    /** Sends a text in the place of a prompt. Resolves with a sentence when it was refused, else null. */
    async resend(rowId, text, attachments) {
      try {
        await send(address('prompts'), { text, replaces: rowId, ...(attachments.length ? { attachments } : {}) });
        return null;
      } catch (failure) {
        return failure.message;
      }
    },
    retry: () => attempt(retry),
    /** Has what is older summarised for the model, then tries the last prompt again. */
    compactAndRetry: () =>
      attempt(async () => {
        const { status, message, session } = await api.post(address('compact'), {});
        actions.known(session);
        if (status !== 'compressed') actions.notice(message ?? 'There was nothing to summarise.');
        else await retry();
      }),
    fork: (rowId) =>
      attempt(async () => {
        const { session } = await api.post(address('fork'), { at_message: rowId });
        actions.open(session.session_id);
        actions.notice('This is the fork: it has everything up to that message.');
      }),
    rewind: (rowId) =>
      attempt(async () => {
        const { revision } = current().session;
        const { session, removed } = await api.post(address('rewind'), { to_message: rowId, revision });
        actions.known(session);
        actions.notice(`Taken back: ${removed} ${removed === 1 ? 'message' : 'messages'}.`);
      }),
    /** The edited prompt was accepted. */
    sent: () => actions.done(),
  };
}
