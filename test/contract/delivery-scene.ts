/**
 * What the delivery contract plays in: a session whose turns a test plays by hand, and what is true of it, read from
 * the journals of its runs. Of a reader it knows only what every way to read has in common.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import { createScriptedRunner, type PlayedTurn, type ScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { countOf, type Shown, type Told, type Truth, toldOf } from './delivery-truth.ts';

/** One reader of one session. */
export interface Reader {
  /** Where it begins; null for one that goes on behind its place and was told nothing else. */
  readonly told: Told | null;
  /** Why its place could not be honoured. */
  readonly reset: string | null;
  /** Events of runs in the order in which they came. @throws when the numbering or the session of one is wrong */
  shown(): Shown[];
  /** Admissions of all ends that it was shown, cancelled prompts among them. */
  completions(): string[];
  /** The place behind the last event shown: what `resume` takes. */
  place(): string;
  /** Everything that came, as text. */
  raw(): string;
  heartbeats(): number;
  /** How the server ended it: a close code, or just that; null while it is open. */
  closed(): number | 'ended' | null;
  /** Stops taking anything from its socket, and goes on. */
  pause(): void;
  resume(): void;
  drop(): void;
}

/** One way to read events. `base` is the address to connect to, with a slash at its end. */
export interface Connection {
  name: string;
  /** Whether a reader stays for all runs of a session, or for one. */
  spans: 'session' | 'run';
  /** Whether a replayed event can be compared with a live one byte by byte. */
  sameBytes: boolean;
  /** A reader that has seen nothing yet. */
  attach(scene: Scene, base?: string): Promise<Reader>;
  /** A reader that goes on behind a place. */
  resume(scene: Scene, place: string, base?: string): Promise<Reader>;
  /**
   * Places that cannot be honoured, by what is wrong with them, each with what a reader is told.
   * @param own of a reader of the scene that has everything
   * @param other of a reader of another session
   */
  unusable?(scene: Scene, own: string, other: string): Promise<Record<string, [place: string, reset: string]>>;
  /** One client that looks at one session after the other. */
  visit?(): Promise<Visitor>;
}

export interface Visitor {
  /** From now on this session is the one on its screen. Resolves when it has been told where that stands. */
  show(scene: Scene): Promise<void>;
  /** What it was told of a session, each time that it came to it. */
  told(scene: Scene): Told[];
  /** The events of a session that it was shown since it first came to it. */
  shown(scene: Scene): Shown[];
}

export interface Scene {
  server: TestServer;
  sessionId: string;
  /** The current prompt as a request; asked again it is the same prompt. */
  body(): { text: string; request_id: string };
  /** From now on the current prompt is a new one. */
  next(): void;
  /** Has the current prompt accepted; the run's id and its admission's. */
  submit(): Promise<{ runId: string; admissionId: string }>;
  /** The turn of the current prompt. */
  turn(): Promise<PlayedTurn>;
  /** Resolves when the run of the current prompt is over. */
  over(): Promise<void>;
  /** Everything that happened in the runs so far, or in one of them. */
  truth(runId?: string): Promise<Truth[]>;
}

export interface Stage {
  server: TestServer;
  scene(): Promise<Scene>;
  /** WebSockets that are open. */
  sockets(): number;
  /** Connections of the server that have more to send than their sockets take. */
  full(): number;
}

export interface StageOptions {
  config?: string;
  heartbeatS?: number;
  release?: (close: () => Promise<void>) => void;
}

/** A server whose agent says what the test says, even after a stop: it does not listen. */
export async function createStage({ config, heartbeatS, release }: StageOptions = {}): Promise<Stage> {
  const script = createScriptedRunner(undefined, { isDeaf: true });
  const shared = release ? await mkdtemp(path.join(os.tmpdir(), 'turnkeep-test-')) : null;
  const server = await startTestServer({
    overrides: { runner: script.runner, ...(heartbeatS === undefined ? {} : { heartbeatS }) },
    ...(config === undefined ? {} : { config }),
    ...(shared === null ? {} : { home: shared }),
    ...(release && {
      release: (close) =>
        release(async () => {
          await close();
          if (shared !== null) await rm(shared, { recursive: true, force: true });
        }),
    }),
  });
  const sockets = new Set<Socket>();
  const upgraded = new Set<Duplex>();
  server.app.server.server.on('upgrade', (_request, socket) => {
    upgraded.add(socket);
    socket.on('close', () => upgraded.delete(socket));
  });
  server.app.server.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  return {
    server,
    scene: () => createScene(server, script),
    sockets: () => upgraded.size,
    full: () => [...sockets].filter((socket) => socket.writableLength > 0).length,
  };
}

async function createScene(server: TestServer, script: ScriptedRunner): Promise<Scene> {
  const sessionId = await server.session();
  const runs: string[] = [];
  let prompt = 0;
  const body = () => ({ text: `prompt ${prompt} of ${sessionId}`, request_id: `r${prompt}` });
  const scene: Scene = {
    server,
    sessionId,
    body,
    next() {
      prompt += 1;
    },
    async submit() {
      const { text, request_id } = body();
      const { run_id: runId, admission } = await server.prompt(sessionId, text, { request_id });
      if (!runs.includes(runId)) runs.push(runId);
      return { runId, admissionId: admission.admission_id };
    },
    turn() {
      const { text } = body();
      return until(`the turn of "${text}" has begun`, () => script.turns.find(({ turn }) => turn.input === text));
    },
    async over() {
      await server.call('POST', `/api/sessions/${sessionId}/prompts?wait=1`, body());
    },
    async truth(runId) {
      const events: Truth[] = [];
      for (const one of runs) if (runId === undefined || one === runId) events.push(...(await journalOf(scene, one)));
      return events;
    },
  };
  return scene;
}

/** All that a run's journal has; nothing for a prompt that never ran. */
async function journalOf({ server, sessionId }: Scene, runId: string): Promise<Truth[]> {
  const file = path.join(server.home, 'sessions/_run_journal', sessionId, `${runId}.jsonl`);
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => {
    const { run_id, seq, type, payload } = JSON.parse(line);
    return { runId: run_id, seq, type, payload, bytes: `{${line.slice(line.indexOf('"type":'))}` };
  });
}

/** Where a server is connected to without anything between. */
export const baseOf = ({ server }: Scene): string => `${server.url}/`;

/** Resolves when a reader is shown the end of a run. */
export const untilEnd = (reader: Reader, runId: string): Promise<true> =>
  until('a reader is shown the end of a run', () => {
    const last = reader.shown().findLast((event) => event.runId === runId);
    return last?.type === 'message.complete';
  });

/** Waits until a reader has been told or shown everything that is true by then. */
export async function untilShown(scene: Scene, reader: Reader): Promise<Truth[]> {
  return until('the reader has everything', async () => {
    const truth = await scene.truth();
    return toldOf(truth, reader.told!) + countOf(reader.shown()) >= truth.length ? truth : null;
  });
}

/** As much as is said at once to fill the buffers of a connection; nothing of it stays in the transcript. */
const FLOOD = 'x'.repeat(500_000);

/**
 * Has an agent say so much that the connections of readers who take nothing are full.
 * @param stuck how many of them there are
 * @param taken whether the others have everything that was said so far, which was said in so many events
 */
export async function flood(
  stage: Stage,
  turn: PlayedTurn,
  stuck: number,
  taken: (said: number) => boolean,
): Promise<void> {
  for (let said = 1; ; said += 1) {
    turn.say({ type: 'todo.updated', payload: { todos: [{ content: FLOOD, status: 'pending' }] } });
    await until('the healthy readers have it', () => taken(said));
    // A healthy one's is empty as soon as the server has noticed: what is full for several looks stays full.
    let looks = 0;
    while (looks < 3 && stage.full() >= stuck) {
      looks += 1;
      for (let tick = 0; tick < 20; tick += 1) await new Promise((resolve) => setImmediate(resolve));
    }
    if (looks === 3) return;
  }
}
