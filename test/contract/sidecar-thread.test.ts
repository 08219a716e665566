/**
 * Long transcripts are read and merged by a thread of their own. A thread loads compiled code only, so that the stores here
 * are those that are compiled for child processes; beside the sources the same work is done without one.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createPaths } from '../../db/files/paths.ts';
import { plainRow, type SidecarRow } from '../../db/files/sidecar-rows.ts';
import { createSidecarStore, type SidecarStore, toSidecarRow } from '../../db/files/sidecar-store.ts';
import type { SidecarThread, SidecarThreadParts } from '../../db/files/sidecar-thread.ts';
import { NO_FENCES } from '../../server/core/reconcile/reconcile.ts';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import { childEntry } from '../support/compile-children.ts';
import { createForeignWriter } from '../support/foreign-writer.ts';
import { temporaryFolder } from '../support/home.ts';
import { serveMain } from '../support/main-process.ts';

const SESSION = '20260303_130002_abcdef';

interface Compiled {
  createSidecarStore: typeof createSidecarStore;
  createSidecarThread(parts: SidecarThreadParts): SidecarThread;
}

/** What is compiled for child processes. */
async function compiled(): Promise<Compiled> {
  const load = (name: string) => import(pathToFileURL(childEntry(name)).href);
  return { ...(await load('sidecar-store')), ...(await load('sidecar-thread')) };
}

async function open() {
  const home = await temporaryFolder();
  const paths = createPaths(home);
  await mkdir(paths.sessions);
  const file = paths.sidecar(SESSION);
  const { createSidecarStore: createCompiled, createSidecarThread } = await compiled();
  const failures: unknown[] = [];
  const onThreadFailure = (error: unknown): void => void failures.push(error);
  const threads = (script?: URL) => createSidecarThread({ onFailure: onThreadFailure, ...(script ? { script } : {}) });
  return {
    file,
    failures,
    threads,
    here: createSidecarStore(paths),
    there: createCompiled(paths, { onThreadFailure }),
  };
}

/** All that a store says of a transcript. */
async function said(store: SidecarStore): Promise<unknown> {
  const read = await store.read(SESSION);
  if (read.kind !== 'found') return read;
  const { header, rows, tail } = read.sidecar;
  const found = rows.map((row) => ({ ...plainRow(row as SidecarRow), plain: row.plain }));
  return { header, tail, rows: found, identity: read.identity };
}

const ours = (n: number) => ({
  id: `${'ab'.repeat(16)}.${n}`,
  role: n % 2 ? 'assistant' : 'user',
  content: `${n} ${'wörd '.repeat(60)}`,
  timestamp: n,
  run_id: 'ab'.repeat(16),
});
const theirs = (n: number) => ({ role: n % 2 ? 'assistant' : 'user', content: `${n} said`, timestamp: n, _turnTps: n });
const many = <Row>(make: (n: number) => Row, count: number): Row[] => Array.from({ length: count }, (_, n) => make(n));

describe('a long transcript', () => {
  it('[SC1] that a thread reads is what this thread would have read, whoever wrote it', async () => {
    const { file, here, there, threads, failures } = await open();
    const header = { session_id: SESSION, title: 'T' };
    const foreign = { ...header, messages: many(theirs, 5_000), context_messages: [{ role: 'user' }] };
    const rows = many(ours, 1_000);
    const write: (() => Promise<unknown>)[] = [
      () =>
        here.save(SESSION, { header: header as never, rows: rows.map((row) => toSidecarRow(row as never)), tail: {} }),
      () => writeFile(file, JSON.stringify(foreign, null, 2)),
      () => writeFile(file, JSON.stringify(foreign)),
      () => writeFile(file, JSON.stringify(foreign).slice(0, -1)),
      () => writeFile(file, JSON.stringify({ ...foreign, session_id: 'another' })),
    ];
    for (const make of write) {
      await make();
      expect((await threads().read({ sessionId: SESSION, file }))?.kind).toBeTypeOf('string');
      expect(await said(there)).toEqual(await said(here));
    }
    expect(failures).toEqual([]);
  });

  it('[SC1] that is gone when the thread comes to it is missing, and the thread goes on', async () => {
    const { file, threads, failures, here } = await open();
    const thread = threads();
    expect(await thread.read({ sessionId: SESSION, file })).toBeNull();
    await here.save(SESSION, { header: { session_id: SESSION } as never, rows: [], tail: {} });
    expect(await thread.read({ sessionId: SESSION, file })).toMatchObject({ kind: 'found' });
    expect(failures).toEqual([]);
  });

  it('[RC1] that a thread merges with rows of the state DB is what this thread would have made of it', async () => {
    const { file, here, there, failures } = await open();
    const state = many((n): RawRow => ({ ...theirs(n), _state_db_row_id: n + 1 }), 3_000);
    await writeFile(file, JSON.stringify({ session_id: SESSION, messages: many(theirs, 2_500) }, null, 2));
    const merged = async (store: SidecarStore, keep: number) => {
      const read = await store.read(SESSION);
      if (read.kind !== 'found') throw new Error(read.kind);
      const { rows, ...rest } = await store.merge(SESSION, {
        found: { rows: read.sidecar.rows, identity: read.identity },
        rows: read.sidecar.rows.slice(0, keep),
        stateCount: state.length,
        async *state() {
          for (let at = 0; at < state.length; at += 500) yield state.slice(at, at + 500);
        },
        fences: NO_FENCES,
        liveRunId: null,
      });
      return { ...rest, rows: rows.map(plainRow) };
    };
    for (const keep of [2_500, 2_000, 10]) {
      const made = await merged(there, keep);
      expect(made).toEqual(await merged(here, keep));
      expect(made.rows).toHaveLength(3_000);
      expect(made.names).toHaveLength(3_000);
    }
    expect(failures).toEqual([]);
  });

  it('[SU1] delays nobody while it is read: others have their turns meanwhile', async () => {
    const { file, threads } = await open();
    await writeFile(file, JSON.stringify({ session_id: SESSION, messages: many(theirs, 60_000) }));
    const thread = threads();
    let turns = 0;
    let isRead = false;
    const spin = (): void => {
      turns += 1;
      if (!isRead) setImmediate(spin);
    };
    setImmediate(spin);
    await thread.read({ sessionId: SESSION, file });
    isRead = true;
    expect(turns).toBeGreaterThan(50);
  });
});

describe('a thread for long transcripts', () => {
  const OF_PORT = "import { parentPort } from 'node:worker_threads';\nparentPort.once('message', () => ";
  const FAILURES: [how: string, text: string][] = [
    ['ends', `${OF_PORT}process.exit(3));`],
    ['throws', `${OF_PORT}{ throw new Error('broken'); });`],
    ['cannot be loaded', 'this is no module'],
  ];

  it.each(FAILURES)('[SU1] that %s hangs no read, and is given up after some', async (_how, text) => {
    const { file, threads, failures } = await open();
    const script = path.join(await temporaryFolder(), 'worker.mjs');
    await writeFile(script, text);
    const thread = threads(pathToFileURL(script));
    for (let n = 1; n <= 5; n += 1) {
      expect(await thread.read({ sessionId: SESSION, file })).toBeNull();
      expect(failures).toHaveLength(Math.min(n, 3));
    }
  });

  it('[SC1] is not needed: where there is none, the work is done here', async () => {
    const { file, threads, failures } = await open();
    const thread = threads(pathToFileURL(path.join(await temporaryFolder(), 'none.js')));
    expect(await thread.read({ sessionId: SESSION, file })).toBeNull();
    expect(failures).toEqual([]);
  });
});

describe('a server with a thread', () => {
  it('[RC1] shows a long transcript of another program once, the same on every read', async () => {
    const home = await temporaryFolder();
    const server = await serveMain(home);
    const { session } = (await server.call('POST', '/api/sessions', {})).json;
    const foreign = createForeignWriter(home, session.session_id);
    const rows = many(theirs, 4_000);
    await foreign.writeSidecar(rows);
    foreign.appendRows(rows);
    const read = async () => (await server.call('GET', `/api/sessions/${session.session_id}?messages=all`)).json;
    const first = await read();
    expect(first.messages.map((row: { content: string }) => row.content)).toEqual(rows.map((row) => row.content));
    expect((await read()).messages).toEqual(first.messages);
    expect(server.stderr()).not.toContain('thread');
  });
});
