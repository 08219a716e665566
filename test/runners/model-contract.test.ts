/** The model runner under the contract of all runners, with the real workspace tools. */
import { expect } from 'vitest';
import { createWorkspaceTools } from '../../server/workspace/tools.ts';
import { openWorkspace } from '../../server/workspace/workspace.ts';
import { runnerContract } from '../contract/runner-contract.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { modelRunnerOn, providerAt } from './model-bench.ts';

runnerContract('model', async () => {
  const provider = await startFakeProvider();
  const model = 'custom/fake-model';
  return {
    runner: modelRunnerOn(providerAt(provider.baseUrl), { tools: createWorkspaceTools(), openWorkspace }),
    turns: {
      text: { model, input: 'Say this back to me.' },
      tools: { model, input: 'script:tool=list_files,args={"path":"."}' },
      slow: { model, input: 'script:chunks=2000,delay=10' },
      fails: { model, input: 'script:status=500' },
    },
    running: provider.running,
    close: async () => {
      await provider.close();
      expect(provider.violations).toEqual([]);
    },
  };
});
