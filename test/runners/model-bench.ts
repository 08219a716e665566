/** A model runner on a fake provider, and a turn driven to its end. */

import { createModelRunner, type ModelRunnerParts } from '../../server/runners/model/model-runner.ts';
import type { ProviderConfig } from '../../server/runners/provider.ts';
import type { Runner, RunnerEnd, RunnerEvent, Turn } from '../../server/runners/runner.ts';
import type { ToolDefinition } from '../../server/workspace/tools.ts';
import { EVERYTHING_ALLOWED } from '../support/everything-allowed.ts';

/** A provider entry of that address. */
export function providerAt(baseUrl: string, change: Partial<ProviderConfig> = {}): ProviderConfig {
  return {
    name: 'custom',
    kind: 'custom',
    baseUrl,
    apiKey: null,
    defaultModel: 'fake-model',
    contextLength: null,
    ...change,
  };
}

/** Three tools that need no files: one echoes, one fails, one waits for the abort. */
export const benchTools: ToolDefinition[] = [
  {
    name: 'read_file',
    description: 'Reads a file.',
    effect: 'read',
    parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    preview: (args) => `read ${String((args as { path?: unknown }).path ?? '?')}`,
    execute: async (args, { workspace }) =>
      workspace
        ? { result: `content of ${(args as { path: string }).path}`, is_error: false }
        : { result: 'This session has no workspace.', is_error: true },
  },
  {
    name: 'list_files',
    description: 'Lists files.',
    effect: 'read',
    parameters: { type: 'object', properties: {} },
    preview: () => 'list',
    execute: async () => ({ result: 'a.txt', is_error: false }),
  },
  {
    name: 'search_files',
    description: 'Searches files.',
    effect: 'read',
    parameters: { type: 'object', properties: { query: { type: 'string' } } },
    preview: () => 'search',
    execute: (_args, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ result: 'stopped', is_error: true }), { once: true });
      }),
  },
];

/** A runner whose only provider is `provider`. */
export function modelRunnerOn(provider: ProviderConfig, change: Partial<ModelRunnerParts> = {}): Runner {
  let ids = 0;
  return createModelRunner({
    providers: { find: (name) => (name === provider.name ? provider : null) },
    tools: benchTools,
    approvals: EVERYTHING_ALLOWED,
    openWorkspace: (root) => ({ root }) as never,
    now: () => Date.now() / 1000,
    newToolId: () => {
      ids += 1;
      return `made_${ids}`;
    },
    maxSteps: 50,
    stallTimeoutS: 30,
    maxRetries: 0,
    compactAt: 0.8,
    sleep: async () => {},
    random: () => 0.5,
    onBug: (error) => {
      throw error;
    },
    ...change,
  });
}

export const turnOf = (input: string, change: Partial<Turn> = {}): Turn => ({
  sessionId: '20260101_000000_abcdef',
  runId: '0123456789abcdef0123456789abcdef',
  input,
  attachments: [],
  attachment: async () => null,
  model: 'custom/fake-model',
  workspace: null,
  history: [],
  ask: async () => ({ kind: 'withdrawn' }),
  steer: async () => [],
  ...change,
});

export interface Driven {
  events: RunnerEvent[];
  end: RunnerEnd;
}

/** Runs a turn to its end; `each` is called for every event before the next is asked for. */
export async function drive(
  runner: Runner,
  turn: Turn,
  signal: AbortSignal = new AbortController().signal,
  each: (event: RunnerEvent) => void | Promise<void> = () => {},
): Promise<Driven> {
  const events: RunnerEvent[] = [];
  const run = runner.run(turn, signal);
  while (true) {
    const { value, done } = await run.next();
    if (done) return { events, end: value };
    events.push(value);
    await each(value);
  }
}

/** The text of the deltas of one kind, chunk by chunk. */
export const chunksOf = (events: RunnerEvent[], type: 'message.delta' | 'reasoning.delta'): string[] =>
  events.flatMap((event) => (event.type === type ? [event.payload.text] : []));
