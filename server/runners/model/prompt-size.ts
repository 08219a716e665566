/** How many tokens a request has, estimated, before a provider counts them. */
import { tokensOf } from '../../core/context-size.ts';
import type { ProviderMessage, ProviderPrompt, ProviderTool } from './chat-model.ts';

/** What a message takes besides its words. */
const PER_MESSAGE = 4;
/** A picture, whatever its bytes: providers count its area, within bounds. */
const PER_FILE = 1500;

/** Tokens of a conversation as it is sent, without the tools. */
export const tokensOfPrompt = (prompt: ProviderPrompt): number =>
  prompt.reduce((sum, message) => sum + PER_MESSAGE + tokensOfMessage(message), 0);

/** Tokens of the tools that go with each request. */
export const tokensOfTools = (tools: readonly ProviderTool[]): number => tokensOf(JSON.stringify(tools));

function tokensOfMessage({ content }: ProviderMessage): number {
  if (typeof content === 'string') return tokensOf(content);
  let tokens = 0;
  for (const part of content) {
    if (part.type === 'text' || part.type === 'reasoning') tokens += tokensOf(part.text);
    else if (part.type === 'tool-call') tokens += tokensOf(part.toolName) + tokensOf(JSON.stringify(part.input ?? {}));
    else if (part.type === 'tool-result') tokens += tokensOf(JSON.stringify(part.output));
    else tokens += PER_FILE;
  }
  return tokens;
}
