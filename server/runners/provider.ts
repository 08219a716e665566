/**
 * A provider: an endpoint that speaks the OpenAI chat completions protocol or Anthropic's messages, as the configuration or
 * discovery names it.
 * Plain data; the API key is in here and nowhere else, and never leaves in an event, an error or a log line.
 */

export interface ProviderConfig {
  /** Stable short name without a slash: the part of a model id before its first slash. */
  name: string;
  /** `anthropic` speaks the messages protocol, the others chat completions. */
  kind: ProviderKind;
  /** With the version path and without a slash at its end, as in `http://127.0.0.1:11434/v1`. */
  baseUrl: string;
  apiKey: string | null;
  /** The model (without the provider's name) of sessions that name none; null when there is no such choice. */
  defaultModel: string | null;
  /** Tokens of the models' window, where it is known. */
  contextLength: number | null;
  /** Whether its models may be sent images; they may where nothing is said. */
  images?: boolean;
  /** Models that it serves besides those that it lists. */
  models?: readonly string[];
  price?: Price;
}

export type ProviderKind = 'custom' | 'openai' | 'anthropic';

/** US dollars for a million tokens. */
export interface Price {
  input: number;
  output: number;
  /** For input that the provider had in its cache; the price of input where it is not given. */
  cached?: number;
}

/** Where a kind is found, and the variable that holds its key, unless the configuration says otherwise. */
export const PROVIDER_DEFAULTS: Record<ProviderKind, { baseUrl: string | null; apiKeyEnv: string | null }> = {
  custom: { baseUrl: null, apiKeyEnv: null },
  openai: { baseUrl: 'https://api.openai.com/v1', apiKeyEnv: 'OPENAI_API_KEY' },
  anthropic: { baseUrl: 'https://api.anthropic.com/v1', apiKeyEnv: 'ANTHROPIC_API_KEY' },
};

/** The headers by which a provider of that kind knows who asks. */
export function authHeaders(kind: ProviderKind, apiKey: string | null): Record<string, string> {
  if (kind !== 'anthropic') return apiKey ? { authorization: `Bearer ${apiKey}` } : {};
  return { 'anthropic-version': ANTHROPIC_VERSION, ...(apiKey ? { 'x-api-key': apiKey } : {}) };
}

/** The version of the messages protocol. */
const ANTHROPIC_VERSION = '2023-06-01';

/** What the model runner needs of the catalog. */
export interface ProviderLookup {
  /** The provider of that name, with `contextLength` as far as it is known for this model; null when there is none. */
  find(provider: string, model: string): ProviderConfig | null;
}
