/**
 * The commands of the page: a line that begins with a slash and one of these names is for the page, everything else is
 * for the agent. Pure.
 */

/** `takes` is shown behind the name; `choices` are what may follow it. */
export const COMMANDS = [
  { name: 'new', takes: '[message]', gives: 'Begin a new conversation' },
  { name: 'model', takes: '[name]', gives: 'Choose the model of this conversation' },
  { name: 'retry', gives: 'Have the last message answered again' },
  { name: 'rewind', takes: '[turns]', gives: 'Take back the last turn, or as many as you say' },
  { name: 'compact', takes: '[what to keep]', gives: 'Summarise what is older, for the model only' },
  {
    name: 'export',
    takes: '[md|html|json]',
    gives: 'Save this conversation as a file',
    choices: ['md', 'html', 'json'],
  },
  { name: 'theme', takes: '[light|dark|system]', gives: 'Change the colours', choices: ['light', 'dark', 'system'] },
  { name: 'help', gives: 'Show the keys and the commands' },
];

/** @returns `{name, rest}` when the text is a command of the page, else null */
export function commandIn(text) {
  const match = /^\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(text.trimEnd());
  if (!match || !COMMANDS.some(({ name }) => name === match[1])) return null;
  return { name: match[1], rest: (match[2] ?? '').trim() };
}

/**
 * The text as the agent gets it: the space that sent a command of the page to the agent is not for the agent, which may
 * have a command of the same name.
 */
export const forAgent = (text) => (commandIn(text.trimStart()) ? text.trimStart() : text);

/** A text that an agent got, as it stands in the message box: with that space where the page would take it. */
export const forBox = (text) => (commandIn(text) ? ` ${text}` : text);

/**
 * What a text that is being typed may become: options with the text to put in its place, `whole` when nothing may
 * follow it. A whole name of a command can be sent to the agent as well.
 * @param models ids and labels of models, for `/model`
 */
export function completions(text, models = []) {
  const command = /^\/([a-z]*)$/.exec(text);
  if (command) {
    const ours = COMMANDS.filter(({ name }) => name.startsWith(command[1])).map(({ name, takes, gives }) => ({
      label: `/${name}${takes ? ` ${takes}` : ''}`,
      detail: gives,
      text: takes ? `/${name} ` : `/${name}`,
      whole: !takes,
    }));
    const theirs = { label: text, detail: 'Send this to the agent instead', text: ` ${text}`, whole: true };
    return commandIn(text) ? [...ours, theirs] : ours;
  }
  const argument = /^\/([a-z]+) (\S*)$/.exec(text);
  if (!argument) return [];
  const [, name, begun] = argument;
  if (name === 'model') {
    return models
      .filter(({ id, label }) => `${id} ${label}`.toLowerCase().includes(begun.toLowerCase()))
      .slice(0, 50)
      .map(({ id, label }) => ({ label, detail: id, text: `/model ${id}`, whole: true }));
  }
  const { choices = [] } = COMMANDS.find((one) => one.name === name) ?? {};
  return choices
    .filter((choice) => choice.startsWith(begun))
    .map((choice) => ({ label: choice, text: `/${name} ${choice}`, whole: true }));
}
