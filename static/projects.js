/** Projects: names and colours for groups of conversations, and the dialog that makes, changes and deletes them. */
import { confirmWith } from './dialog.js';
import { h, iconButton } from './dom.js';

/** Colours that can be told apart, on light and on dark. The next new project gets the first that none has. */
const COLORS = ['#2f81d8', '#c2561a', '#2f8f4e', '#a14fc4', '#c23b5e', '#8a7416', '#168a8a', '#6b6fd6'];

const nextColor = (projects) =>
  COLORS.find((color) => !projects.some((one) => one.color === color)) ?? COLORS[projects.length % COLORS.length];

/**
 * Opens the dialog.
 * @param projects gives them as they are now
 * @param actions `create({name, color})`, `change(id, {name?, color?})` and `remove(id)`; each resolves when the store has what came
 * of it, `create` with the project, null where it did not work
 * @param onCreate where one is wanted for something: gets the new project, and the dialog closes
 */
export function openProjects({ projects, actions, onCreate = null }) {
  const colors = h('datalist', { id: 'project-colors' }, ...COLORS.map((color) => h('option', { value: color })));
  const rows = h('ul.project-rows');
  const color = colorInput(nextColor(projects()), 'Colour of the new project');
  const name = h('input', { 'aria-label': 'Name of the new project', placeholder: 'New project', maxlength: '128' });
  const form = h(
    'form.project-row',
    {
      onsubmit: async (event) => {
        event.preventDefault();
        if (name.value.trim() === '') return name.focus();
        const made = await actions.create({ name: name.value.trim(), color: color.value });
        if (made === null) return;
        if (onCreate) {
          dialog.close();
          onCreate(made);
          return;
        }
        name.value = '';
        color.value = nextColor(projects());
        draw();
      },
    },
    color,
    name,
    h('button.primary', { type: 'submit' }, 'Create'),
  );
  const dialog = h(
    'dialog.dialog.projects',
    { 'aria-labelledby': 'projects-title' },
    h('h2', { id: 'projects-title' }, onCreate ? 'New project' : 'Projects'),
    colors,
    rows,
    form,
    h(
      'div.dialog-actions',
      {},
      h('button', { type: 'button', onclick: () => dialog.close() }, onCreate ? 'Cancel' : 'Done'),
    ),
  );

  function draw() {
    rows.replaceChildren(...(onCreate ? [] : projects().map(row)));
  }

  function row({ project_id: id, name: old, color: its }) {
    const field = h('input', { value: old, 'aria-label': `Name of ${old}`, maxlength: '128', dir: 'auto' });
    field.addEventListener('change', async () => {
      if (field.value.trim() === '') field.value = old;
      else await actions.change(id, { name: field.value.trim() });
    });
    const paint = colorInput(its ?? '#888888', `Colour of ${old}`);
    paint.addEventListener('change', () => actions.change(id, { color: paint.value }));
    const bin = iconButton('bin', `Delete ${old}`, { onclick: () => remove(id, old) });
    return h('li.project-row', { 'data-project': id }, paint, field, bin);
  }

  async function remove(id, old) {
    const agreed = await confirmWith({
      title: `Delete the project “${old}”?`,
      text: 'Its conversations stay, without a project.',
      action: 'Delete',
    });
    if (!agreed) return;
    await actions.remove(id);
    draw();
    name.focus();
  }

  const opener = document.activeElement;
  dialog.addEventListener('close', () => {
    dialog.remove();
    if (opener?.isConnected) opener.focus({ preventScroll: true });
  });
  draw();
  document.body.append(dialog);
  dialog.showModal();
  name.focus();
}

const colorInput = (value, label) =>
  h('input.color', { type: 'color', value, 'aria-label': label, title: label, list: 'project-colors' });
