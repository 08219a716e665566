// The suite of `npm test`: everything but the long tests and those with real agents. With TURNKEEP_TEST_REPORT a JSON
// report is written there besides, for .ci/run to count from.

import { configDefaults, defineConfig } from 'vitest/config';

const report = process.env.TURNKEEP_TEST_REPORT;

/** What a run writes, and does first. */
export const run = {
  reporters: report ? ['default', 'json'] : ['default'],
  ...(report ? { outputFile: { json: report } } : {}),
  globalSetup: ['test/support/compile-children.ts'],
};

/**
 * How each file runs. Many tests start servers and kill child processes: forks keep their signals and native modules apart.
 * The files of one worker share what they import: to load the server anew for each of them is a third of the whole time.
 */
export const file = {
  pool: 'forks' as const,
  isolate: false,
  maxWorkers: 2,
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // As until() waits: a second, which it is otherwise, is nothing on a busy machine.
  expect: { poll: { timeout: 30_000 } },
};

// Counts what blocks of the code do, which can be done only from the moment on when they are first loaded.
const COUNTING = ['test/core/reconcile-scale.test.ts'];
const ELSEWHERE = ['test/long/**', 'test/agents/**'];

export default defineConfig({
  test: {
    ...run,
    projects: [
      {
        test: {
          ...file,
          name: 'short',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...ELSEWHERE, ...COUNTING],
        },
      },
      { test: { ...file, name: 'counting', include: COUNTING, isolate: true } },
    ],
  },
});
