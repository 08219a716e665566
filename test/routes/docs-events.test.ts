/** What docs/events.md says is so: its client works, and every event and reason of the code stands in it. */
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../support/home.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { createTcpRelay } from '../support/tcp-relay.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const DOCUMENT = readFileSync(path.join(ROOT, 'docs/events.md'), 'utf8');

interface Event {
  type: string;
  run_id?: string;
  seq?: number;
  payload: { text: string; outcome: string };
}
interface State {
  run: string | null;
  text: string;
  ended: Event['payload'][];
}
interface Client {
  follow(server: string, session: string, onEvent: (event: Event) => void, signal: AbortSignal): Promise<void>;
  apply(state: State, event: Event): State;
}

/** The client of the document, as a module. */
async function loadClient(): Promise<Client> {
  const folder = await temporaryFolder();
  await mkdir(folder, { recursive: true });
  const file = path.join(folder, 'client.mjs');
  await writeFile(file, /```js\n([\s\S]*?)```/.exec(DOCUMENT)?.[1] ?? '');
  return import(/* @vite-ignore */ pathToFileURL(file).href);
}

it('[EV1][SU3] the client of the document shows each event once, over a connection that is cut again and again', async () => {
  const { follow, apply } = await loadClient();
  const script = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: script.runner } });
  const sessionId = await server.session();
  const relay = await createTcpRelay(server.url);
  await server.prompt(sessionId, 'first');
  const turn = await script.turn(0);
  turn.text('before, ');
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const events: Event[] = [];
  let state: State = { run: null, text: '', ended: [] };
  const take = (event: Event): void => {
    events.push(event);
    state = apply(state, event);
  };
  const followed = follow(relay.url, sessionId, take, end.signal);
  await until('it has the snapshot', () => state.run === turn.turn.runId);
  for (const piece of ['one, ', 'two, ', 'three']) {
    turn.text(piece);
    await until(`it shows "${piece}"`, () => state.text.endsWith(piece));
    relay.cut();
    turn.text('! ');
    relay.mend();
  }
  turn.complete();
  await until('it has the end', () => state.ended.length === 1);
  expect(state.text).toBe('before, one, ! two, ! three! ');
  expect(state.ended[0]).toMatchObject({ outcome: 'completed', text: state.text });
  const seqs = events.flatMap((event) => event.seq ?? []);
  expect(seqs).toEqual(seqs.map((_, index) => seqs[0]! + index));
  expect(events.filter((event) => event.type === 'session.snapshot')).toHaveLength(1);
  // The next turn, and the end.
  await server.prompt(sessionId, 'second');
  const next = await script.turn(1);
  next.text('again');
  await until('it shows the next turn', () => state.run === next.turn.runId && state.text === 'again');
  next.complete();
  await until('it has its end', () => state.ended.length === 2);
  end.abort();
  await followed;
});

/** Every source of the server, as one text. */
const sources = ['server', 'routes'].flatMap((folder) =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(path.join(ROOT, folder, name), 'utf8')),
);

it('[EV1][SU2] every event that the server sends, and every reason of a reset, stands in the document', () => {
  const all = sources.join('\n');
  const types = new Set([
    ...[...all.matchAll(/plainLiveEvent\(\s*'([a-z.]+)'/g)].map((match) => match[1]!),
    ...[...all.matchAll(/^ {2}\| \{ type: '([a-z.]+)'; payload/gm)].map((match) => match[1]!),
  ]);
  expect(types.size).toBeGreaterThan(16);
  expect([...types].filter((type) => !DOCUMENT.includes(`\`${type}`))).toEqual([]);
  const reasons = /kind: 'reset'; reason: ([^}]+) \}/.exec(all)?.[1]?.match(/[a-z_]+/g) ?? [];
  expect(reasons.length).toBeGreaterThan(4);
  expect(reasons.filter((reason) => !DOCUMENT.includes(`| \`${reason}\``))).toEqual([]);
  const changes = [...all.matchAll(/onChange\([a-zA-Z_.]+, '([a-z]+)'\)|let reason = '([a-z]+)'/g)];
  const told = new Set(changes.map((match) => match[1] ?? match[2]!));
  expect(told.size).toBeGreaterThan(8);
  expect([...told].filter((reason) => !DOCUMENT.includes(`\`${reason}\``))).toEqual([]);
  const kinds = [...all.matchAll(/payload: \{ kind: '([a-z_]+)', text:/g)].map((match) => match[1]!);
  expect(kinds.length).toBeGreaterThan(2);
  expect(kinds.filter((kind) => !DOCUMENT.includes(`\`${kind}\``))).toEqual([]);
});
