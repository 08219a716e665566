import { expect, it } from 'vitest';
import { changedServerSettings, readServerSettings } from '../../server/core/server-settings.ts';

const NOTHING = { default_model: null, busy_input_mode: null };

it.each([
  null,
  '',
  '{',
  'null',
  '[]',
  '"steer"',
  '{"default_model":7,"busy_input_mode":"reject"}',
  '{"default_model":""}',
])('[SE9] a kept value that is not understood is no choice: %s', (kept) => {
  expect(readServerSettings(kept)).toEqual(NOTHING);
  expect(readServerSettings(changedServerSettings(kept, { busy_input_mode: 'steer' }))).toEqual({
    ...NOTHING,
    busy_input_mode: 'steer',
  });
});

it('[SE9] what only a later version knows is kept', () => {
  const kept = changedServerSettings('{"later":{"x":1},"default_model":"a/b"}', { default_model: null });
  expect(JSON.parse(kept)).toEqual({ later: { x: 1 }, default_model: null });
});
