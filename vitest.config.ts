// The suite of `npm test`: everything but the long tests and those with real agents. With TURNKEEP_TEST_REPORT a JSON
// report is written there besides, for .ci/run to count from.

import { defineConfig } from 'vitest/config';

const report = process.env.TURNKEEP_TEST_REPORT;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/long/**', 'test/agents/**'],
    // Many tests start servers and kill child processes: forks keep their signals and native modules apart.
    globalSetup: ['test/support/compile-children.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: report ? ['default', 'json'] : ['default'],
    ...(report ? { outputFile: { json: report } } : {}),
  },
});
