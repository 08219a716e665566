/**
 * A provider: an endpoint that speaks the OpenAI chat completions protocol, as the configuration or discovery names it.
 * Plain data; the API key is in here and nowhere else, and never leaves in an event, an error or a log line.
 */

export interface ProviderConfig {
  /** Stable short name without a slash: the part of a model id before its first slash. */
  name: string;
  kind: 'custom' | 'openai';
  /** With the version path and without a slash at its end, as in `http://127.0.0.1:11434/v1`. */
  baseUrl: string;
  apiKey: string | null;
  /** The model (without the provider's name) of sessions that name none; null when there is no such choice. */
  defaultModel: string | null;
  /** Tokens of the models' window, where it is known. */
  contextLength: number | null;
}

export const OPENAI_BASE_URL = 'https://api.openai.com/v1';

/** What the model runner needs of the catalog. */
export interface ProviderLookup {
  /** The provider of that name, with `contextLength` as far as it is known for this model; null when there is none. */
  find(provider: string, model: string): ProviderConfig | null;
}
