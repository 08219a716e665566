/** All stores over one state DB. */
import { sql } from 'drizzle-orm';
import { createAdmissionStore } from './admission-store.ts';
import { createChangeStore } from './change-store.ts';
import type { StateDb } from './client.ts';
import { createContextStore } from './context-store.ts';
import { createCredentialStore } from './credential-store.ts';
import { createEpochStore } from './epoch-store.ts';
import { createLeaseStore } from './lease-store.ts';
import { createMessageStore } from './message-store.ts';
import { createProjectStore } from './project-store.ts';
import { createEditStore } from './session-edits.ts';
import { createSessionStore } from './session-store.ts';
import { createSettingsStore } from './settings-store.ts';
import type { AliveProbe, Stores } from './stores.ts';

export function createSqliteStores(state: StateDb, alive: AliveProbe): Stores {
  return {
    sessions: createSessionStore(state),
    messages: createMessageStore(state),
    admissions: createAdmissionStore(state, alive),
    edits: createEditStore(state, alive),
    contexts: createContextStore(state),
    leases: createLeaseStore(state, alive),
    changes: createChangeStore(state),
    epochs: createEpochStore(state),
    projects: createProjectStore(state),
    credentials: createCredentialStore(state),
    settings: createSettingsStore(state),
    dataVersion: () => state.dataVersion(),
    probe: () => state.read((db) => void db.get(sql`SELECT 1`)),
    close: () => state.close(),
  };
}
