/**
 * The `model` runner: a turn with a model of any provider (RU5, RU6, RU8, RU11). Owns the loop of a turn: ask, run the
 * tools that the model calls, ask again, until it answers. Holds nothing between turns but the SDK's model objects.
 *
 * A step that fails ends the turn, unless asking again can help and would repeat nothing that was shown.
 */
import type { ToolDefinition } from '../../workspace/tools.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import { parseModelId } from '../model-id.ts';
import type { ProviderLookup } from '../provider.ts';
import type { Runner, RunnerEnd, RunnerEvent, Turn } from '../runner.ts';
import { createChatModels, type ProviderTool } from './chat-model.ts';
import { afterTries, emptyReply, type FailureContext, outOfSteps } from './failure.ts';
import { addStep, toProviderPrompt } from './history.ts';
import { planRetry } from './retry.ts';
import { runStep, type StepRequest, type StepResult } from './step.ts';
import { systemPrompt } from './system-prompt.ts';
import { runToolCalls, type ToolBench } from './tool-calls.ts';

export interface ModelRunnerParts {
  providers: ProviderLookup;
  /** Sent with every request, whether or not the session has a workspace. */
  tools: readonly ToolDefinition[];
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
  const providerTools: ProviderTool[] = parts.tools.map(({ name, description, parameters }) => ({
    type: 'function',
    name,
    description,
    inputSchema: parameters,
  }));

  async function* ask(request: StepRequest, signal: AbortSignal): AsyncGenerator<RunnerEvent, StepResult, void> {
    const policy = { maxRetries: parts.maxRetries, longestWaitS: parts.stallTimeoutS };
    for (let retries = 0; ; retries += 1) {
      const said = yield* runStep(request, signal);
      if (said.kind !== 'failed') return said;
      const plan = said.shown ? null : planRetry(said.error, retries, policy, parts.random());
      if (!plan) return { ...said, error: afterTries(said.error, retries + 1) };
      yield { type: 'status', payload: plan.status };
      await parts.sleep(plan.waitS * 1000, signal);
      if (signal.aborted) return { kind: 'aborted' };
    }
  }

  async function* runTurn(turn: Turn, signal: AbortSignal): AsyncGenerator<RunnerEvent, RunnerEnd, void> {
    const id = parseModelId(turn.model);
    const provider = id && parts.providers.find(id.provider, id.model);
    if (!id || !provider) return unknownModel(turn.model);
    const context: FailureContext = { provider, model: id.model, stallTimeoutS: parts.stallTimeoutS };
    const bench: ToolBench = {
      tools: parts.tools,
      workspace: turn.workspace === null ? null : await parts.openWorkspace(turn.workspace),
      usedIds: new Set(turn.history.flatMap((row) => row.tool_calls?.map((call) => call.id) ?? [])),
      newToolId: parts.newToolId,
      now: parts.now,
    };
    const prompt = toProviderPrompt(systemPrompt(bench.workspace !== null), turn.history, turn.input);

    for (let step = 1; ; step += 1) {
      const isLast = step >= parts.maxSteps;
      // A turn that may take one step only has no tools to come back from; it may still try.
      const answerOnly = isLast && step > 1;
      if (answerOnly) yield lastStepStatus(parts.maxSteps);
      const request: StepRequest = {
        model: await models(provider, id.model),
        prompt,
        tools: providerTools,
        answerOnly,
        context,
        now: parts.now,
      };
      const said = yield* ask(request, signal);
      if (said.kind === 'aborted') return interrupted;
      if (said.kind === 'failed') return { kind: 'failed', error: said.error };
      if (said.calls.length === 0) {
        if (said.text.trim() === '') return { kind: 'failed', error: emptyReply(context, said.cutByLength) };
        if (said.cutByLength) yield cutStatus;
        return { kind: 'completed' };
      }
      if (isLast) return { kind: 'failed', error: outOfSteps(context, parts.maxSteps) };
      const settled = yield* runToolCalls(said.calls, bench, signal);
      if (!settled) return interrupted;
      addStep(prompt, said.text, said.reasoning, settled);
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
