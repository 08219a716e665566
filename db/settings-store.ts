/** What was chosen for the whole server in place of config.yaml: one value of `state_meta`. */
import { eq } from 'drizzle-orm';
import { changedServerSettings, readServerSettings } from '../server/core/server-settings.ts';
import type { Db, StateDb } from './client.ts';
import { stateMeta } from './schema.ts';
import type { SettingsStore } from './stores.ts';

const KEY = 'settings';

const kept = (db: Db): string | null => db.select().from(stateMeta).where(eq(stateMeta.key, KEY)).get()?.value ?? null;

export function createSettingsStore(state: StateDb): SettingsStore {
  return {
    read: () => state.read((db) => readServerSettings(kept(db))),

    change: (changes) =>
      state.write((db) => {
        const value = changedServerSettings(kept(db), changes);
        db.insert(stateMeta)
          .values({ key: KEY, value })
          .onConflictDoUpdate({ target: stateMeta.key, set: { value } })
          .run();
        return readServerSettings(value);
      }),
  };
}
