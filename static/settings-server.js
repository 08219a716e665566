/** The settings that are kept on the server and hold in every browser. */
import { h, setText } from './dom.js';
import { modelName } from './model-choice.js';

const MODES = {
  queue: 'It waits for its turn',
  steer: 'It is said to the turn that runs',
  interrupt: 'It stops the turn and comes next',
};

/**
 * @param actions `models()`, `auth()`, `modelsChanged()` (the default model is another)
 * @returns `element`, and `refresh()` for when somebody else changed something
 */
export function createServerSettings({ api, actions }) {
  const error = h('p.error', { role: 'alert' });
  const model = h('select', { id: 'setting-model', onchange: () => change({ default_model: model.value || null }) });
  const mode = h('select', { id: 'setting-mode', onchange: () => change({ busy_input_mode: mode.value || null }) });
  const mayChange = actions.auth()?.scope === 'admin';
  const fields = h(
    'fieldset.setting-group',
    { disabled: true },
    h(
      'div.setting',
      {},
      h('label', { for: 'setting-model' }, 'Model of new conversations'),
      model,
      h('p.help', {}, 'Also of conversations for which no other was chosen.'),
    ),
    h('div.setting', {}, h('label', { for: 'setting-mode' }, 'A message that is sent while a turn runs'), mode),
  );

  const option = (value, text) => h('option', { value }, text);

  function draw({ default_model: chosen, busy_input_mode: chosenMode, configured }) {
    const models = actions.models();
    const asConfigured = configured.default_model ? modelName(models, configured.default_model) : 'none';
    const known = models?.models ?? [];
    model.replaceChildren(
      option('', `As configured: ${asConfigured}`),
      ...known.map(({ id, label, provider }) => option(id, provider === id ? label : `${label} (${provider})`)),
      ...(chosen && !known.some(({ id }) => id === chosen) ? [option(chosen, chosen)] : []),
    );
    model.value = chosen ?? '';
    mode.replaceChildren(
      option('', `As configured: ${MODES[configured.busy_input_mode].toLowerCase()}`),
      ...Object.entries(MODES).map(([value, words]) => option(value, words)),
    );
    mode.value = chosenMode ?? '';
    fields.disabled = !mayChange;
  }

  /** Shows what the server answers; what it refuses is told, and shown as it was. */
  async function settle(work) {
    setText(error, '');
    try {
      draw(await work());
      return true;
    } catch (failure) {
      setText(error, failure.message);
      return false;
    }
  }
  const refresh = () => settle(() => api.get('api/settings'));

  async function change(changes) {
    if (await settle(() => api.patch('api/settings', changes))) {
      actions.modelsChanged();
      return;
    }
    const { textContent: why } = error;
    await refresh();
    setText(error, why);
  }

  void refresh();
  const element = h(
    'div',
    {},
    mayChange ? null : h('p.note-quiet', {}, 'Your login may see this, but not change it.'),
    fields,
    error,
    h(
      'p.help',
      {},
      'These hold for everybody who uses this server. Providers, keys, limits and approvals are in its config.yaml.',
    ),
  );
  return { element, refresh };
}
