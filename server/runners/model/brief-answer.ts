/**
 * A brief answer: one request to a model outside any turn, without tools, within a time. Whoever asks can do without it,
 * so whatever goes wrong is no answer.
 */
import { withTimeLimit } from '../../time-limit.ts';
import type { ProviderConfig } from '../provider.ts';
import { createChatModels } from './chat-model.ts';
import { redactKey } from './redact.ts';
import { runStep } from './step.ts';

export interface BriefQuestion {
  provider: ProviderConfig;
  /** As the provider calls it. */
  model: string;
  system: string;
  text: string;
  /** Tokens of the answer at most. */
  maxTokens: number;
  /** Seconds for all of it. */
  timeoutS: number;
}

/** Asks; null when there is no whole answer, also when the signal aborts. Never rejects. */
export type BriefAnswer = (question: BriefQuestion, signal: AbortSignal) => Promise<string | null>;

/**
 * Makes the function that asks.
 * @param parts.now epoch seconds
 */
export function createBriefAnswer(parts: { now: () => number; fetch?: typeof fetch }): BriefAnswer {
  const models = createChatModels(parts.fetch ?? ((input, init) => fetch(input, init)));
  return async ({ provider, model, system, text, maxTokens, timeoutS }, signal) => {
    const within = withTimeLimit(timeoutS, signal);
    const steps = runStep(
      {
        model: await models(provider, model),
        prompt: [
          { role: 'system', content: system },
          { role: 'user', content: [{ type: 'text', text }] },
        ],
        tools: [],
        answerOnly: true,
        maxOutputTokens: maxTokens,
        context: { provider, model, stallTimeoutS: timeoutS },
        now: parts.now,
      },
      within,
    );
    try {
      for (;;) {
        const { done, value } = await steps.next();
        if (done) return value.kind === 'done' ? redactKey(value.text, provider.apiKey) : null;
      }
    } catch {
      return null; // a bug of the step: the turns that have it tell of it
    }
  };
}
