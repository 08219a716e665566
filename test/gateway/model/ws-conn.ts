/** A client of the gateway: one WebSocket. What it is sent is sorted by live session, attached to or not. */
import { connectGateway, RpcFailure } from '../../support/gateway.ts';
import type { Conn, ModelSession } from './conn.ts';
import { gatewayFaults, type Line, type Shown, shownOf } from './line.ts';
import type { World } from './world.ts';

interface WsLine extends Line {
  readonly runtimeId: string;
  /** Number of frames when it asked to be attached. */
  readonly from: number;
  isEnded: boolean;
}

export async function connectWs(world: World, name: string): Promise<Conn> {
  const lines: WsLine[] = [];
  const shown = new Map<string, { at: number; events: Shown[] }>();
  const unpulled: string[] = [];
  const client = await connectGateway(world.server().url, {
    name,
    onEvent(event, at) {
      if (event.session_id === '') return;
      const of = shown.get(event.session_id) ?? { at, events: [] };
      shown.set(event.session_id, of);
      of.events.push(shownOf(event));
      if (event.type === 'message.complete') world.sawEnd(event);
    },
  });
  const isOpen = (): boolean => client.closed() === null;
  const line = (key: string): WsLine | null => lines.find((one) => one.key === key && one.isOpen()) ?? null;
  const runtimeOf = (key: string): string => line(key)!.runtimeId;

  /** @param base the number of the last event that it is not sent */
  function add(
    key: string,
    runtimeId: string,
    { from, base, endedBefore, begun }: Pick<WsLine, 'from' | 'endedBefore' | 'begun'> & { base: number },
  ): WsLine {
    const events = (): readonly Shown[] => shown.get(runtimeId)?.events ?? [];
    const one: WsLine = {
      name: `${name} of ${runtimeId}`,
      key,
      runtimeId,
      from,
      endedBefore,
      begun,
      isEnded: false,
      isOpen: () => isOpen() && !one.isEnded,
      shown: events,
      faults: () => gatewayFaults(events(), base),
    };
    lines.push(one);
    return one;
  }

  /** GW3: what a dropped connection has missed can be pulled, whole. */
  async function pull(before: Line, runtimeId: string, latest: number): Promise<void> {
    const last = before.shown().at(-1)?.seq ?? null;
    if (last === null) return;
    const missed = await client.call('session.events.since', { session_id: runtimeId, last_seen: last });
    const numbers: number[] = missed.events.map((event: { seq: number }) => event.seq);
    const isWhole = numbers.every((seq, at) => seq === last + 1 + at) && last + numbers.length === missed.latest_seq;
    if (missed.truncated || !isWhole || missed.latest_seq < latest) {
      unpulled.push(`GW3: ${numbers} were missed after ${last}, and ${missed.latest_seq} is the last`);
    }
  }

  return {
    name,
    kind: 'ws',
    lines,
    isOpen,
    line,

    async create() {
      const from = client.frames.length;
      const made = await client.call('session.create', { cols: 100, source: 'desktop' });
      add(made.stored_session_id, made.session_id, {
        from,
        base: made.latest_seq,
        endedBefore: new Set(),
        begun: null,
      });
      return { key: made.stored_session_id, turns: [], isStored: false, isGone: false };
    },

    async open({ key, turns }: ModelSession, before) {
      const from = client.frames.length;
      const told = await client.call('session.resume', { session_id: key, cols: 100 });
      const known = line(key);
      if (known && known.runtimeId === told.session_id) return known;
      const ids: string[] = told.messages.map((row: { row_id: string }) => row.row_id);
      const ended = turns.filter(({ runId }) => ids.some((id) => id.startsWith(`${runId}.`) && id !== `${runId}.0`));
      const begun = told.inflight && { runId: told.inflight.run.run_id, text: told.inflight.assistant };
      const endedBefore = new Set(ended.map(({ runId }) => runId));
      if (before && before.runtimeId === told.session_id) await pull(before, told.session_id, told.latest_seq);
      return add(key, told.session_id, { from, base: told.latest_seq, endedBefore, begun: begun ?? null });
    },

    async submit(key, text) {
      const { status, run_id } = await client.call('prompt.submit', { session_id: runtimeOf(key), text });
      return { runId: run_id, begins: status === 'streaming' };
    },

    async interrupt(key) {
      await client.call('session.interrupt', { session_id: runtimeOf(key) });
    },

    async remove(key) {
      const { error } = await client.request('session.delete', { session_id: key });
      if (!error) return null;
      if (error.code !== 4023) throw new RpcFailure('session.delete', error);
      return error.data.code;
    },

    async leave(key) {
      const one = line(key)!;
      const { closed } = await client.call('session.close', { session_id: one.runtimeId });
      if (!closed) throw new Error(`${one.name} was not live any more`);
      one.isEnded = true;
    },

    pause: client.pause,
    resume: client.resume,
    drop: client.drop,

    faults() {
      const strangers = [...shown].filter(([runtimeId, { at }]) => {
        const of = lines.find((one) => one.runtimeId === runtimeId);
        return of === undefined || at < of.from;
      });
      return [...strangers.map(([id]) => `GW5: it was sent events of ${id} and is not attached to it`), ...unpulled];
    },
  };
}
