/** What a conversation shows before its first message, and how a language model is connected. */
import { h, setText } from './dom.js';
import { splitModelId } from './model-choice.js';

const EXAMPLES = [
  ['what is 15% of 80', 'Arithmetic'],
  ['days until 2027-01-01', 'Dates'],
  ['note: buy milk', 'Notes'],
  ['how do I connect a model?', 'Connecting a model'],
  ['/demo tools', 'See tool calls'],
  ['/demo text', 'See Markdown and code'],
];

/** What goes into config.yaml for a provider, and the line of `.env` that has its key. */
const PROVIDERS = [
  {
    name: 'OpenAI',
    config: 'model:\n  provider: openai\n  default: gpt-4o-mini\n  api_key_env: OPENAI_API_KEY',
    key: 'OPENAI_API_KEY=…',
  },
  {
    name: 'Anthropic',
    config: 'model:\n  provider: anthropic\n  default: claude-sonnet-4-5\n  api_key_env: ANTHROPIC_API_KEY',
    key: 'ANTHROPIC_API_KEY=…',
  },
  {
    name: 'Another server (OpenAI-compatible)',
    config: 'model:\n  provider: custom\n  base_url: http://192.168.1.20:11434/v1\n  default: llama3.2',
    key: null,
  },
];

const SOURCES = {
  discovered: 'runs on the machine of the server',
  path: 'an agent that is installed there',
  configured: 'configured',
};
const TROUBLE = { unreachable: 'cannot be reached', loading: 'is still loading', unauthorized: 'wants a key' };

/** What keeps a provider or an agent away, as the end of a sentence. */
const troubleOf = ({ status, error }) => `${TROUBLE[status] ?? status}${error ? ` (${error})` : ''}`;
/** Whether it cannot be used now; one that is still loading soon can. */
const isAway = ({ status }) => status === 'unreachable' || status === 'unauthorized';

/**
 * @param onExample sends an example
 * @param onUse takes the id of a model for new conversations
 * @returns the element, and `render(models, chosen)`
 */
export function createWelcome({ onExample, onUse }) {
  const lead = h('p.lead');
  const found = h('ul.found', { 'aria-label': 'Found' });
  const foundNote = h('p', {});
  const help = h(
    'section.connect',
    { 'aria-labelledby': 'connect-title' },
    h('h3', { id: 'connect-title' }, 'Connect a language model'),
    foundNote,
    found,
    ...PROVIDERS.map(recipe),
    h(
      'p.help',
      {},
      'The home of the server is ~/.turnkeep unless it was started with another. A key stays on the server and is never sent to a browser. Start the server again after a change.',
    ),
  );
  const examples = h(
    'div.examples',
    {},
    ...EXAMPLES.map(([prompt, gives]) =>
      h(
        'button.example',
        { type: 'button', onclick: () => onExample(prompt) },
        h('span.example-gives', {}, gives),
        h('span.example-prompt', {}, prompt),
      ),
    ),
  );
  const element = h(
    'section.welcome',
    { 'aria-label': 'Welcome' },
    h('img', { src: 'favicon.svg', alt: '', width: '48', height: '48' }),
    h('h2', {}, 'What would you like to do?'),
    lead,
    examples,
    help,
  );

  let shown = '';
  /** What was found, the first model of each provider, and what keeps the others away. */
  function renderFound({ models, providers }) {
    const key = JSON.stringify([models, providers]);
    if (key === shown) return;
    shown = key;
    const firsts = new Map();
    for (const model of models) {
      if (model.source !== 'builtin' && !firsts.has(model.provider)) firsts.set(model.provider, model);
    }
    const troubled = providers.filter(({ status }) => status !== 'ok');
    for (const { name } of troubled.filter(isAway)) firsts.delete(name);
    found.replaceChildren(
      ...[...firsts.values()].map((model) =>
        usable(model, models.filter((one) => one.provider === model.provider).length),
      ),
      ...troubled.map((one) => h('li', {}, h('span', {}, h('strong', {}, one.name), ` ${troubleOf(one)}.`))),
    );
    const isNothing = found.childElementCount === 0;
    setText(
      foundNote,
      isNothing
        ? 'No model server (Ollama, LM Studio, llama-server) and no agent was found on the machine of the server. One that is started later is found within minutes.'
        : firsts.size > 0
          ? 'This is there already:'
          : 'This is known, but cannot be used now:',
    );
  }

  const usable = ({ id, label, provider, source }, count) =>
    h(
      'li',
      {},
      h('span', {}, h('strong', {}, provider), ` ${SOURCES[source] ?? ''}${count > 1 ? `, ${count} models` : ''}.`),
      h('button', { type: 'button', onclick: () => onUse(id) }, `Use ${label}`),
    );

  return {
    element,
    render(models, chosen) {
      const { model: id } = splitModelId(chosen ?? models?.default);
      const model = models?.models.find((one) => one.id === id);
      const isBuiltin = !model || model.source === 'builtin';
      help.hidden = !isBuiltin || models === null;
      examples.hidden = !isBuiltin;
      if (models !== null) renderFound(models);
      const trouble = models?.providers.find((one) => one.name === model?.provider && isAway(one));
      setText(
        lead,
        isBuiltin
          ? 'You are talking to the built-in agent. It is no language model: it answers by rules, with real tools for sums, dates, notes, your chats and the files of a folder. It works without a key, and nothing leaves this machine.'
          : trouble
            ? `${model.label} is chosen, but ${trouble.name} ${troubleOf(trouble)}. Mend that, or choose another model below the message box.`
            : `You are talking to ${model.label}. Write a message to begin.`,
      );
    },
  };
}

function recipe({ name, config, key }) {
  return h(
    'details.recipe',
    {},
    h('summary', {}, name),
    h('p', {}, 'Into config.yaml in the home of the server:'),
    h('pre', { tabindex: '0' }, config),
    ...(key === null
      ? []
      : [h('p', {}, 'Into the file .env beside it, with your key:'), h('pre', { tabindex: '0' }, key)]),
  );
}
