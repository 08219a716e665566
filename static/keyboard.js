/** The keys of the page, and the sheet that shows them with the commands. */
import { COMMANDS } from './commands.js';
import { h } from './dom.js';

/** `single` keys act only outside of fields, and can be turned off: a voice or a slip types them as well. */
const KEYS = [
  { keys: ['?'], gives: 'Show this sheet', action: 'help', single: true },
  { keys: ['n'], gives: 'New conversation', action: 'create', single: true },
  { keys: ['m'], gives: 'Go to the message box', action: 'message', single: true },
  { keys: ['j'], gives: 'Next conversation', action: 'next', single: true },
  { keys: ['k'], gives: 'Previous conversation', action: 'previous', single: true },
  { keys: ['/'], gives: 'Search', action: 'search', single: true },
  { keys: [','], gives: 'Settings', action: 'settings', single: true },
  { keys: ['Ctrl', 'K'], gives: 'Search', action: 'search' },
  { keys: ['Ctrl', '.'], gives: 'Stop the turn that runs', action: 'stop' },
];
/** Keys that belong to a part of the page; shown only. */
const ELSEWHERE = [
  { keys: ['Enter'], gives: 'Send the message' },
  { keys: ['Shift', 'Enter'], gives: 'New line' },
  { keys: ['Ctrl', 'Enter'], gives: 'While a turn runs: say it to that turn' },
  { keys: ['/'], gives: 'At the beginning of a message: commands' },
  { keys: ['Esc'], gives: 'Close what is open' },
];

const isField = (element) => element.matches?.('input, textarea, select, [contenteditable="true"]') ?? false;
const isMac = () => /mac|iphone|ipad/i.test(navigator.platform);

/**
 * @param actions by the names in `KEYS`
 * @returns `sheet()`, which shows the keys
 */
export function createKeyboard({ settings, actions }) {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return;
    const isModified = event.ctrlKey || event.metaKey;
    const found = KEYS.find(({ keys, single = false }) => {
      if (keys.at(-1).toLowerCase() !== event.key.toLowerCase() || event.altKey) return false;
      return single ? !isModified && !isField(event.target) && settings.get().shortcuts === 'on' : isModified;
    });
    if (!found) return;
    event.preventDefault();
    if (found.action === 'help') sheet();
    else actions[found.action]();
  });

  function sheet() {
    const name = (key) => (key === 'Ctrl' && isMac() ? '⌘' : key);
    const row = ({ keys, gives }) =>
      h('div.key-row', {}, h('dt', {}, ...keys.map((key) => h('kbd', {}, name(key)))), h('dd', {}, gives));
    const commandRow = ({ name: command, takes, gives }) =>
      h('div.key-row', {}, h('dt', {}, h('code', {}, `/${command}${takes ? ` ${takes}` : ''}`)), h('dd', {}, gives));
    const singles =
      settings.get().shortcuts === 'on' ? [] : [h('p.help', {}, 'Keys without Ctrl are turned off in the settings.')];
    const dialog = h(
      'dialog.dialog.sheet',
      { 'aria-labelledby': 'sheet-title' },
      h(
        'form',
        { method: 'dialog' },
        h('h2', { id: 'sheet-title', tabindex: '-1', autofocus: true }, 'Keys and commands'),
        h('h3', {}, 'Everywhere'),
        ...singles,
        h('dl.keys', {}, ...KEYS.map(row)),
        h('h3', {}, 'In the message box'),
        h('dl.keys', {}, ...ELSEWHERE.map(row)),
        h('h3', {}, 'Commands'),
        h('dl.keys.of-commands', {}, ...COMMANDS.map(commandRow)),
        h(
          'p.help',
          {},
          'Any other text goes to the agent, also one that begins with a slash. Where the agent has a command of the same name, as the built-in one has /help, choose “Send this to the agent instead” while you type it, or begin with a space.',
        ),
        h('div.dialog-actions', {}, h('button.primary', { type: 'submit' }, 'Close')),
      ),
    );
    dialog.addEventListener('close', () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }
  return { sheet };
}
