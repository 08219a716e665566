/** The ways in which the events of a session reach a reader, each as the delivery contract wants it. */
import { expect, onTestFinished } from 'vitest';
import { connectGateway, type GatewayClient, type GatewayEvent } from '../support/gateway.ts';
import { openSse, type SseEvent, type SseReader } from '../support/sse.ts';
import type { Connection, Reader, Scene, Shown, Told, Visitor } from './delivery-scene.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server says.
type Json = any;

const baseOf = (scene: Scene): string => `${scene.server.url}/`;

/** How many events one that came stands for. */
const countOf = ({ seq, first_seq = seq }: { seq: number; first_seq?: number }): number => seq - first_seq + 1;

const shownOf = ({ json, data }: SseEvent): Shown => ({
  runId: json.run_id,
  type: json.type,
  payload: json.payload,
  count: countOf(json),
  bytes: data,
});

/** A reader over a stream of server-sent events. */
interface StreamReader extends Reader {
  readonly stream: SseReader;
}

/**
 * @param own whether an event may come on this stream
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
  ownSink: true,
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
  ownSink: false,
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
  ownSink: true,
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

/** A place of a gateway client. */
interface GatewayPlace {
  runtime: string;
  seq: number;
}

const isRunEvent = (event: GatewayEvent): boolean =>
  event.run_id !== undefined && !event.type.startsWith('request.') && event.payload.outcome !== 'cancelled';

/** What resume and activate tell. */
export function toldByGateway(answer: Json): Told {
  const run = answer.inflight?.run;
  if (run) return { after: { runId: run.run_id, seq: run.last_seq }, text: run.text };
  const last = answer.messages.findLast(({ role }: Json) => role !== 'user');
  return { after: last ? { runId: last.id.split('.')[0], seq: Number.POSITIVE_INFINITY } : null, text: null };
}

/**
 * Events of a live session that a client has, pulled or pushed, in their order. Nothing that was pushed was pushed twice
 * or late, and the numbers have no hole.
 * @param from the last event before them
 */
export function numbered(client: GatewayClient, runtime: string, from: number, pulled: GatewayEvent[]): GatewayEvent[] {
  const pushed = client.events(runtime);
  for (const [index, event] of pushed.entries()) {
    const before = pushed[index - 1];
    if (before) expect(event.first_seq ?? event.seq!, 'numbers go on by one').toBe(before.seq! + 1);
  }
  const first = pushed[0];
  const all = [...pulled.filter(({ seq }) => !first || seq! < (first.first_seq ?? first.seq!)), ...pushed];
  let last = from;
  for (const event of all) {
    expect(event.first_seq ?? event.seq!, 'numbers have no hole').toBe(last + 1);
    last = event.seq!;
  }
  return all;
}

export const gatewayShown = (events: readonly GatewayEvent[]): Shown[] =>
  events.filter(isRunEvent).map((event) => ({
    runId: event.run_id!,
    type: event.type,
    payload: event.payload,
    count: countOf({ seq: event.seq!, ...(event.first_seq !== undefined && { first_seq: event.first_seq }) }),
    bytes: JSON.stringify(event),
  }));

function gatewayReader(
  client: GatewayClient,
  begins: Pick<Reader, 'told' | 'reset'>,
  { runtime, seq }: GatewayPlace,
  pulled: GatewayEvent[],
): Reader {
  const all = (): GatewayEvent[] => {
    const strange = client.events().filter((event) => !['', runtime].includes(event.session_id));
    expect(strange).toEqual([]);
    return numbered(client, runtime, seq, pulled);
  };
  return {
    ...begins,
    shown: () => gatewayShown(all()),
    completions: () =>
      all()
        .filter(({ type }) => type === 'message.complete')
        .map(({ payload }) => payload.admission_id),
    place: () => JSON.stringify({ runtime, seq: all().at(-1)?.seq ?? seq }),
    raw: () => client.frames.map((frame) => JSON.stringify(frame)).join('\n'),
    heartbeats: () => client.events('', 'heartbeat').length,
    closed: () => client.closed(),
    pause: () => client.pause(),
    resume: () => client.resume(),
    drop: () => void client.drop(),
  };
}

/** GET /api/ws: attached by `session.resume`; what was missed is pulled with `session.events.since`. */
export const gateway: Connection = {
  name: 'the WebSocket gateway',
  spans: 'session',
  // Events are numbered for the live session, in an envelope of their own.
  sameBytes: false,
  ownSink: true,
  async attach(scene, base = baseOf(scene)) {
    const client = await connectGateway(base);
    onTestFinished(() => client.drop());
    const answer = await client.call('session.resume', { session_id: scene.sessionId });
    const place = { runtime: answer.session_id, seq: answer.latest_seq };
    return gatewayReader(client, { told: toldByGateway(answer), reset: null }, place, []);
  },
  async resume(scene, place, base = baseOf(scene)) {
    const client = await connectGateway(base);
    onTestFinished(() => client.drop());
    const answer = await client.call('session.resume', { session_id: scene.sessionId });
    const last = JSON.parse(place) as GatewayPlace;
    const since = await client.request('session.events.since', { session_id: last.runtime, last_seen: last.seq });
    if (since.error || since.result.truncated) {
      const reset = since.error ? String(since.error.code) : 'truncated';
      const now = { runtime: answer.session_id, seq: answer.latest_seq };
      return gatewayReader(client, { told: toldByGateway(answer), reset }, now, []);
    }
    return gatewayReader(client, { told: null, reset: null }, last, since.result.events);
  },
  async unusable(scene, own) {
    const { runtime, seq } = JSON.parse(own);
    const place = (more: object): string => JSON.stringify({ runtime, seq, ...more });
    const client = await connectGateway(baseOf(scene));
    const sessionId = scene.sessionId;
    // A live session that is given back takes its numbers with it.
    const before = (await client.call('session.resume', { session_id: sessionId })).session_id;
    await client.call('session.close', { session_id: before });
    const now = (await client.call('session.resume', { session_id: sessionId })).session_id;
    await client.drop();
    return {
      garbage: [place({ runtime: now, seq: 'rubbish' }), '-32602'],
      'a number below zero': [place({ runtime: now, seq: -1 }), '-32602'],
      'half a number': [place({ runtime: now, seq: 1.5 }), '-32602'],
      'a live session that nobody knows': [place({ runtime: '00000000' }), '4001'],
      'a live session that was given back': [place({ runtime: before }), '4001'],
      'far ahead': [place({ runtime: now, seq: 999_999_999 }), 'truncated'],
      'what was before the numbers of this one': [place({ runtime: now, seq: seq + 1_000 }), 'truncated'],
    };
  },
  async visit() {
    let client: GatewayClient | null = null;
    const visits = new Map<Scene, { told: Told[]; place: GatewayPlace }>();
    return {
      async show(scene) {
        if (!client) {
          client = await connectGateway(baseOf(scene));
          const own = client;
          onTestFinished(() => own.drop());
        }
        const known = visits.get(scene);
        const answer = known
          ? await client.call('session.activate', { session_id: known.place.runtime })
          : await client.call('session.resume', { session_id: scene.sessionId });
        expect(answer.session_id).toBe(known?.place.runtime ?? answer.session_id);
        const place = known?.place ?? { runtime: answer.session_id, seq: answer.latest_seq };
        visits.set(scene, { place, told: [...(known?.told ?? []), toldByGateway(answer)] });
      },
      told: (scene) => visits.get(scene)!.told,
      shown(scene) {
        const { runtime, seq } = visits.get(scene)!.place;
        const known = new Set(['', ...[...visits.values()].map(({ place }) => place.runtime)]);
        expect(client!.events().filter((event) => !known.has(event.session_id))).toEqual([]);
        return gatewayShown(numbered(client!, runtime, seq, []));
      },
    };
  },
};
