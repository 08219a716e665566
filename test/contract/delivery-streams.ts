/** Streams of server-sent events, each as the delivery contract wants it. */
import { expect, onTestFinished } from 'vitest';
import { openSse, type SseEvent, type SseReader } from '../support/sse.ts';
import { baseOf, type Connection, type Reader, type Scene, type Visitor } from './delivery-scene.ts';
import { type Shown, shownCount, type Told } from './delivery-truth.ts';

const shownOf = ({ json, data }: SseEvent): Shown => ({
  runId: json.run_id,
  type: json.type,
  payload: json.payload,
  count: shownCount(json),
  bytes: data,
});

/** A reader over a stream of server-sent events. */
interface StreamReader extends Reader {
  readonly stream: SseReader;
}

/**
 * @param seen events that the reader had before and that are not counted again
 */
function streamReader(stream: SseReader, scene: Scene, begins: Pick<Reader, 'told' | 'reset'>, seen = 0): StreamReader {
  let isClosed = false;
  void stream.ended.then(() => {
    isClosed = true;
  });
  onTestFinished(() => stream.drop());
  const ofRuns = (): SseEvent[] => {
    const own = stream.events.filter((event) => event.json.session_id === scene.sessionId);
    const strange = stream.events.filter((event) => !['', scene.sessionId].includes(event.json.session_id));
    expect(strange).toEqual([]);
    return own.filter((event) => event.json.seq !== undefined);
  };
  return {
    ...begins,
    stream,
    shown: () => ofRuns().slice(seen).map(shownOf),
    completions: () =>
      stream.events.filter(({ type }) => type === 'message.complete').map(({ json }) => json.payload.admission_id),
    place: () => stream.events.findLast(({ id }) => id !== null)?.id ?? '',
    raw: () => stream.text(),
    heartbeats: () => stream.text().split('event: heartbeat\n').length - 1,
    closed: () => (isClosed ? 'ended' : null),
    pause: () => stream.pause(),
    resume: () => stream.resume(),
    drop: () => stream.drop(),
  };
}

/** What a snapshot tells. */
function toldBy({ json }: SseEvent): Told {
  const { run, cursor } = json.payload;
  const [runId = '', seq = ''] = String(cursor).split(':');
  return { after: cursor === '0' ? null : { runId, seq: Number(seq) }, text: run?.text ?? null };
}

/** Waits for what comes first on a stream of a session: a snapshot, or what ends the replay behind an honoured cursor. */
async function beginningOf(stream: SseReader, scene: Scene): Promise<Pick<Reader, 'told' | 'reset'>> {
  const first = await stream.next(
    ({ type, json }) => json.session_id === scene.sessionId && (type === 'session.snapshot' || type === 'session.info'),
  );
  const reset = stream.events.find(({ type }) => type === 'session.reset')?.json.payload.reason ?? null;
  return { reset, told: first.type === 'session.snapshot' ? toldBy(first) : null };
}

/** Cursors that cannot be honoured. @param of how a cursor of this session is written */
function unusableCursors(of: (cursor: string) => string, own: string, other: string) {
  const [runId = '', seq = ''] = own.split('@').at(-1)!.split(':');
  return {
    garbage: [of('rubbish'), 'malformed'],
    'a number below zero': [of(`${runId}:-1`), 'malformed'],
    'a number past all numbers': [of(`${runId}:99999999999999999999`), 'malformed'],
    'a run that nobody knows': [of(`${'0'.repeat(32)}:1`), 'foreign'],
    'a run of another session': [of(other.split('@').at(-1)!), 'foreign'],
    'one event ahead': [of(`${runId}:${Number(seq) + 1}`), 'ahead'],
    'far ahead': [of(`${runId}:999999999`), 'ahead'],
  } satisfies Record<string, [string, string]>;
}

/** A client with one stream at a time: it leaves it, and comes back with the place that it had there. */
async function streamVisitor(connection: Connection): Promise<Visitor> {
  const visits = new Map<Scene, { told: Told[]; shown: Shown[]; place: string }>();
  let current: { scene: Scene; reader: Reader } | null = null;
  const visitOf = (scene: Scene) => visits.get(scene) ?? { told: [], shown: [], place: '' };
  return {
    async show(scene) {
      if (current) {
        const { reader } = current;
        const left = visitOf(current.scene);
        const place = reader.place() || left.place;
        visits.set(current.scene, { ...left, shown: [...left.shown, ...reader.shown()], place });
        reader.drop();
      }
      const { place, told, shown } = visitOf(scene);
      const reader = place === '' ? await connection.attach(scene) : await connection.resume(scene, place);
      expect(reader.reset).toBeNull();
      visits.set(scene, { place, shown, told: reader.told ? [...told, reader.told] : told });
      current = { scene, reader };
    },
    told: (scene) => visitOf(scene).told,
    shown: (scene) => [...visitOf(scene).shown, ...(current?.scene === scene ? current.reader.shown() : [])],
  };
}

/** GET /api/sessions/:id/events. */
export const sse: Connection = {
  name: 'server-sent events of one session',
  spans: 'session',
  sameBytes: true,
  async attach(scene, base = baseOf(scene)) {
    const stream = await openSse(`${base}api/sessions/${scene.sessionId}/events`);
    return streamReader(stream, scene, await beginningOf(stream, scene));
  },
  async resume(scene, place, base = baseOf(scene)) {
    const headers = { 'last-event-id': place };
    const stream = await openSse(`${base}api/sessions/${scene.sessionId}/events`, { headers });
    return streamReader(stream, scene, await beginningOf(stream, scene));
  },
  unusable: async (_scene, own, other) => unusableCursors((cursor) => cursor, own, other),
  visit: () => streamVisitor(sse),
};

/** GET /api/events: one connection for the list and for sessions. */
export const many: Connection = {
  name: 'server-sent events of the list and of sessions',
  spans: 'session',
  sameBytes: true,
  async attach(scene, base = baseOf(scene)) {
    const stream = await openSse(`${base}api/events?session=${scene.sessionId}`);
    return streamReader(stream, scene, await beginningOf(stream, scene));
  },
  async resume(scene, place, base = baseOf(scene)) {
    const stream = await openSse(`${base}api/events?session=${place === '' ? scene.sessionId : place}`);
    return streamReader(stream, scene, await beginningOf(stream, scene));
  },
  unusable: async (scene, own, other) => unusableCursors((cursor) => `${scene.sessionId}@${cursor}`, own, other),
  visit: () => streamVisitor(many),
};

/**
 * POST with `Accept: text/event-stream`, as curl does it: the prompt and the events of its run in one request. The same
 * request again is the same prompt, and its stream begins at the beginning: whoever comes back skips what it had. It
 * takes no cursor, so none can be unusable, and it is there for one run, so nobody switches sessions with it.
 */
export const post: Connection = {
  name: 'the stream of a POST',
  spans: 'run',
  sameBytes: true,
  async attach(scene, base = baseOf(scene)) {
    const address = `${base}api/sessions/${scene.sessionId}/prompts`;
    const stream = await openSse(address, { method: 'POST', body: scene.body() });
    expect(stream.status).toBe(200);
    return streamReader(stream, scene, { told: { after: null, text: null }, reset: null });
  },
  async resume(scene, place, base = baseOf(scene)) {
    const { stream } = (await post.attach(scene, base)) as StreamReader;
    const seen = Number(place.split(':')[1] ?? 0);
    await stream.next(({ json }) => json.seq >= seen);
    return streamReader(stream, scene, { told: null, reset: null }, seen);
  },
};
