// The suite of `npm run test:agents`: real agents, installed from the npm registry, against the fake provider. One after the
// other, for each of them is a large program.

import { defineConfig } from 'vitest/config';
import { file, run } from './vitest.config.ts';

export default defineConfig({
  test: {
    ...run,
    ...file,
    include: ['test/agents/**/*.test.ts'],
    globalSetup: [...run.globalSetup, 'test/agents/install.ts'],
    maxWorkers: 1,
    testTimeout: 200_000,
    hookTimeout: 90_000,
  },
});
