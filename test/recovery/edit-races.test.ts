/** A read that is under way while an edit is made: what it had found before the edit is not what is there any more. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { openStateDb } from '../../db/client.ts';
import { createPaths } from '../../db/files/paths.ts';
import { createSidecarStore, type SidecarStore } from '../../db/files/sidecar-store.ts';
import { createSqliteStores } from '../../db/sqlite-stores.ts';
import { createTranscripts } from '../../server/sessions/transcripts.ts';
import { lease, openBench, SESSION } from '../contract/stores-bench.ts';
import { temporaryFolder } from '../support/home.ts';
import { stateDbOptions } from '../support/state-db.ts';

it.each(['before', 'after'])('[ED1] held up %s it has read the file, it brings nothing back', async (where) => {
  const home = await temporaryFolder();
  const stores = createSqliteStores(await openStateDb(stateDbOptions(path.join(home, 'state.db'))), () => true);
  const real = createSidecarStore(createPaths(home));
  let gate: Promise<void> | null = null;
  let reached: () => void = () => {};
  const held = async (at: string): Promise<void> => {
    if (gate === null || at !== where) return;
    reached();
    await gate;
  };
  const sidecars: SidecarStore = {
    ...real,
    async read(sessionId, meanwhile) {
      await held('before');
      const read = await real.read(sessionId, meanwhile);
      await held('after');
      return read;
    },
  };
  const transcripts = createTranscripts({
    stores,
    sidecars,
    liveRunId: () => null,
    onDamaged: () => {},
    cacheBytes: 1e6,
  });
  const bench = await openBench(async () => ({ stores, holder: () => null, close: () => stores.close() }));
  await bench.session();
  await bench.finish(1);
  await bench.finish(2);
  await transcripts.save(SESSION, { rows: [], pending: null, now: 1 });
  const { rows } = await transcripts.read(SESSION);
  expect(rows).toHaveLength(4);

  transcripts.forget(SESSION);
  let open: () => void = () => {};
  gate = new Promise((resolve) => {
    open = resolve;
  });
  const isHeld = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const reading = transcripts.read(SESSION);
  await isHeld;
  const kept = { id: rows[1]!.id, timestamp: 1 };
  const remove = rows.slice(2).map((row) => row.id);
  const cut = { kept, count: 2, remove, revision: await bench.revision() };
  expect((await stores.edits.cut(SESSION, cut, { lease: lease(), now: 5 })).kind).toBe('edited');
  transcripts.forget(SESSION);
  gate = null;
  const saving = transcripts.save(SESSION, { rows: [], pending: null, now: 6 });
  open();
  await Promise.all([reading, saving]);
  expect((await transcripts.read(SESSION)).rows).toHaveLength(2);
  transcripts.forget(SESSION);
  expect((await transcripts.read(SESSION)).rows).toHaveLength(2);
  stores.close();
});
