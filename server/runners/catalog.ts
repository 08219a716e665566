/**
 * The catalog: which models there are, which provider serves one, and what an id means (RU9). Owns the cached
 * lists of the providers and the servers that were found on this machine.
 *
 * Lists are fetched in the background only: nothing here but `refresh` waits for a network, and nobody has to wait
 * for `refresh`. What is not known yet is accepted rather than refused.
 */
import { AGENTS_OWN_CHOICE, type AgentList } from './acp/agent-list.ts';
import type { AgentTarget } from './acp/agent-target.ts';
import { knownAgent } from './acp/known-agents.ts';
import { DISCOVERY_TARGETS, type DiscoveryTarget, probe, providerOf } from './discover.ts';
import { BUILTIN_MODEL_ID, formatModelId, type ModelId, parseModelId, splitMode } from './model-id.ts';
import { fetchModelList, type ListedModel } from './model-list.ts';
import { authHeaders, type ProviderConfig, type ProviderLookup } from './provider.ts';
import type { ModelInfo } from './runner.ts';

const LIST_TIMEOUT_MS = 3000;
const STALE_AFTER_S = 300;

export interface ProviderStatus {
  name: string;
  status: 'ok' | 'unreachable' | 'loading' | 'unauthorized';
  /** For a person; never a secret. */
  error?: string;
}

export interface CatalogView {
  models: ModelInfo[];
  /** The id of sessions that name none; empty when there is nothing to choose. */
  default: string;
  providers: ProviderStatus[];
}

export type Resolution =
  | { kind: 'builtin' }
  | { kind: 'model'; provider: ProviderConfig; model: string }
  /** Of others; null is what it takes by itself. */
  | { kind: 'agent'; agent: AgentTarget; model: string | null; mode: string | null }
  | { kind: 'unknown'; reason: string };

export interface Catalog extends ProviderLookup {
  /** What is known now. Starts a refresh in the background when that is older than five minutes or never was. */
  list(): CatalogView;
  /** Asks all providers and looks for servers on this machine; one at a time, never rejects. */
  refresh(): Promise<void>;
  /** The default without anybody's choice. */
  configuredDefault(): string;
  /** What a session's model means; null and the empty text mean the default. */
  resolve(modelId: string | null): Resolution;
}

export interface CatalogParts {
  /** As configured, the first being the preferred one. */
  providers: readonly ProviderConfig[];
  /** Whether the built-in agent is there. */
  builtin: boolean;
  /** Agents of others. */
  agents?: AgentList;
  /** The default that was chosen in place of the configured one; null for none. It stays also where it is gone. */
  chosenDefault?: () => string | null;
  /** Epoch seconds. */
  now: () => number;
  fetch?: typeof fetch;
  /** Told once when a provider's state changes, for the log. */
  onStatus?: (status: ProviderStatus) => void;
  /** Where to look on this machine; empty to look nowhere. */
  discovery?: readonly DiscoveryTarget[];
}

interface Entry {
  provider: ProviderConfig;
  source: 'configured' | 'discovered';
  status: ProviderStatus;
  /** As last fetched; null before that. */
  listed: ListedModel[] | null;
}

/** Makes the catalog. It does nothing by itself: call `refresh` at start, and do not wait for it. */
export function createCatalog(parts: CatalogParts): Catalog {
  const { agents } = parts;
  const fetchImpl: typeof fetch = parts.fetch ?? ((input, init) => fetch(input, init));
  const entries = new Map<string, Entry>();
  for (const provider of parts.providers) entries.set(provider.name, newEntry(provider, 'configured'));
  // A server that is configured already is not found a second time under another name.
  const taken = new Set(parts.providers.map(({ baseUrl }) => addressOf(baseUrl)));
  const targets = (parts.discovery ?? DISCOVERY_TARGETS).filter(
    (target) => !entries.has(target.name) && !taken.has(addressOf(providerOf(target).baseUrl)),
  );
  let refreshing: Promise<void> | null = null;
  let refreshedAt: number | null = null;

  const setStatus = (entry: Entry, status: ProviderStatus['status'], error?: string): void => {
    const changed = entry.status.status !== status || entry.status.error !== error;
    entry.status =
      error === undefined ? { name: entry.provider.name, status } : { name: entry.provider.name, status, error };
    if (changed) parts.onStatus?.(entry.status);
  };

  const refreshConfigured = async (entry: Entry): Promise<void> => {
    const { kind, baseUrl, apiKey } = entry.provider;
    // Anthropic lists twenty unless it is asked for more.
    const url = `${baseUrl.replace(/\/+$/, '')}/models${kind === 'anthropic' ? '?limit=1000' : ''}`;
    const headers = authHeaders(kind, apiKey);
    const outcome = await fetchModelList({ fetch: fetchImpl, url, headers, timeoutMs: LIST_TIMEOUT_MS, strict: false });
    switch (outcome.kind) {
      case 'ok':
        entry.listed = outcome.models;
        return setStatus(entry, 'ok');
      case 'unauthorized':
        return setStatus(entry, 'unauthorized', apiKey ? 'the API key was refused' : 'an API key is needed');
      case 'loading':
        return setStatus(entry, 'loading');
      case 'unreachable':
        return setStatus(entry, 'unreachable', outcome.error); // what was listed before stays
    }
  };

  const refreshDiscovered = async (target: DiscoveryTarget): Promise<void> => {
    const found = await probe(target, fetchImpl);
    const known = entries.get(target.name);
    if (!found) {
      // A session may be using it: it stays, so that its turns fail with the truth.
      if (known) setStatus(known, 'unreachable', 'it no longer answers');
      return;
    }
    const entry = known ?? newEntry(found.provider, 'discovered');
    entry.listed = found.models;
    entries.set(target.name, entry);
    setStatus(entry, 'ok');
  };

  const refresh = (): Promise<void> => {
    refreshing ??= Promise.all([
      ...[...entries.values()].filter((entry) => entry.source === 'configured').map(refreshConfigured),
      ...targets.map(refreshDiscovered),
      agents?.refresh(),
    ])
      .then(() => {})
      .finally(() => {
        refreshing = null;
        refreshedAt = parts.now();
      });
    return refreshing;
  };

  const find = (name: string, model: string): ProviderConfig | null => {
    const entry = entries.get(name);
    if (!entry) return null;
    const known = entry.listed?.find((listed) => isSameModel(listed.name, model))?.contextLength ?? null;
    return { ...entry.provider, contextLength: entry.provider.contextLength ?? known };
  };

  const configuredDefault = (): string => {
    if (agents?.preferred) return formatModelId({ provider: agents.preferred, model: AGENTS_OWN_CHOICE });
    for (const { provider, listed } of entries.values()) {
      const model = provider.defaultModel ?? listed?.[0]?.name;
      // A server that merely happens to run here is used only when it is chosen, or when there is nothing else.
      const isChosen = parts.providers.includes(provider) || !parts.builtin;
      if (model && isChosen) return formatModelId({ provider: provider.name, model });
    }
    return parts.builtin ? BUILTIN_MODEL_ID : '';
  };

  // A chosen model that is gone fails its turns with the truth: another one may cost money, or tell strangers.
  const defaultId = (): string => parts.chosenDefault?.() ?? configuredDefault();

  /** What an agent does not list is for the agent to refuse: it may have learned since it last ran. */
  const resolveAgent = ({ provider: name, model: asked }: ModelId): Resolution => {
    const agent = agents?.find(name);
    if (!agent) return { kind: 'unknown', reason: whyNoAgent(name, (agents?.lastOffer(name) ?? null) !== null) };
    const { model, mode } = splitMode(asked);
    return { kind: 'agent', agent, model: model === AGENTS_OWN_CHOICE || model === '' ? null : model, mode };
  };

  return {
    find,
    refresh,
    configuredDefault,
    list() {
      if (refreshedAt === null || parts.now() - refreshedAt > STALE_AFTER_S) void refresh();
      const models = [...entries.values()].flatMap(modelsOf);
      if (parts.builtin) models.unshift(BUILTIN);
      models.push(...(agents?.models() ?? []));
      const providers = [...[...entries.values()].map(({ status }) => status), ...(agents?.statuses() ?? [])];
      return { models, default: defaultId(), providers };
    },
    resolve(modelId) {
      const id = modelId || defaultId();
      if (id === '') return { kind: 'unknown', reason: 'No model is configured.' };
      if (id === BUILTIN_MODEL_ID && parts.builtin) return { kind: 'builtin' };
      const parsed = parseModelId(id);
      if (!parsed) return { kind: 'unknown', reason: `There is no model "${id}"; ids are <provider>/<model>.` };
      const entry = entries.get(parsed.provider);
      const provider = find(parsed.provider, parsed.model);
      if (!entry || !provider) return resolveAgent(parsed);
      if (!isKnown(entry, parsed.model)) {
        return { kind: 'unknown', reason: `${parsed.provider} has no model "${parsed.model}".` };
      }
      return { kind: 'model', provider, model: parsed.model };
    },
  };
}

const BUILTIN: ModelInfo = {
  id: BUILTIN_MODEL_ID,
  label: 'Built-in agent (no model)',
  provider: BUILTIN_MODEL_ID,
  source: 'builtin',
};

function whyNoAgent(name: string, hasRun: boolean): string {
  if (knownAgent(name)) return `The agent "${name}" is neither configured nor found on PATH.`;
  return hasRun ? `The agent "${name}" is no longer configured.` : `There is no provider or agent "${name}".`;
}

const newEntry = (provider: ProviderConfig, source: Entry['source']): Entry => ({
  provider,
  source,
  status: { name: provider.name, status: 'loading' },
  listed: null,
});

function modelsOf({ provider, source, listed }: Entry): ModelInfo[] {
  const models = (listed ?? []).filter((model) => provider.kind !== 'openai' || !NOT_FOR_CHAT.test(model.name));
  const named = [...(provider.defaultModel ? [provider.defaultModel] : []), ...(provider.models ?? [])];
  const missing = [...new Set(named)].filter((name) => !models.some((model) => model.name === name));
  models.unshift(...missing.map((name) => ({ name, contextLength: null })));
  return models.map(({ name, contextLength }) => {
    const window = provider.contextLength ?? contextLength;
    const info: ModelInfo = {
      id: formatModelId({ provider: provider.name, model: name }),
      label: name.slice(name.lastIndexOf('/') + 1) || name,
      provider: provider.name,
      source,
    };
    if (window !== null) info.context_length = window;
    return info;
  });
}

/** OpenAI lists everything that it has; these do not chat. They are not offered, but not refused either. */
const NOT_FOR_CHAT = /embedding|whisper|tts|dall-e|image|moderation|transcribe|realtime|audio|sora|babbage|davinci/;

/** A list that is not there yet, or is empty, refuses nothing: some servers list only what is loaded. */
function isKnown({ provider, listed }: Entry, model: string): boolean {
  if (!listed || listed.length === 0 || model === provider.defaultModel) return true;
  if (provider.models?.includes(model)) return true;
  return listed.some(({ name }) => isSameModel(name, model));
}

/** Ollama lists `llama3:latest` and takes `llama3`. */
const isSameModel = (listed: string, asked: string): boolean => listed === asked || listed === `${asked}:latest`;

function addressOf(baseUrl: string): string {
  if (!URL.canParse(baseUrl)) return baseUrl;
  const url = new URL(baseUrl);
  const host = url.hostname === 'localhost' || url.hostname === '[::1]' ? '127.0.0.1' : url.hostname;
  return `${host}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`;
}
