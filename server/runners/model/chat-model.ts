/**
 * The provider's protocol, spoken by the AI SDK: the only file that imports it. Owns the cache of its model objects
 * (building one compiles a schema, which would be felt before the first delta of every step).
 *
 * Used one call at a time through `doStream`: the loop, the watchdog and the classification of failures are ours.
 */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { ProviderConfig } from '../provider.ts';
import { createResponseWatch, type ResponseWatch } from './response-watch.ts';

export type ChatModel = ReturnType<ReturnType<typeof createOpenAICompatible>['chatModel']>;
type CallOptions = Parameters<ChatModel['doStream']>[0];

/** The conversation as a provider is sent it. */
export type ProviderPrompt = CallOptions['prompt'];
export type ProviderMessage = ProviderPrompt[number];
export type ProviderTool = NonNullable<CallOptions['tools']>[number];
type StreamOf<T> = T extends { stream: ReadableStream<infer Part> } ? Part : never;
export type StreamPart = StreamOf<Awaited<ReturnType<ChatModel['doStream']>>>;

/** One model with what was seen of its answers on the wire. */
export interface WatchedModel {
  chat: ChatModel;
  watch: ResponseWatch;
}

/**
 * Makes the models of providers; the same arguments give the same object.
 * @param fetchImpl what requests go through
 */
export function createChatModels(fetchImpl: typeof fetch): (provider: ProviderConfig, model: string) => WatchedModel {
  const watch = createResponseWatch(fetchImpl);
  const models = new Map<string, WatchedModel>();
  return (provider, model) => {
    const key = JSON.stringify([provider.name, provider.baseUrl, provider.apiKey, model]);
    let found = models.get(key);
    if (!found) {
      const sdk = createOpenAICompatible({
        name: provider.name,
        baseURL: provider.baseUrl,
        ...(provider.apiKey ? { apiKey: provider.apiKey } : {}),
        includeUsage: true,
        fetch: watch.fetch,
      });
      found = { chat: sdk.chatModel(model), watch };
      models.set(key, found);
    }
    return found;
  };
}
