/**
 * The `model` runner: a turn with a model of any provider (RU5, RU6, RU8, RU11). Owns the loop of a turn: ask, run the
 * tools that the model calls, ask again, until it answers. Holds nothing between turns but the SDK's model objects.
 *
 * A step that fails ends the turn, unless asking again can help and would repeat nothing that was shown.
 */
import type { McpServers } from '../../mcp/mcp-servers.ts';
import type { ToolDefinition } from '../../workspace/tools.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import type { Approvals } from '../approvals.ts';
import { formatModelId, parseModelId } from '../model-id.ts';
import type { ProviderConfig, ProviderLookup } from '../provider.ts';
import type { Runner, RunnerEnd, RunnerEvent, Said, Turn } from '../runner.ts';
import { type Attached, createAttached, dropImages, hasImages } from './attached.ts';
import { createChatModels, type ProviderTool } from './chat-model.ts';
import { createConversation } from './conversation.ts';
import { afterTries, emptyReply, type FailureContext, outOfSteps } from './failure.ts';
import { addInput, addStep, toProviderPrompt } from './history.ts';
import { createImageMemory } from './image-memory.ts';
import { tokensOfTools } from './prompt-size.ts';
import { planRetry } from './retry.ts';
import { runStep, type StepRequest, type StepResult } from './step.ts';
import { systemPrompt } from './system-prompt.ts';
import { runToolCalls, type ToolBench } from './tool-calls.ts';
import { createWindow } from './window.ts';

export interface ModelRunnerParts {
  providers: ProviderLookup;
  /** Sent with every request, whether or not the session has a workspace. */
  tools: readonly ToolDefinition[];
  /** What gives a turn further tools. */
  outside?: Pick<McpServers, 'forTurn'>;
  /** Decides whether a call may be made. */
  approvals: Approvals;
  /** Opens a session's workspace by its absolute path; null when it cannot be used. */
  openWorkspace: (root: string) => Workspace | null | Promise<Workspace | null>;
  /** Epoch seconds. */
  now: () => number;
  /** Makes the id of a tool call whose own id is missing or was used before. */
  newToolId: () => string;
  /** Requests to a provider within one turn; the last of them must answer without tools. */
  maxSteps: number;
  /** Seconds without an event after which a provider is given up. */
  stallTimeoutS: number;
  /** How often one step is asked again at most. */
  maxRetries: number;
  /** The part of a window from which on older turns are summarised. */
  compactAt: number;
  /** Resolves after that many milliseconds, or when the signal aborts. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** From 0 to 1, for pauses that do not coincide. */
  random: () => number;
  fetch?: typeof fetch;
  /** Told of what should not happen: a bug of ours, never a failure of a provider. */
  onBug?: (error: unknown) => void;
}

/** Makes the runner; `turn.model` is `<provider>/<model>`. */
export function createModelRunner(parts: ModelRunnerParts): Runner {
  const models = createChatModels(parts.fetch ?? ((input, init) => fetch(input, init)));
  const imageMemory = createImageMemory();

  async function* ask(request: StepRequest, signal: AbortSignal): AsyncGenerator<RunnerEvent, StepResult, void> {
    const policy = { maxRetries: parts.maxRetries, longestWaitS: parts.stallTimeoutS };
    for (let retries = 0; ; retries += 1) {
      const said = yield* runStep(request, signal);
      if (said.kind !== 'failed') return said;
      const isForImages = said.forImages === true && hasImages(request.prompt);
      const plan = said.shown || isForImages ? null : planRetry(said.error, retries, policy, parts.random());
      if (!plan) return { ...said, error: afterTries(said.error, retries + 1) };
      yield { type: 'status', payload: plan.status };
      await parts.sleep(plan.waitS * 1000, signal);
      if (signal.aborted) return { kind: 'aborted' };
    }
  }

  /** Asks; what may have been refused for its images is asked once more without them (AT8). */
  async function* askShowing(request: StepRequest, files: Attached, signal: AbortSignal) {
    const { provider, model } = request.context;
    const images = hasImages(request.prompt) ? files.images() : [];
    const said: StepResult = yield* ask(request, signal);
    if (images.length === 0) return said;
    if (said.kind === 'done') imageMemory.accepted(modelKey(provider, model), images);
    if (said.kind !== 'failed' || said.shown || !said.forImages) return said;
    files.dropImages();
    dropImages(request.prompt);
    yield withoutImagesStatus(model);
    const again: StepResult = yield* ask(request, signal);
    // Only this tells that it was for the images.
    if (again.kind === 'done') imageMemory.refused(modelKey(provider, model), images);
    return again;
  }

  async function* runTurn(turn: Turn, signal: AbortSignal): AsyncGenerator<RunnerEvent, RunnerEnd, void> {
    const id = parseModelId(turn.model);
    const provider = id && parts.providers.find(id.provider, id.model);
    if (!id || !provider) return unknownModel(turn.model);
    const tools = [...parts.tools, ...(parts.outside ? yield* parts.outside.forTurn(signal) : [])];
    const providerTools = tools.map(forProvider);
    const context: FailureContext = { provider, model: id.model, stallTimeoutS: parts.stallTimeoutS };
    const bench: ToolBench = {
      tools,
      approvals: parts.approvals,
      turn,
      workspace: turn.workspace === null ? null : await parts.openWorkspace(turn.workspace),
      usedIds: new Set(turn.history.flatMap((row) => row.tool_calls?.map((call) => call?.id) ?? [])),
      newToolId: parts.newToolId,
      now: parts.now,
    };
    const files = createAttached(
      turn,
      (image) => provider.images !== false && imageMemory.mayShow(modelKey(provider, id.model), image),
    );
    const conversation = await createConversation(turn.history, async (history) => {
      await files.add([...history.flatMap((row) => row.attachments ?? []), ...turn.attachments]);
      const given = { given: turn.attachments, partsOf: files.partsOf };
      return toProviderPrompt(systemPrompt(bench.workspace !== null), history, turn.input, given);
    });
    const hear = async ({ text, attachments }: Said): Promise<void> => {
      const fresh = await files.add(attachments);
      conversation.add((prompt) => addInput(prompt, text, files.partsOf(fresh)));
    };
    const window = createWindow({
      turn,
      conversation,
      model: id.model,
      length: provider.contextLength,
      compactAt: parts.compactAt,
      tools: tokensOfTools(providerTools),
      signal,
    });

    for (let step = 1; ; step += 1) {
      const isLast = step >= parts.maxSteps;
      // A turn that may take one step only has no tools to come back from; it may still try.
      const answerOnly = isLast && step > 1;
      if (answerOnly) yield lastStepStatus(parts.maxSteps);
      yield* window.makeRoom();
      if (signal.aborted) return interrupted;
      const request = async (): Promise<StepRequest> => ({
        model: await models(provider, id.model),
        prompt: conversation.prompt(),
        tools: providerTools,
        answerOnly,
        context,
        now: parts.now,
      });
      let said = yield* askShowing(await request(), files, signal);
      const isTooLong = said.kind === 'failed' && !said.shown && said.error.code === 'context_too_long';
      if (isTooLong && (yield* window.shrink())) said = yield* askShowing(await request(), files, signal);
      if (said.kind === 'aborted' || signal.aborted) return interrupted;
      if (said.kind === 'failed') return { kind: 'failed', error: said.error };
      if (said.inputTokens !== null) window.counted(said.inputTokens);
      const { text, reasoning } = said;
      if (said.calls.length === 0) {
        if (said.text.trim() === '') return { kind: 'failed', error: emptyReply(context, said.cutByLength) };
        if (said.cutByLength) yield cutStatus;
        const more = isLast ? [] : await turn.steer();
        if (more.length === 0) return { kind: 'completed' };
        conversation.add((prompt) => addStep(prompt, text, reasoning, []));
        for (const one of more) await hear(one);
        continue;
      }
      if (isLast) return { kind: 'failed', error: outOfSteps(context, parts.maxSteps) };
      const settled = yield* runToolCalls(said.calls, bench, signal);
      if (!settled) return interrupted;
      conversation.add((prompt) => addStep(prompt, text, reasoning, settled));
      for (const one of await turn.steer()) await hear(one);
    }
  }

  return {
    kind: 'model',
    async *run(turn, signal) {
      try {
        return yield* runTurn(turn, signal);
      } catch (error) {
        if (signal.aborted) return interrupted;
        // The port's promise is that a runner never throws; whoever runs the server still has to hear of it.
        parts.onBug?.(error);
        const message = 'The turn failed inside the server, not at the provider. The log says more. Try again.';
        return { kind: 'failed', error: { code: 'provider_error', message, retryable: true } };
      }
    },
  };
}

/** The caller decides the outcome of an aborted turn; this only has to be some end. */
const interrupted: RunnerEnd = {
  kind: 'failed',
  error: { code: 'interrupted', message: 'The turn was interrupted.', retryable: true },
};

const cutStatus: RunnerEvent = {
  type: 'status',
  payload: { kind: 'length', text: 'The model reached its output limit; the answer may be cut.' },
};

const modelKey = (provider: ProviderConfig, model: string): string => formatModelId({ provider: provider.name, model });

const withoutImagesStatus = (model: string): RunnerEvent => ({
  type: 'status',
  payload: { kind: 'images', text: `${model} refused the request with its images: it is asked again without them.` },
});

const forProvider = ({ name, description, parameters }: ToolDefinition): ProviderTool => ({
  type: 'function',
  name,
  description,
  inputSchema: parameters,
});

const lastStepStatus = (maxSteps: number): RunnerEvent => ({
  type: 'status',
  payload: { kind: 'max_steps', text: `Step ${maxSteps} of ${maxSteps}: the model has to answer with what it has.` },
});

const unknownModel = (model: string): RunnerEnd => ({
  kind: 'failed',
  error: {
    code: 'model_not_found',
    message: `There is no model "${model}" here. Choose another model for this session.`,
    retryable: false,
  },
});
