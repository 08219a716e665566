/** The runner of agents of others under the contract of all runners, with the scripted agent. */
import { readdir } from 'node:fs/promises';
import { runnerContract } from '../contract/runner-contract.ts';
import { createAcpBench } from '../support/acp-bench.ts';

runnerContract(
  'acp',
  async () => {
    const bench = await createAcpBench();
    const { workspace } = bench;
    const play = (...steps: string[]) => ({ workspace, input: `acp: ${[...steps, 'say It is over.'].join('; ')}` });
    return {
      runner: bench.agent(),
      turns: {
        text: { input: 'Say this back to me.' },
        tools: play('say I look.', 'call read notes.txt => hello', 'think So it is'),
        slow: play('pour 2000 10'),
        fails: play('say half', 'error -32603 broken'),
        asks: play('edit made.txt by-the-agent'),
        asksTwice: play('together edit made-1.txt one | edit made-2.txt two'),
        output: play('term echo one;echo two'),
        longTool: play('term echo begun;sleep 30'),
      },
      done: async () => (await readdir(workspace)).filter((name) => name.startsWith('made')).length,
      running: bench.running,
      close: bench.close,
    };
  },
  { clarifies: false },
);
