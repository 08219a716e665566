/**
 * Model ids: `<provider>/<model>`, split at the first slash, because names of models have slashes of their own. Those of an
 * agent of others may end with one of its modes: `<agent>/<model>?mode=<mode>`.
 */

/** The id of the agent that needs no model. */
export const BUILTIN_MODEL_ID = 'builtin';

export interface ModelId {
  provider: string;
  model: string;
}

/** Reads `custom/llama3`; null for text without a provider or without a model (`builtin` too). */
export function parseModelId(id: string): ModelId | null {
  const slash = id.indexOf('/');
  if (slash <= 0 || slash === id.length - 1) return null;
  return { provider: id.slice(0, slash), model: id.slice(slash + 1) };
}

/** Writes what `parseModelId` reads. */
export const formatModelId = ({ provider, model }: ModelId): string => `${provider}/${model}`;

const MODE = '?mode=';

/** Parts the mode from an agent's model; null when it has none. Modes may be addresses, so nothing is escaped. */
export function splitMode(model: string): { model: string; mode: string | null } {
  const at = model.indexOf(MODE);
  if (at < 0) return { model, mode: null };
  return { model: model.slice(0, at), mode: model.slice(at + MODE.length) || null };
}
