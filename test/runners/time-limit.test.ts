/** Limits of time that stand beside other ends. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { withTimeLimit } from '../../server/time-limit.ts';
import { until } from '../support/until.ts';

it('[MC2] a limit of time comes, also when memory is cleaned up meanwhile', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const limit = withTimeLimit(0.1, new AbortController().signal);
  let isOver = false;
  limit.addEventListener('abort', () => {
    isOver = true;
  });
  await until('it is over', () => {
    collect();
    return isOver;
  });
});

it('[MC2] it ends with the first of the signals', () => {
  const stop = new AbortController();
  const limit = withTimeLimit(1_000_000_000, new AbortController().signal, stop.signal);
  expect(limit.aborted).toBe(false);
  stop.abort();
  expect(limit.aborted).toBe(true);
});
