/** The built-in agent under the contract of all runners. */
import { createBuiltinRunner } from '../../server/runners/builtin/runner.ts';
import { type RunnerUnderTest, runnerContract } from '../contract/runner-contract.ts';
import { createAskingBench } from '../support/asking-bench.ts';
import { builtinServices, realSleep } from '../support/builtin-services.ts';

const makeRunner = async (): Promise<RunnerUnderTest> => {
  const { tools, approvals, workspace, made, running, close } = await createAskingBench();
  return {
    runner: createBuiltinRunner(
      // The long waits are real, so that an abort has something to interrupt.
      builtinServices({ tools, approvals, wordDelayMs: 0, sleep: (ms, signal) => realSleep(ms, signal) }),
    ),
    turns: {
      text: { input: '/demo text' },
      tools: { input: '/demo tools' },
      slow: { input: '/demo slow' },
      fails: { input: '/demo error' },
      asks: { input: '/write made.txt by the agent', workspace },
      output: { input: '/run echo one; echo two', workspace },
      longTool: { input: '/run echo begun; sleep 30', workspace },
      clarifies: { input: '/ask Which one? | the red one | the blue one' },
    },
    done: made,
    running,
    close,
  };
};

runnerContract('builtin', makeRunner, { sideBySide: false });
