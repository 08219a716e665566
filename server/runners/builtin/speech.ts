/**
 * Saying a text word by word. Pure but for the injected sleep.
 */
import { wellFormed } from '../../core/text.ts';
import type { RunnerEvent } from '../runner.ts';
import type { Scene } from './call.ts';

const WORD_DELAY_MS = 12;
/** A long answer is said faster, so that nobody waits longer for it than this. */
const MAX_SPEECH_MS = 3000;

/** The words of a text, each with the space after it: joined they are the text. */
export function wordsOf(text: string): string[] {
  return text.match(/^\s+|\S+\s*/g) ?? [];
}

export interface Manner {
  /** Milliseconds between two words, whatever the length of the text. */
  delayMs?: number;
  as?: 'message.delta' | 'reasoning.delta';
}

/** Says a text as deltas of the message that has begun; ends early when the turn is aborted. */
export async function* say(text: string, scene: Scene, manner: Manner = {}): AsyncGenerator<RunnerEvent, void, void> {
  const { services, signal } = scene;
  const words = wordsOf(wellFormed(text));
  const usual = Math.min(services.wordDelayMs ?? WORD_DELAY_MS, MAX_SPEECH_MS / Math.max(1, words.length));
  const delayMs = manner.delayMs ?? usual;
  for (const [index, word] of words.entries()) {
    if (signal.aborted) return;
    yield { type: manner.as ?? 'message.delta', payload: { text: word } };
    // Without a delay others still get their turn now and then.
    if (delayMs > 0 ? index < words.length - 1 : index % 100 === 99) await services.sleep(delayMs, signal);
  }
}

/** A whole assistant message with a text. */
export async function* sayMessage(
  text: string,
  scene: Scene,
  manner?: Manner,
): AsyncGenerator<RunnerEvent, void, void> {
  if (scene.signal.aborted) return;
  yield { type: 'message.start', payload: {} };
  yield* say(text, scene, manner);
}
