// Parts of the server that benches call without HTTP: joined into one module by `compiled.mjs`, never loaded as it stands.
export { openStateDb } from '../../db/client.ts';
export { createPaths } from '../../db/files/paths.ts';
export { createSidecarStore } from '../../db/files/sidecar-store.ts';
export { createSqliteStores } from '../../db/sqlite-stores.ts';
export { createApp } from '../../server/app.ts';
export { loadConfig } from '../../server/config.ts';
export { createTranscripts } from '../../server/sessions/transcripts.ts';
