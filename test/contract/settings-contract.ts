/** What the settings store promises, run by the contract suite. */
import { expect, it } from 'vitest';
import { type OpenStores, openBench } from './stores-bench.ts';

export function settingsContract(open: OpenStores): void {
  it('[SE9] a choice stays until it is changed, and one that is not named stays as it is', async () => {
    const { settings } = (await openBench(open)).stores;
    expect(await settings.read()).toEqual({ default_model: null, busy_input_mode: null });
    const both = { default_model: 'a/b', busy_input_mode: 'steer' as const };
    expect(await settings.change(both)).toEqual(both);
    expect(await settings.change({ default_model: 'c/d' })).toEqual({ ...both, default_model: 'c/d' });
    expect(await settings.change({ busy_input_mode: null })).toEqual({ default_model: 'c/d', busy_input_mode: null });
    expect(await settings.change({})).toEqual(await settings.read());
    expect(await settings.read()).toEqual({ default_model: 'c/d', busy_input_mode: null });
  });
}
