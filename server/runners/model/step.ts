/**
 * One step: one request to a provider, told as events. Decides nothing about what follows: tool calls are returned, not
 * run; a failure is returned with whether anything was shown, so that whoever calls may ask again.
 */

import { tokensOf } from '../../core/context-size.ts';
import type { TurnError, Usage } from '../../core/terms.ts';
import { wellFormed } from '../../core/text.ts';
import type { RunnerEvent } from '../runner.ts';
import type { ProviderPrompt, ProviderTool, ReasoningPart, StreamPart, WatchedModel } from './chat-model.ts';
import { costOf } from './cost.ts';
import { classifyProblem, contentFiltered, type FailureContext, stalled } from './failure.ts';
import { mayMeanImages } from './failure-words.ts';
import { createKeyFilter, type KeyFilter } from './key-filter.ts';
import { isUnknownEvent, readProblem, STREAM_ENDED } from './problem.ts';
import { tokensOfPrompt, tokensOfTools } from './prompt-size.ts';
import { createStallWatch } from './stall-watch.ts';

/** A tool call as the model wrote it. */
export interface ProposedCall {
  id: string;
  name: string;
  /** Meant to be JSON text of an object; anything is possible. */
  input: string;
}

export type StepResult =
  | {
      kind: 'done';
      text: string;
      reasoning: ReasoningPart[];
      calls: ProposedCall[];
      cutByLength: boolean;
      /** Tokens of the request as the provider counted them; null where it did not. */
      inputTokens: number | null;
    }
  | {
      kind: 'failed';
      error: TurnError;
      /** An event went out, so asking again would repeat it. */
      shown: boolean;
      /** It may have been refused for the images in it. */
      forImages?: boolean;
    }
  | { kind: 'aborted' };

export interface StepRequest {
  model: WatchedModel;
  prompt: ProviderPrompt;
  tools: ProviderTool[];
  /** The model must answer now: the tools are sent, but it may not call them. */
  answerOnly: boolean;
  /** Tokens of the answer at most; the provider's own limit without it. */
  maxOutputTokens?: number;
  context: FailureContext;
  /** Epoch seconds. */
  now: () => number;
}

/**
 * Asks the provider once.
 * @returns what the model said; never throws for what a provider or a connection does
 */
export async function* runStep(request: StepRequest, turn: AbortSignal): AsyncGenerator<RunnerEvent, StepResult, void> {
  const { context } = request;
  const watch = createStallWatch(turn, context.stallTimeoutS);
  const heard = { text: '', calls: [] as ProposedCall[], frames: false, shown: false };
  const reasoning = new Map<string, ReasoningPart>();
  const filters = {
    text: createKeyFilter(context.provider.apiKey),
    reasoning: createKeyFilter(context.provider.apiKey),
  };

  const failedBy = (failure: unknown): StepResult => {
    const why = watch.stopped();
    if (why === 'aborted') return { kind: 'aborted' };
    if (why === 'stalled') return { kind: 'failed', error: stalled(context), shown: heard.shown };
    const problem = readProblem(failure, request.model.watch.of(watch.signal), heard.frames, request.now());
    const error = classifyProblem(problem, context);
    return { kind: 'failed', error, shown: heard.shown, forImages: mayMeanImages(problem) };
  };

  let reader: ReadableStreamDefaultReader<StreamPart> | null = null;
  try {
    try {
      watch.waiting();
      reader = await open(request, watch.signal);
    } catch (failure) {
      return failedBy(failure);
    }
    const parts = reader;
    // Cancelling answers a pending read at once, also when the connection does not react to the abort.
    watch.onStop(() => void parts.cancel().catch(() => {}));

    while (true) {
      let part: StreamPart | undefined;
      try {
        watch.waiting();
        part = (await parts.read()).value;
      } catch (failure) {
        return failedBy(failure);
      }
      watch.arrived();
      if (watch.stopped() || !part) return failedBy({ name: STREAM_ENDED });
      switch (part.type) {
        case 'response-metadata':
          heard.frames = true;
          break;
        case 'reasoning-start':
        case 'reasoning-end':
          think(reasoning, part.id, '', part.providerMetadata);
          break;
        case 'text-delta':
        case 'reasoning-delta': {
          const isText = part.type === 'text-delta';
          const text = filters[isText ? 'text' : 'reasoning'].push(part.delta);
          if (isText) heard.text += text;
          else think(reasoning, part.id, text, part.providerMetadata);
          if (text === '') break; // a signature, or the beginning of what must not be shown
          if (!heard.shown) yield { type: 'message.start', payload: {} };
          heard.shown = true;
          yield { type: isText ? 'message.delta' : 'reasoning.delta', payload: { text } };
          break;
        }
        case 'tool-call':
          heard.calls.push({ id: part.toolCallId, name: part.toolName, input: filters.text.whole(part.input) });
          break;
        case 'error':
          // The SDK would go on and finish as if all were well.
          if (context.provider.kind === 'anthropic' && isUnknownEvent(part.error)) break;
          if (isProperEnd(part.error, request, watch.signal, heard)) break;
          return failedBy(part.error);
        case 'finish': {
          const { unified, raw } = part.finishReason;
          const usage = usageOf(part.usage, request, heard);
          yield* rest(filters, heard);
          const filtered = unified === 'content-filter' && raw !== 'stop';
          if (!heard.shown && heard.calls.length > 0 && !filtered) {
            heard.shown = true;
            yield { type: 'message.start', payload: {} };
          }
          yield { type: 'usage', payload: usage };
          if (filtered) return { kind: 'failed', error: contentFiltered(context), shown: heard.shown };
          if (raw === 'error') return failedBy({ message: null });
          return {
            kind: 'done',
            text: wellFormed(heard.text),
            reasoning: [...reasoning.values()].filter((one) => one.text !== '' || one.providerOptions),
            calls: heard.calls,
            cutByLength: unified === 'length',
            inputTokens: usage.context_estimated ? null : usage.input_tokens,
          };
        }
      }
    }
  } finally {
    watch.release();
    reader?.cancel().catch(() => {}); // Already broken or read to its end: nothing is left to stop.
  }
}

/** Sends the request and waits for its headers, but no longer than the signal. */
async function open(request: StepRequest, signal: AbortSignal): Promise<ReadableStreamDefaultReader<StreamPart>> {
  const stopped = new Promise<never>((_, reject) => {
    const give = (): void => reject(new Error('stopped before the answer'));
    if (signal.aborted) give();
    else signal.addEventListener('abort', give, { once: true });
  });
  const answer = request.model.chat.doStream({
    prompt: request.prompt,
    tools: request.tools,
    abortSignal: signal,
    ...(request.answerOnly && request.tools.length > 0 ? { toolChoice: { type: 'none' } } : {}),
    ...(request.maxOutputTokens === undefined ? {} : { maxOutputTokens: request.maxOutputTokens }),
  });
  // An answer that comes after the stop is thrown away, and nobody is left to hear of its failure.
  answer.then(
    ({ stream }) => {
      if (signal.aborted) stream.cancel().catch(() => {});
    },
    () => {},
  );
  stopped.catch(() => {});
  return (await Promise.race([answer, stopped])).stream.getReader();
}

/** Adds to one of the model's thoughts; what its provider wants back comes with the last of its parts. */
function think(
  thoughts: Map<string, ReasoningPart>,
  id: string,
  text: string,
  providerOptions: ReasoningPart['providerOptions'],
): void {
  const thought: ReasoningPart = thoughts.get(id) ?? { type: 'reasoning', text: '' };
  thought.text += text;
  if (providerOptions) thought.providerOptions = { ...thought.providerOptions, ...providerOptions };
  thoughts.set(id, thought);
}

/** What the filters still hold at the end turned out to be text. */
function* rest(
  filters: Record<'text' | 'reasoning', KeyFilter>,
  heard: { text: string; shown: boolean },
): Generator<RunnerEvent, void, void> {
  for (const kind of ['reasoning', 'text'] as const) {
    const text = filters[kind].end();
    if (text === '') continue;
    if (kind === 'text') heard.text += text;
    if (!heard.shown) yield { type: 'message.start', payload: {} };
    heard.shown = true;
    yield { type: kind === 'text' ? 'message.delta' : 'reasoning.delta', payload: { text } };
  }
}

/** Some servers end a stream with `[DONE]` alone, without a finish reason: an end, not a failure. */
function isProperEnd(error: unknown, request: StepRequest, signal: AbortSignal, heard: { frames: boolean }): boolean {
  const isMissingFinish =
    error instanceof Error && error.name === 'AI_InvalidResponseDataError' && !('data' in error && error.data);
  return isMissingFinish && heard.frames && (request.model.watch.of(signal)?.ended() ?? false);
}

type FinishUsage = Extract<StreamPart, { type: 'finish' }>['usage'];

/** The step's token counts. Where the provider gave none of the input, how full the window is can only be estimated. */
function usageOf(
  usage: FinishUsage,
  { context: { provider }, prompt, tools }: StepRequest,
  heard: { text: string; calls: readonly ProposedCall[] },
): Usage {
  const input = usage.inputTokens.total;
  const output = usage.outputTokens.total;
  const counts: Usage = { input_tokens: input ?? 0, output_tokens: output ?? 0 };
  if (usage.inputTokens.cacheRead) counts.cached_tokens = usage.inputTokens.cacheRead;
  if (usage.outputTokens.reasoning) counts.reasoning_tokens = usage.outputTokens.reasoning;
  const said = output ?? tokensOf(heard.text) + heard.calls.reduce((sum, call) => sum + tokensOf(call.input), 0);
  counts.context_used = (input ?? tokensOfPrompt(prompt) + tokensOfTools(tools)) + said;
  if (provider.contextLength !== null) counts.context_length = provider.contextLength;
  if (input === undefined) counts.context_estimated = true;
  if (provider.price) counts.cost_usd = costOf(counts, provider.price);
  return counts;
}
