/** What stands in the way of the next message, above the box, with the button that helps. */
import { h, setText } from './dom.js';

/**
 * @param scroll where the conversation is seen
 * @param actions `created(session)`, `follow()` (shows the end), `notice(text)`
 * @returns `element`, `render(open)`
 */
export function createComposerNotes({ api, scroll, actions }) {
  let open = null;
  const attempt = (work) => work().catch((failure) => actions.notice(failure.message));

  const resolveUnclear = () =>
    attempt(async () => {
      const { sessionId } = open;
      const { admissions } = await api.get(`api/sessions/${sessionId}/prompts?pending=1`);
      for (const { admission_id: id, status } of admissions) {
        if (status !== 'unknown') continue;
        await api.post(`api/sessions/${sessionId}/prompts/${id}/resolve`, { outcome: 'interrupted' });
      }
    });
  /** A copy is ours, and goes on here. */
  const copyHere = () =>
    attempt(async () => {
      const { session } = await api.post(`api/sessions/${open.sessionId}/fork`, {});
      actions.created(session);
    });
  const showQuestion = () => {
    // Away from the end there is no card: it is there with the next frame.
    if (!scroll.querySelector('.request')) {
      actions.follow();
      requestAnimationFrame(() => requestAnimationFrame(showCard));
    } else showCard();
  };
  const showCard = () => {
    const card = scroll.querySelector('.request');
    card?.scrollIntoView({ block: 'center' });
    card?.querySelector('button, input')?.focus();
  };

  const paused = h('p.paused', { hidden: true });
  const asked = h(
    'p.paused',
    { hidden: true },
    h('span', {}, 'The agent waits for your answer. '),
    h('button', { type: 'button', onclick: showQuestion }, 'Show the question'),
  );
  const unclear = h(
    'p.paused',
    { hidden: true },
    'How an earlier turn ended is not known, so what waits does not begin. ',
    h('button', { type: 'button', onclick: resolveUnclear }, 'Count it as interrupted'),
  );
  const foreign = h(
    'p.paused',
    { hidden: true },
    'This conversation belongs to another program and can only be read here. ',
    h('button', { type: 'button', onclick: copyHere }, 'Go on in a copy'),
  );
  /** Whether a question is open and out of sight. */
  function look() {
    const seen = scroll.querySelector('.request')?.getBoundingClientRect();
    const place = scroll.getBoundingClientRect();
    const isInSight = seen && seen.bottom > place.top + 40 && seen.top < place.bottom - 40;
    asked.hidden = !open?.requests.length || isInSight;
  }
  scroll.addEventListener('scroll', look, { passive: true });

  return {
    element: h('div.composer-notes', {}, foreign, unclear, paused, asked),
    render(next) {
      open = next;
      const reason = open?.session?.paused?.reason;
      paused.hidden = !reason;
      setText(paused, reason ? `What waits cannot begin now (${reason.replaceAll('_', ' ')}).` : '');
      requestAnimationFrame(look);
      unclear.hidden = open?.session?.status !== 'unknown';
      foreign.hidden = !open?.session?.flags?.includes('foreign');
    },
  };
}
