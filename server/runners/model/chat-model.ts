/**
 * The providers' protocols, spoken by the AI SDK: the only file that imports it. Owns the cache of its model objects
 * (building one compiles a schema, which would be felt before the first delta of every step).
 *
 * Used one call at a time through `doStream`: the loop, the watchdog, the retries and the classification of failures
 * are ours.
 */
import type { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { ProviderConfig } from '../provider.ts';
import { createResponseWatch, type ResponseWatch } from './response-watch.ts';

type OpenAiModel = ReturnType<ReturnType<typeof createOpenAICompatible>['chatModel']>;
export type ChatModel = Pick<OpenAiModel, 'doStream'>;
type CallOptions = Parameters<ChatModel['doStream']>[0];

/** The conversation as a provider is sent it. */
export type ProviderPrompt = CallOptions['prompt'];
export type ProviderMessage = ProviderPrompt[number];
export type ProviderTool = NonNullable<CallOptions['tools']>[number];
type AssistantPart = Extract<ProviderMessage, { role: 'assistant' }>['content'][number];
/** What a model thought, with what its provider wants back beside it (a signature). */
export type ReasoningPart = Extract<AssistantPart, { type: 'reasoning' }>;
type StreamOf<T> = T extends { stream: ReadableStream<infer Part> } ? Part : never;
export type StreamPart = StreamOf<Awaited<ReturnType<ChatModel['doStream']>>>;

/** One model with what was seen of its answers on the wire. */
export interface WatchedModel {
  chat: ChatModel;
  watch: ResponseWatch;
}

/** The model object of a provider; loads what it needs at the first use. */
export type ChatModels = (provider: ProviderConfig, model: string) => Promise<WatchedModel>;

/**
 * Makes the models of providers; the same arguments give the same object.
 * @param fetchImpl what requests go through
 */
export function createChatModels(fetchImpl: typeof fetch): ChatModels {
  const watch = createResponseWatch(fetchImpl);
  const models = new Map<string, WatchedModel>();
  return async (provider, model) => {
    const key = JSON.stringify([provider.kind, provider.name, provider.baseUrl, provider.apiKey, model]);
    let found = models.get(key);
    if (!found) {
      found = { chat: await chatModel(provider, model, watch.fetch), watch };
      models.set(key, found);
    }
    return found;
  };
}

/** The SDK is loaded with the first model that is used: a server that uses none starts faster without it. */
async function chatModel(provider: ProviderConfig, model: string, fetchImpl: typeof fetch): Promise<ChatModel> {
  const { name, kind, baseUrl: baseURL, apiKey } = provider;
  if (kind === 'anthropic') {
    // Without a key the SDK would look into the environment; an empty one is refused by the provider, as it should be.
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    return createAnthropic({ baseURL, apiKey: apiKey ?? '', fetch: fetchImpl }).messages(model);
  }
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  return createOpenAICompatible({
    name,
    baseURL,
    ...(apiKey ? { apiKey } : {}),
    includeUsage: true,
    fetch: fetchImpl,
    // OpenAI's newer models refuse the name that all others know.
    ...(kind === 'openai' ? { transformRequestBody: renameMaxTokens } : {}),
  }).chatModel(model);
}

function renameMaxTokens({ max_tokens, ...body }: Record<string, unknown>): Record<string, unknown> {
  return max_tokens === undefined ? body : { ...body, max_completion_tokens: max_tokens };
}
