// The suite of `npm run test:soak`: random load and a server that is killed every minute, for as long as
// TURNKEEP_SOAK_MINUTES says.

import { defineConfig } from 'vitest/config';
import short from './vitest.config.ts';

export default defineConfig({
  test: {
    ...short.test,
    include: ['test/long/soak.test.ts'],
    exclude: [],
    maxWorkers: 1,
    hookTimeout: 60_000,
  },
});
