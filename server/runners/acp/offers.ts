/**
 * The models and modes that an agent offers with a session, and how one is chosen. Agents say it in one of three forms: the
 * options of the session (`configOptions` with a category), `modes`, and `models` of older ones, which newer versions of
 * the protocol no longer have.
 */
import { methods } from '@agentclientprotocol/sdk';
import { type AgentChoice, type AgentOffer, NO_OFFER } from './agent-target.ts';
import { listOf, recordOf } from './raw.ts';

/** What can be chosen of one kind, and the request that chooses. */
interface Selector {
  choices: AgentChoice[];
  current: string | null;
  request(id: string): { method: string; params: object };
}

export interface Offer {
  model: Selector | null;
  mode: Selector | null;
}

const OLD_SET_MODEL = 'session/set_model';

/** @param response of session/new, load or resume, as the agent wrote it */
export function readOffer(response: unknown): Offer {
  const { modes, models, configOptions } = recordOf(response);
  return {
    model:
      fromOption(configOptions, 'model') ??
      fromState(recordOf(models), 'availableModels', 'modelId', 'currentModelId', OLD_SET_MODEL),
    mode:
      fromOption(configOptions, 'mode') ??
      fromState(recordOf(modes), 'availableModes', 'id', 'currentModeId', methods.agent.session.setMode),
  };
}

/** The same for who keeps lists of models. */
export function toAgentOffer({ model, mode }: Offer): AgentOffer {
  return {
    ...NO_OFFER,
    ...(model ? { models: model.choices, currentModel: model.current } : {}),
    ...(mode ? { modes: mode.choices, currentMode: mode.current } : {}),
  };
}

function fromOption(options: unknown, category: string): Selector | null {
  const found = listOf(options)
    .map(recordOf)
    .find((option) => option.category === category && option.type === 'select');
  if (!found || typeof found.id !== 'string') return null;
  const configId = found.id;
  // Options stand in groups, or by themselves.
  const values = listOf(found.options).flatMap((one) =>
    'options' in recordOf(one) ? listOf(recordOf(one).options) : [one],
  );
  return {
    choices: choicesOf(values, 'value'),
    current: text(found.currentValue),
    request: (value) => ({ method: methods.agent.session.setConfigOption, params: { configId, value } }),
  };
}

function fromState(
  state: Record<string, unknown>,
  available: string,
  idKey: string,
  current: string,
  method: string,
): Selector | null {
  const choices = choicesOf(listOf(state[available]), idKey);
  if (choices.length === 0) return null;
  const param = method === OLD_SET_MODEL ? 'modelId' : 'modeId';
  return { choices, current: text(state[current]), request: (id) => ({ method, params: { [param]: id } }) };
}

function choicesOf(values: readonly unknown[], idKey: string): AgentChoice[] {
  return values
    .map(recordOf)
    .flatMap(({ [idKey]: id, name }) =>
      typeof id === 'string' && id !== '' ? [{ id, label: typeof name === 'string' && name !== '' ? name : id }] : [],
    );
}

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
