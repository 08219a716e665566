/** The transcripts that are kept in memory: what is read again and when, and what stands after saves that succeed or fail. */
import { utimes } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import { openStateDb } from '../../db/client.ts';
import { createPaths } from '../../db/files/paths.ts';
import { createSidecarStore, type SidecarStore } from '../../db/files/sidecar-store.ts';
import { createSqliteStores } from '../../db/sqlite-stores.ts';
import type { Message } from '../../server/core/terms.ts';
import { createTranscripts } from '../../server/sessions/transcripts.ts';
import { temporaryFolder } from '../support/home.ts';
import { stateDbOptions } from '../support/state-db.ts';

const SESSION = '20260303_130002_abcdef';
const NOW = 1_772_542_802;

const message = (n: number): Message => ({
  id: `${n.toString(16).padStart(32, '0')}.0`,
  role: 'user',
  content: `text ${n} é`,
  timestamp: NOW + n,
  run_id: n.toString(16).padStart(32, '0'),
});

/** A home with one session, and a second connection to its state DB as another process has it. */
async function open() {
  const paths = createPaths(await temporaryFolder());
  const connect = async () => {
    const state = await openStateDb(stateDbOptions(paths.stateDb));
    onTestFinished(() => state.close());
    return createSqliteStores(state, () => true);
  };
  const [stores, others] = [await connect(), await connect()];
  const fields = { title: null, model: null, workspace: null, project_id: null, source: 'turnkeep' };
  const create = (id: string) =>
    others.sessions.create({ ...fields, session_id: id, now: NOW, create_key: null, create_digest: null });
  await create(SESSION);
  const files = createSidecarStore(paths);
  const seen = { reads: 0, failing: false };
  const sidecars: SidecarStore = {
    ...files,
    read: (id, meanwhile) => {
      seen.reads += 1;
      return files.read(id, meanwhile);
    },
    saveOver: async (id, sidecar, expected) => {
      if (seen.failing) throw new Error('no space');
      return files.saveOver(id, sidecar, expected);
    },
  };
  const transcripts = createTranscripts({
    stores,
    sidecars,
    liveRunId: () => null,
    onDamaged: () => {},
    cacheBytes: 1_000_000,
  });
  const save = (...rows: Message[]) => transcripts.save(SESSION, { rows, pending: null, now: NOW });
  const shown = async (): Promise<unknown> => {
    const { rows, body } = await transcripts.read(SESSION);
    const texts = rows.map((row) => JSON.parse(row.json));
    expect(JSON.parse(`[${body().toString('utf8')}]`)).toEqual(texts);
    return texts;
  };
  return { transcripts, paths, files, seen, save, shown, create };
}

it('[RE1] a file is parsed once: neither further reads nor a change of another session by another process parse it again', async () => {
  const { seen, save, shown, create, transcripts, paths } = await open();
  await save(message(1), message(2));
  transcripts.forget(SESSION);
  expect(await shown()).toEqual([message(1), message(2)]);
  const { reads } = seen;
  await shown();
  await create('20260303_130003_abcdef');
  expect(await shown()).toEqual([message(1), message(2)]);
  await save(message(3));
  await create('20260303_130004_abcdef');
  expect(await shown()).toEqual([message(1), message(2), message(3)]);
  expect(seen.reads).toBe(reads);
  // Another state of the file is another file.
  await utimes(paths.sidecar(SESSION), 1, 1);
  expect(await shown()).toEqual([message(1), message(2), message(3)]);
  expect(seen.reads).toBe(reads + 1);
});

it('[RE1] whatever the number of readers, a change is read and put together once', async () => {
  const { seen, save, transcripts, paths } = await open();
  await save(message(1), message(2));
  await utimes(paths.sidecar(SESSION), 1, 1);
  const { reads } = seen;
  const all = await Promise.all(Array.from({ length: 20 }, () => transcripts.read(SESSION)));
  expect(seen.reads).toBe(reads + 1);
  expect(all.map(({ rows }) => rows.length)).toEqual(all.map(() => 2));
});

it('[SC2][SC3] a save that fails leaves what is in memory and what was read before; the next one goes on from there', async () => {
  const { seen, save, shown, transcripts, files } = await open();
  await save(message(1));
  const before = await transcripts.read(SESSION);
  const bytes = before.body().toString('utf8');
  seen.failing = true;
  await expect(save(message(2))).rejects.toThrow('no space');
  expect(await shown()).toEqual([message(1)]);
  seen.failing = false;
  await save(message(3), message(1));
  await save(message(4));
  expect(await shown()).toEqual([message(1), message(3), message(4)]);
  expect(before.body().toString('utf8')).toBe(bytes);
  expect(before.rows).toHaveLength(1);
  const read = await files.read(SESSION);
  expect(read.kind === 'found' && read.sidecar.rows.map((row) => JSON.parse(row.json))).toEqual(await shown());
});
