/** Another program's home beside ours, put together from what the configuration names of it. */
import { openForeignFolder } from '../../db/files/foreign/folder.ts';
import type { SidecarStore } from '../../db/files/sidecar-store.ts';
import type { OwnSessions } from '../../db/foreign/own-sessions.ts';
import { openForeignStateDb } from '../../db/foreign/state-db.ts';
import type { Search } from '../sessions/search.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { ForeignPlaces } from './refusal.ts';
import { createForeignSearch } from './search.ts';
import { createForeignSessions, type ForeignSessions } from './sessions.ts';
import { createForeignSources } from './sources.ts';
import { createForeignTranscripts } from './transcripts.ts';
import { createForeignWatch, type ForeignWatch, type ForeignWatchParts } from './watch.ts';

export interface ForeignParts {
  places: ForeignPlaces;
  /** A folder of ours for private copies. */
  copies: string;
  ownSessions: OwnSessions;
  merge: SidecarStore['merge'];
  /** Epoch seconds. */
  now(): number;
  /** @param ms milliseconds */
  sleep(ms: number): Promise<void>;
  runIdFor(text: string): string;
  cacheBytes: number;
  log: { warn(fields: object, message: string): void };
}

export interface Foreign {
  sessions(own: Sessions): ForeignSessions;
  search(own: Search): Search;
  /** Tells readers of the list what changes there. */
  watch(registry: ForeignWatchParts['registry']): ForeignWatch;
  /** Reads what a list needs, so that the first one need not wait for it. */
  warm(): Promise<void>;
  close(): Promise<void>;
}

export function openForeign(parts: ForeignParts): Foreign {
  const { places, ownSessions, log } = parts;
  const { state_db, sessions_dir } = places;
  const stateDb = state_db ? openForeignStateDb({ file: state_db, copies: parts.copies, sleep: parts.sleep }) : null;
  const folder = sessions_dir ? openForeignFolder(sessions_dir) : null;
  const sources = createForeignSources({ stateDb, folder, log });
  const transcripts = createForeignTranscripts({ ...parts, sources, stateDb, folder });
  return {
    sessions: (own) => createForeignSessions({ own, ownSessions, sources, transcripts, places }),
    search: (own) => createForeignSearch({ own, ownSessions, sources, transcripts, stateDb, folder, log }),
    watch: (registry) => createForeignWatch({ all: sources.all, ours: ownSessions.among, registry, log }),
    async warm() {
      await sources.all();
    },
    close: async () => stateDb?.close(),
  };
}
