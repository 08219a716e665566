/**
 * A server that is killed and started again under its clients: whoever asks it goes on asking until it has an answer, as
 * a client does that wants its prompt to arrive. Owns the process, and the readers that follow a session over all its
 * starts.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { type ChildServer, startChildServer } from './child-server.ts';
import { RpcFailure, UpgradeRefused } from './gateway.ts';
import { openSse, type SseEvent, type SseReader } from './sse.ts';
import type { Answer } from './test-server.ts';
import { descriptorsOf } from './visits.ts';

export interface Place {
  readonly home: string;
  /** How often it was killed. */
  readonly kills: number;
  /** What asked for patience, and was done again, by its code. */
  readonly patience: Record<string, number>;
  /** Kills it with -9 and starts it again. */
  restart(): Promise<void>;
  /** Does something with the server that runs; from the beginning again when it was killed meanwhile, or asked for patience. */
  during<T>(work: (server: ChildServer, isKilled: () => boolean) => Promise<T>): Promise<T>;
  /** Asks until there is an answer that is no request for patience. */
  ask(method: string, address: string, body?: unknown): Promise<Answer>;
  /** The same for a request that is sent in another way. */
  answer(work: (server: ChildServer) => Promise<Answer>): Promise<Answer>;
  measure(): Promise<Measured>;
}

/** What must not grow. Bytes, but for the count of descriptors. */
export interface Measured {
  memory: number;
  descriptors: number;
  disk: number;
}

/** The server has too much to do, and said so instead of doing it. */
export class AskedForPatience extends Error {}

/** The code with which somebody was asked for patience; null for any other failure. */
function patienceIn(error: unknown): string | null {
  if (error instanceof AskedForPatience) return error.message;
  if (error instanceof UpgradeRefused && error.status === 503) return 'upgrade refused';
  return error instanceof RpcFailure && error.data?.retryable === true ? String(error.data.code) : null;
}

export async function openPlace(home: string): Promise<Place> {
  let server = await startChildServer({ home });
  let up: Promise<unknown> = Promise.resolve();
  let kills = 0;
  const patience: Record<string, number> = {};

  const place: Place = {
    home,
    get kills() {
      return kills;
    },
    patience,
    async restart() {
      kills += 1;
      const again = server.kill().then(async () => {
        server = await startChildServer({ home });
      });
      up = again;
      await again;
    },
    async during(work) {
      for (;;) {
        await up;
        const since = kills;
        try {
          return await work(server, () => kills !== since);
        } catch (error) {
          if (kills !== since) continue;
          const code = patienceIn(error);
          if (code === null) throw error;
          patience[code] = (patience[code] ?? 0) + 1;
          await pause(200);
        }
      }
    },
    ask: (method, address, body) => place.answer((now) => now.call(method, address, body)),
    answer: (work) =>
      place.during(async (now) => {
        const answer = await work(now);
        if (answer.headers.get('retry-after') !== null) throw new AskedForPatience(answer.json.code);
        return answer;
      }),
    measure: () =>
      place.during(async ({ process: { pid } }) => ({
        memory: Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024,
        descriptors: await descriptorsOf(pid!),
        disk: await sizeOf(home),
      })),
  };
  return place;
}

/** Lets time go by between two requests of a client. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Bytes of all files below a folder; what goes while it is looked at has none. */
async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const sizes = entries.map((entry) => {
    const place = path.join(folder, entry.name);
    if (entry.isDirectory()) return sizeOf(place);
    return stat(place).then(
      ({ size }) => size,
      () => 0,
    );
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

export interface Follower {
  /** All that it was told, over all starts of the server. */
  events(): SseEvent[];
  stop(): Promise<void>;
}

/** A reader of one session that comes back with its cursor whenever its stream ends. Resolves when it knows where it stands. */
export async function follow(place: Place, sessionId: string): Promise<Follower> {
  const past: SseEvent[] = [];
  let current: SseReader | null = null;
  let isOver = false;
  let began: () => void = () => {};
  const beginning = new Promise<void>((resolve) => {
    began = resolve;
  });
  const events = (): SseEvent[] => [...past, ...(current?.events ?? [])];
  const once = (): Promise<void> =>
    place.during(async ({ url }) => {
      const last = events().findLast(({ id }) => id !== null)?.id;
      const headers: Record<string, string> = last ? { 'last-event-id': last } : {};
      const stream = await openSse(`${url}/api/sessions/${sessionId}/events`, { headers });
      if (isOver) stream.drop();
      current = stream;
      if (last === undefined) void stream.next(({ id }) => id !== null).then(began, () => {});
      await stream.ended;
      past.push(...stream.events);
      current = null;
    });
  const reading = (async () => {
    while (!isOver) {
      await once();
      await pause(20);
    }
  })();
  await beginning;
  return {
    events,
    async stop() {
      isOver = true;
      current?.drop();
      await reading;
    },
  };
}
