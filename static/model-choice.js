/** The models as something to choose from. Pure: from what GET /api/models gives to groups of options. */

const TROUBLE = { unreachable: 'cannot be reached', loading: 'is loading', unauthorized: 'is not authorized' };

/** How many tokens, in a word: 128k, 1M. */
export function windowWord(tokens) {
  if (!tokens) return '';
  if (tokens >= 1_000_000) return `${Number((tokens / 1_000_000).toFixed(1))}M`;
  return tokens >= 1000 ? `${Math.round(tokens / 1000)}k` : String(tokens);
}

/** A model's id without its mode, and the mode; an agent's id may carry one as `?mode=`. */
export function splitModelId(id) {
  const [model, mode = null] = (id ?? '').split('?mode=');
  return { model, mode };
}

/** What a model is called in a line. @param id null for the default */
export function modelName(models, id) {
  const wanted = id || models?.default;
  if (!wanted) return models === null ? 'Default model' : 'No model';
  const { model: base, mode } = splitModelId(wanted);
  const model = models?.models.find((one) => one.id === base || one.id === wanted);
  if (!model) return wanted;
  const modeName = model.modes?.find((one) => one.id === mode)?.label ?? mode;
  return mode === null ? model.label : `${model.label}, ${modeName}`;
}

/**
 * The groups of options for a search.
 * @param models as GET /api/models gives it, or null
 * @param chosen the id that is in force; null for the default
 * @param query words that must all be there
 */
export function modelGroups(models, chosen, query) {
  if (models === null) return [{ options: [{ label: 'The models are not known yet.', disabled: true }] }];
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (...texts) => words.every((word) => texts.join(' ').toLowerCase().includes(word));
  const groups = new Map();
  const group = (name) => {
    if (!groups.has(name)) groups.set(name, { label: name, options: [] });
    return groups.get(name).options;
  };
  const current = chosen || models.default;
  for (const model of models.models) {
    const { id, label, provider, source, context_length: tokens, modes = [] } = model;
    const where = source === 'builtin' ? 'Built in' : provider;
    const detail = [tokens ? `${windowWord(tokens)} tokens` : '', id === models.default ? 'default' : ''];
    const said = detail.filter(Boolean).join(' · ');
    if (matches(label, id, provider))
      group(where).push({ id, label, detail: said, title: id, current: id === current });
    for (const mode of modes) {
      const withMode = `${id}?mode=${mode.id}`;
      if (!matches(label, id, provider, mode.label)) continue;
      const name = `${label}, ${mode.label}`;
      group(where).push({ id: withMode, label: name, title: withMode, current: withMode === current });
    }
  }
  for (const { name, status, error } of models.providers) {
    if (status === 'ok' || !matches(name)) continue;
    const reason = `${TROUBLE[status] ?? status}${error ? `: ${error}` : ''}`;
    group(name).push({ label: `${name} ${reason}`, disabled: true });
  }
  const isKnown = models.models.some((one) => current === one.id || current.startsWith(`${one.id}?mode=`));
  if (current && !isKnown && matches(current)) {
    group('Not available now').push({ id: current, label: current, current: true, disabled: true });
  }
  return [...groups.values()];
}

/** The model that is meant by words of a person, or null: the first whose id or label has all of them. */
export function meantModel(models, words) {
  const exact = models?.models.find(({ id, label }) => id === words || label === words);
  if (exact) return exact.id;
  const options = modelGroups(models, null, words).flatMap((group) => group.options);
  return options.find((option) => option.id && !option.disabled)?.id ?? null;
}
