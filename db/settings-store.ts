/** What was chosen for the whole server in place of config.yaml: one value of `state_meta`. */
import { changedServerSettings, readServerSettings } from '../server/core/server-settings.ts';
import type { StateDb } from './client.ts';
import { readMeta, writeMeta } from './meta.ts';
import type { SettingsStore } from './stores.ts';

const KEY = 'settings';

export function createSettingsStore(state: StateDb): SettingsStore {
  return {
    read: () => state.read((db) => readServerSettings(readMeta(db, KEY))),

    change: (changes) =>
      state.write((db) => {
        const value = changedServerSettings(readMeta(db, KEY), changes);
        writeMeta(db, KEY, value);
        return readServerSettings(value);
      }),
  };
}
