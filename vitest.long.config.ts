// The suite of `npm run test:long`: minutes instead of seconds. Most of it waits for most of its time, so two files run
// beside each other; those that measure memory or how long others wait run alone, behind them. The soak has a run of its
// own, `npm run test:soak`.

import { configDefaults, defineConfig } from 'vitest/config';
import { file, run } from './vitest.config.ts';

const MEASURE = ['readers', 'attacks', 'foreign-large'].map((name) => `test/long/${name}.test.ts`);
const SOAK = 'test/long/soak.test.ts';
const long = { ...file, testTimeout: 600_000 };

export default defineConfig({
  test: {
    ...run,
    projects: [
      {
        test: {
          ...long,
          name: 'beside',
          include: ['test/long/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...MEASURE, SOAK],
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: { ...long, name: 'alone', include: MEASURE, isolate: true, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
