/** The settings of the memory stores. */
import type { SettingsStore } from '../../db/stores.ts';
import { atomic, type MemoryState } from './memory-state.ts';

export const createMemorySettings = (state: MemoryState): SettingsStore => ({
  read: () => atomic(() => state.settings),
  change: (changes) =>
    atomic(() => {
      state.settings = { ...state.settings, ...changes };
      return state.settings;
    }),
});
