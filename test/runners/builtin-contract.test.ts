/** The built-in agent under the contract of all runners. */
import { createBuiltinRunner } from '../../server/runners/builtin/runner.ts';
import { runnerContract } from '../contract/runner-contract.ts';
import { builtinServices, realSleep } from '../support/builtin-services.ts';

runnerContract('builtin', async () => ({
  runner: createBuiltinRunner(
    // The long waits are real, so that an abort has something to interrupt.
    builtinServices({ wordDelayMs: 0, sleep: (ms, signal) => realSleep(ms, signal) }),
  ),
  turns: {
    text: { input: '/demo text' },
    tools: { input: '/demo tools' },
    slow: { input: '/demo slow' },
    fails: { input: '/demo error' },
  },
  close: async () => {},
}));
