// The suite of `npm run test:soak`: random load and a server that is killed every minute, for as long as
// TURNKEEP_SOAK_MINUTES says.

import { defineConfig } from 'vitest/config';
import { file, run } from './vitest.config.ts';

export default defineConfig({
  test: { ...run, ...file, include: ['test/long/soak.test.ts'], maxWorkers: 1 },
});
