/** Import: exported conversations that are dropped on the list, or chosen. */
import { h } from './dom.js';

/** @returns how many of the files became conversations, and the last of them; what went wrong is told by `notice` */
export async function importFiles(files, { api, notice }) {
  const made = [];
  for (const file of files) {
    try {
      const document = parse(await file.text());
      if (document === null)
        notice(`“${file.name}” is no exported conversation: export one as JSON to get such a file.`);
      else made.push((await api.post('api/sessions/import', document)).session);
    } catch (failure) {
      notice(`“${file.name}” was not imported. ${failure.message}`);
    }
  }
  return made;
}

/** @returns null for what is no JSON object */
function parse(text) {
  try {
    const document = JSON.parse(text);
    return document !== null && typeof document === 'object' && !Array.isArray(document) ? document : null;
  } catch {
    return null;
  }
}

/** Lets a person choose files. @param onFiles gets them */
export function chooseFiles(onFiles) {
  const input = h('input', { type: 'file', accept: '.json,application/json', multiple: true });
  input.addEventListener('change', () => onFiles([...input.files]));
  input.click();
}

/** Takes files that are dropped anywhere on an element, and says so while they hang over it. */
export function takeDrops(element, onFiles) {
  const hint = h('p.drop-hint', { 'aria-hidden': 'true' }, 'Drop to import');
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
  const show = (isOver) => {
    if (isOver) element.append(hint);
    else hint.remove();
  };
  element.addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = 'copy';
    show(true);
  });
  element.addEventListener('dragleave', (event) => {
    if (!element.contains(event.relatedTarget)) show(false);
  });
  element.addEventListener('drop', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.stopPropagation();
    show(false);
    onFiles([...event.dataTransfer.files]);
  });
}
