/**
 * The conversation of one turn, as it is sent: the history before it, and what the turn has added so far. When another
 * history takes the place of the first (a summary and what is behind it), what was added is put behind it again.
 */
import type { Message } from '../../core/terms.ts';
import type { ProviderPrompt } from './chat-model.ts';

export interface Conversation {
  /** What is sent. */
  prompt(): ProviderPrompt;
  history(): readonly Message[];
  /** Adds to it, now and behind any other history. */
  add(grow: (prompt: ProviderPrompt) => void): void;
  /** Puts another history in the place of the one before. */
  rebase(history: readonly Message[]): Promise<void>;
}

/** @param build what is sent of a history, with the turn's own prompt behind it */
export async function createConversation(
  first: readonly Message[],
  build: (history: readonly Message[]) => ProviderPrompt | Promise<ProviderPrompt>,
): Promise<Conversation> {
  const added: ((prompt: ProviderPrompt) => void)[] = [];
  let history = first;
  let prompt = await build(history);
  return {
    prompt: () => prompt,
    history: () => history,
    add(grow) {
      added.push(grow);
      grow(prompt);
    },
    async rebase(other) {
      history = other;
      prompt = await build(history);
      for (const grow of added) grow(prompt);
    },
  };
}
