/** The files of the message that is being written: chosen, pasted or dropped, each with its progress or its error. */
import { h, icon, iconButton } from './dom.js';
import { filesOf, newFile, sizeOf, upload } from './uploads.js';

/**
 * @param form takes pastes; @param area takes drops, it is the whole conversation
 * @param actions `add(files)`, `remove(file)`, `again(file)`
 * @returns `element`, `button`, `render(files)`
 */
export function createFiles({ form, area, actions }) {
  const element = h('ul.files', { hidden: true, 'aria-label': 'Files of this message' });
  const input = h('input', {
    type: 'file',
    multiple: true,
    hidden: true,
    'aria-label': 'Files to add',
    onchange: () => {
      actions.add([...input.files].map(newFile));
      input.value = '';
    },
  });
  const button = iconButton('clip', 'Add files', { onclick: () => input.click() });
  const over = h(
    'div.drop',
    { hidden: true, 'aria-hidden': 'true' },
    h('p', {}, 'Drop files to add them to your message'),
  );
  form.append(input);
  area.append(over);

  form.addEventListener('paste', (event) => {
    const files = filesOf(event.clipboardData);
    // A copied table is text and a picture of it: the text is meant.
    if (files.length === 0 || event.clipboardData.types.includes('text/plain')) return;
    event.preventDefault();
    actions.add(files.map(newFile));
  });

  let depth = 0;
  const isOver = (by) => {
    depth = by === 0 ? 0 : Math.max(0, depth + by);
    over.hidden = depth === 0 || !actions.allowed();
  };
  const carriesFiles = (event) => event.dataTransfer?.types.includes('Files') ?? false;
  area.addEventListener('dragenter', (event) => carriesFiles(event) && isOver(1));
  area.addEventListener('dragleave', (event) => carriesFiles(event) && isOver(-1));
  area.addEventListener('dragover', (event) => carriesFiles(event) && event.preventDefault());
  area.addEventListener('drop', (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    isOver(0);
    if (actions.allowed()) actions.add(filesOf(event.dataTransfer).map(newFile));
  });

  function chip(file) {
    const isOnItsWay = file.progress !== null && file.progress !== undefined;
    const bar =
      isOnItsWay && h('progress', { max: '1', value: String(file.progress), 'aria-label': `Sending ${file.name}` });
    return h(
      `li.file${file.error ? '.failed' : ''}`,
      {},
      icon('clip'),
      h('span.file-name', { dir: 'auto', title: file.name }, file.name),
      h('span.file-size', {}, sizeOf(file.size)),
      bar,
      file.error ? h('span.file-error', { role: 'alert' }, file.error) : null,
      file.error ? h('button.again', { type: 'button', onclick: () => actions.again(file) }, 'Try again') : null,
      iconButton('close', `Remove ${file.name}`, { onclick: () => actions.remove(file) }),
    );
  }

  let frame = 0;
  return {
    element,
    button,
    /** Draws at most once a frame: progress comes often. */
    render(files) {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        element.hidden = files.length === 0;
        element.replaceChildren(...files.map(chip));
      });
    },
  };
}

/** Sends what of these files is not there yet, two at a time; resolves when each is there or has its error. */
export async function uploadAll(sessionId, files, onChange) {
  const waiting = files.filter((file) => file.id === null && !file.underway);
  const underway = files.filter((file) => file.underway).map((file) => file.underway);
  const lane = async () => {
    for (let file = waiting.shift(); file; file = waiting.shift()) {
      const { underway: done } = Object.assign(file, { underway: upload(sessionId, file, onChange) });
      await done;
      file.underway = null;
    }
  };
  await Promise.all([lane(), lane(), ...underway]);
}
