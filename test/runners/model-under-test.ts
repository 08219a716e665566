/** The model runner for the contract of all runners, with the real tools, on a fake provider of any protocol. */
import { expect } from 'vitest';
import type { ProviderConfig } from '../../server/runners/provider.ts';
import { openWorkspace } from '../../server/workspace/workspace.ts';
import type { RunnerUnderTest } from '../contract/runner-contract.ts';
import { createAskingBench } from '../support/asking-bench.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { modelRunnerOn } from './model-bench.ts';

const call = (tool: string, args: object): string => `script:tool=${tool},args=${JSON.stringify(args)}`;

/** @param model its id, with the provider's name */
export async function modelUnderTest(
  fake: FakeProvider,
  provider: ProviderConfig,
  model: string,
): Promise<RunnerUnderTest> {
  const bench = await createAskingBench();
  const { tools, approvals, workspace } = bench;
  const write = (path: string) => ({ name: 'write_file', args: { path, content: 'by the agent\n' } });
  fake.script(
    ({ messages = [] }) => JSON.stringify(messages.at(-1)).includes('both at once'),
    [{ tool_calls: [write('made-1.txt'), write('made-2.txt')] }],
  );
  const question = { question: 'Which one?', choices: ['red', 'blue'] };
  return {
    runner: modelRunnerOn(provider, { tools, approvals, openWorkspace }),
    turns: {
      text: { model, input: 'Say this back to me.' },
      tools: { model, workspace, input: call('list_files', { path: '.' }) },
      slow: { model, input: 'script:chunks=2000,delay=10' },
      fails: { model, input: 'script:status=500' },
      asks: { model, workspace, input: call('write_file', { path: 'made.txt', content: 'by the agent\n' }) },
      asksTwice: { model, workspace, input: 'both at once' },
      output: { model, workspace, input: call('terminal', { command: 'echo one; echo two' }) },
      longTool: { model, workspace, input: call('terminal', { command: 'echo begun; sleep 30' }) },
      clarifies: { model, input: call('clarify', { questions: [question] }) },
    },
    done: bench.made,
    running: () => fake.running() + bench.running(),
    async close() {
      await fake.close();
      await bench.close();
      expect(fake.violations).toEqual([]);
    },
  };
}
