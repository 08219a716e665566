/** Questions of the agent that wait for a person: approvals and clarifications. */
import { h, icon, setText } from './dom.js';
import { clockTime } from './times.js';

const CHOICES = {
  once: 'Allow once',
  session: 'Allow in this conversation',
  always: 'Always allow',
  deny: 'Deny',
};

/**
 * The card of an open question.
 * @param answer sends the answer; resolves with a sentence when it was not taken, else null
 * @param answers keeps what is being written, by the id of the request
 * @returns the element, and `update(request)`, for its time may begin anew
 */
export function createRequestCard(request, answer, answers) {
  const problem = h('p.error', { role: 'alert' });
  const wait = h('p.request-note.request-wait');
  const card = h('section.request', { 'aria-label': 'The agent asks', 'data-request': request.id });
  const send = async (body) => {
    const controls = card.querySelectorAll('button, input');
    for (const control of controls) control.disabled = true;
    problem.textContent = (await answer(request.id, body)) ?? '';
    if (problem.textContent) for (const control of controls) control.disabled = false;
  };
  card.append(
    ...(request.kind === 'approval' ? approval(request.params, send) : clarify(request, send, answers)),
    wait,
    problem,
  );
  const update = (now) => setText(wait, waitOf(now));
  update(request);
  return { element: card, update };
}

/** How long a question waits, and what comes then: a time of day, for a clock that runs down would only press. */
function waitOf({ kind, expires_at: until }) {
  if (!until) return '';
  const then = kind === 'approval' ? 'No answer until then is a no.' : 'Then the agent goes on without an answer.';
  return `Waits until ${clockTime(until, Date.now() / 1000)}. ${then}`;
}

/** What is asked, by the tool. */
const ASKED = {
  terminal: 'May the agent run this command?',
  write_file: 'May the agent write this file?',
  edit_file: 'May the agent change this file?',
};

function approval({ tool_name: tool, command, description, choices = ['once', 'deny'], pattern }, send) {
  return [
    h('h2', {}, icon('question'), ASKED[tool] ?? `May the agent use ${tool ?? 'this'}?`),
    command ? h('pre', { tabindex: '0', 'aria-label': 'What would be done' }, command) : '',
    description ? h('p.request-note', {}, description) : '',
    h(
      'div.request-actions',
      {},
      ...choices.map((choice, index) =>
        h(
          `button${choice === 'deny' ? '.danger-quiet' : index === 0 ? '.primary' : ''}`,
          { type: 'button', 'data-choice': choice, onclick: () => send({ choice }) },
          CHOICES[choice] ?? choice,
        ),
      ),
    ),
    pattern && choices.includes('always')
      ? h('p.request-note', {}, '“Always allow” covers, in every conversation: ', h('code', {}, pattern))
      : '',
  ];
}

function clarify({ id, params }, send, answers) {
  const questions = params.questions ?? [];
  const form = h('form', {
    oninput: () => answers.set(id, JSON.stringify([...new FormData(form)])),
    onsubmit: (event) => {
      event.preventDefault();
      const data = new FormData(form);
      const answers = questions.map((one) => {
        const given = [...data.getAll(one.qid), data.get(`${one.qid}:other`) ?? ''].filter((text) => text !== '');
        return [one.qid, given.length ? given.join(', ') : null];
      });
      void send({ answers: Object.fromEntries(answers) });
    },
  });
  for (const one of questions) form.append(question(one, id));
  fillIn(form, JSON.parse(answers.get(id) ?? '[]'));
  form.append(h('div.request-actions', {}, h('button.primary', { type: 'submit' }, 'Answer')));
  return [h('h2', {}, icon('question'), 'The agent has a question'), form];
}

/** @param fields names and values, as a form gives them */
function fillIn(form, fields) {
  for (const control of form.elements) {
    for (const [name, value] of fields) {
      if (control.name !== name) continue;
      if (control.type === 'text') control.value = value;
      else if (control.value === value) control.checked = true;
    }
  }
}

function question({ qid, question: text, choices = [], multi_select: many = false }, id) {
  const fields = choices.map((choice) =>
    h('label.choice', {}, h('input', { type: many ? 'checkbox' : 'radio', name: qid, value: choice }), choice),
  );
  const free = h('input', {
    name: `${qid}:other`,
    id: `${id}-${qid}`,
    'aria-label': choices.length ? `Another answer to: ${text}` : text,
    placeholder: choices.length ? 'Another answer' : 'Your answer',
  });
  return h('fieldset', {}, h('legend', {}, text), ...fields, free);
}
