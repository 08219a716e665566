/** The WebSocket gateway as the delivery contract wants it. */
import { expect, onTestFinished } from 'vitest';
import { connectGateway, type GatewayClient, type GatewayEvent } from '../support/gateway.ts';
import { baseOf, type Connection, type Reader, type Scene } from './delivery-scene.ts';
import { type Shown, shownCount, type Told } from './delivery-truth.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server says.
type Json = any;

/** A place of a gateway client. */
interface GatewayPlace {
  runtime: string;
  seq: number;
}

const isRunEvent = (event: GatewayEvent): boolean =>
  event.run_id !== undefined && !event.type.startsWith('request.') && event.payload.outcome !== 'cancelled';

/** What resume and activate tell. */
function toldByGateway(answer: Json): Told {
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
function numbered(client: GatewayClient, runtime: string, from: number, pulled: GatewayEvent[]): GatewayEvent[] {
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

const gatewayShown = (events: readonly GatewayEvent[]): Shown[] =>
  events.filter(isRunEvent).map((event) => ({
    runId: event.run_id!,
    type: event.type,
    payload: event.payload,
    count: shownCount(event),
    get bytes() {
      return JSON.stringify(event);
    },
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
