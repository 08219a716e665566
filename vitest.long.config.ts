// The suite of `npm run test:long`: minutes instead of seconds, one file after the other, for these tests measure time
// and memory and load the machine.

import { defineConfig } from 'vitest/config';
import short from './vitest.config.ts';

export default defineConfig({
  test: {
    ...short.test,
    include: ['test/long/**/*.test.ts'],
    exclude: [],
    maxWorkers: 1,
    testTimeout: 600_000,
    hookTimeout: 60_000,
  },
});
