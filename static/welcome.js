/** What a conversation shows before its first message. */
import { h, setText } from './dom.js';

const EXAMPLES = [
  ['what is 15% of 80', 'Arithmetic'],
  ['days until 2027-01-01', 'Dates'],
  ['note: buy milk', 'Notes'],
  ['how do I connect a model?', 'Connecting a model'],
  ['/demo tools', 'See tool calls'],
  ['/demo text', 'See Markdown and code'],
];

const CONFIG = `model:
  provider: custom
  base_url: http://127.0.0.1:11434/v1
  default: llama3.2`;

/** @param onExample sends an example @returns the element, and `render(models, chosen)` */
export function createWelcome({ onExample }) {
  const lead = h('p.lead');
  const help = h(
    'details.connect',
    {},
    h('summary', {}, 'Connect a language model'),
    h(
      'p',
      {},
      'Any OpenAI-compatible server works. Put this into the file config.yaml in the home of the server, which is ~/.turnkeep unless it was started with another, and start the server again:',
    ),
    h('pre', { tabindex: '0' }, CONFIG),
    h(
      'p',
      {},
      'Ollama, LM Studio and llama-server on the same machine need no file: the server looks for them when it starts, and those that run appear in the list of models at the top. The section “Connecting a model” of the README says more.',
    ),
  );
  const element = h(
    'section.welcome',
    { 'aria-label': 'Welcome' },
    h('img', { src: 'favicon.svg', alt: '', width: '48', height: '48' }),
    h('h2', {}, 'What would you like to do?'),
    lead,
    h(
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
    ),
    help,
  );
  return {
    element,
    render(models, chosen) {
      const id = chosen ?? models?.default;
      const model = models?.models.find((one) => one.id === id);
      const isBuiltin = !model || model.source === 'builtin';
      help.hidden = !isBuiltin;
      element.querySelector('.examples').hidden = !isBuiltin;
      setText(
        lead,
        isBuiltin
          ? 'You are talking to the built-in agent. It is no language model: it answers by rules, with real tools for sums, dates, notes, your chats and the files of a workspace. It works without a key, and nothing leaves this machine.'
          : `You are talking to ${model.label}. Write a message to begin.`,
      );
    },
  };
}
