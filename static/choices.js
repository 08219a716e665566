/**
 * Which model and folder a conversation has: the pickers in the bar of the message box, and what is chosen for a
 * conversation that does not exist yet.
 */
import { createPlaces, createRecentFolders, folderGroups, folderName, folderNote } from './folder-choice.js';
import { meantModel, modelGroups, modelName } from './model-choice.js';
import { createPicker } from './picker.js';

/**
 * @param actions `known(session)` (the server has changed it), `refreshModels()`
 * @returns `pickers`, `next()`, `chooseModel(words)`, `render(state)`, `openModel()`
 */
export function createChoices({ api, store, actions }) {
  const recent = createRecentFolders();
  const places = createPlaces({ api, onChange: () => folder.refresh() });
  /** For a conversation that does not exist yet; `undefined` where nothing was chosen. */
  const chosen = { model: undefined, workspace: undefined };
  /** Settles when the folder that was picked last was looked at. */
  let looked = Promise.resolve(null);

  const modelOf = ({ open }) => (open === null ? (chosen.model ?? null) : (open.session?.model ?? null));
  const folderOf = ({ open }) => (open === null ? (chosen.workspace ?? null) : (open.session?.workspace ?? null));

  /** @returns null, or a sentence when it was refused */
  async function choose(field, value, { open } = store.get()) {
    if (open === null) {
      chosen[field] = value;
      render(store.get());
      return null;
    }
    try {
      const { session } = await api.patch(`api/sessions/${open.sessionId}`, { [field]: value });
      actions.known(session);
      return null;
    } catch (failure) {
      return failure.message;
    }
  }

  const model = createPicker({
    name: 'model',
    symbol: 'spark',
    label: 'Model',
    placeholder: 'Search models',
    groups: (query) => modelGroups(store.get().models, modelOf(store.get()), query),
    onPick: ({ id }) => choose('model', id === store.get().models.default ? null : id),
    onOpen: actions.refreshModels,
  });
  const folder = createPicker({
    name: 'folder',
    symbol: 'folder',
    label: 'Folder that the agent works in',
    placeholder: 'Search, or type the path of a folder',
    groups: (query) => folderGroups(folders(), query),
    note: (query, isEmpty) => folderNote(folders(), query, isEmpty),
    onPick({ path }) {
      looked = chooseFolder(path);
      return looked;
    },
    onOpen: places.forget,
  });

  const folders = () => ({
    chosen: folderOf(store.get()),
    recent: recent.all(store.get().list.sessions),
    places,
  });

  /** @returns null, or a sentence when it was refused: one that is gone is not found out by sending */
  async function chooseFolder(path) {
    // Another conversation may be open when the answer comes.
    const target = store.get();
    const { failure } = path === null ? {} : await places.look(path);
    if (failure) return failure.message;
    const refused = await choose('workspace', path, target);
    if (!refused && path !== null) recent.used(path);
    return refused;
  }

  let shown = null;
  function render(state) {
    const { models } = state;
    const [modelId, path] = [modelOf(state), folderOf(state)];
    if (models !== shown) {
      shown = models;
      model.refresh();
    }
    model.value(modelName(models, modelId), modelId ?? models?.default ?? '');
    folder.value(path === null ? 'No folder' : folderName(path), path ?? 'none');
    folder.button.classList.toggle('unset', path === null);
  }

  return {
    pickers: [model, folder],
    render,
    openModel: model.open,
    modelOf,
    /** What the next new conversation is made with; whoever sends at once does not overtake the choice of a folder. */
    async next() {
      await looked;
      return { model: modelOf({ open: null }), workspace: folderOf({ open: null }) };
    },
    /** Takes a model by its id, or by words of its name. Resolves with a sentence when it was not taken, else null. */
    async chooseModel(words) {
      const id = meantModel(store.get().models, words);
      return id === null ? `There is no model like “${words}”.` : choose('model', id);
    },
  };
}
