/**
 * Three clients and what they have done, as plainly as it can be said: which session each has before it, what was
 * accepted where and in which order. It moves the real thing one small step at a time (test/gateway/model/operations)
 * and knows what must be true behind each (test/gateway/model/invariants).
 */
import { expect } from 'vitest';
import { until } from '../../support/until.ts';
import type { ClientKind, Conn, ModelSession, Turn } from './conn.ts';
import type { Line } from './line.ts';
import { connectRest } from './rest-conn.ts';
import { openStream, type StreamLine } from './stream-line.ts';
import type { World } from './world.ts';
import { connectWs } from './ws-conn.ts';

/** One client: it may lose its connection and come back. */
export interface Slot {
  readonly name: string;
  readonly kind: ClientKind;
  conn: Conn | null;
  /** The session that it has before it. */
  key: string | null;
}

/** Pieces of an answer, and milliseconds between them: a slow one takes a second and a half. */
const QUICK = { chunks: 2, delay: 0 };
const SLOW = { chunks: 30, delay: 50 };

export interface Model {
  readonly world: World;
  readonly slots: readonly Slot[];
  readonly sessions: Map<string, ModelSession>;
  /** Every connection that there ever was. */
  readonly conns: Conn[];
  /** Readers beside the clients, who joined late and stay. */
  readonly late: StreamLine[];
  /** What was done, and how often. */
  readonly done: Map<string, number>;
  /** How many of its events were looked at, for each line. */
  readonly looked: Map<Line, number>;
  random(): number;
  pick<T>(all: readonly T[]): T;
  /** Counts an operation at the point at which it has had its effect. */
  did(what: string): void;
  lines(): Line[];
  connect(slot: Slot): Promise<Conn>;
  /** Makes a session and has it before it. */
  create(slot: Slot): Promise<ModelSession>;
  /** Attaches to a session and has it before it. @param before what this client had of it until it dropped */
  open(slot: Slot, key: string, before?: Line | null): Promise<Line>;
  /** The session that a client has before it; a new one if it has none. */
  selected(slot: Slot): Promise<ModelSession>;
  /** Sessions that a client can attach to. */
  openable(slot: Slot): ModelSession[];
  /** Sends a prompt to an idle session: it begins at once. */
  submit(slot: Slot, isSlow: boolean): Promise<Turn>;
  /** Sends a prompt behind one that runs: it waits. */
  submitBehind(slot: Slot): Promise<Turn>;
  /** All clients send a prompt to one session at once; which comes first is for the server to say. */
  submitTogether(key: string): Promise<void>;
  /** The client loses its connection without a word; what it had of its session until then. */
  drop(slot: Slot): Promise<Line | null>;
  /** Open lines of gateway clients. */
  attached(key: string): Line[];
  idle(key: string): Promise<void>;
  /** A line has been shown the first piece of an answer. */
  speaks(line: Line, turn: Turn): Promise<void>;
  /** A line has been shown the end of a turn. */
  ends(line: Line, turn: Turn): Promise<void>;
  /** Another reader of a session, with a stream of its own. */
  join(key: string): Promise<StreamLine>;
}

export function createModel(world: World, seed: number, kinds: readonly ClientKind[], random: () => number): Model {
  const slots = kinds.map((kind, at): Slot => ({ name: 'ABC'[at]!, kind, conn: null, key: null }));
  const sessions = new Map<string, ModelSession>();
  /** Runtime ids that were ever told, and the live one of each session. */
  const runtimes = { all: new Set<string>(), of: new Map<string, string>() };
  const conns: Conn[] = [];
  const late: StreamLine[] = [];
  const done = new Map<string, number>();
  let prompts = 0;

  /** GW1: whoever comes to a live session gets the same runtime id; one that was given back never comes again. */
  function noteRuntime({ key, runtimeId }: Line, holders: readonly Line[]): void {
    if (runtimeId === null) return;
    for (const holder of holders) expect(runtimeId, `GW1: two runtimes of ${key}`).toBe(holder.runtimeId);
    if (runtimes.of.get(key) !== runtimeId) {
      expect(runtimes.all.has(runtimeId), `GW1: ${runtimeId} is used again`).toBe(false);
    }
    runtimes.all.add(runtimeId);
    runtimes.of.set(key, runtimeId);
  }

  async function send(slot: Slot, session: ModelSession, isSlow: boolean, begins: boolean | null): Promise<Turn> {
    prompts += 1;
    const canary = `cnry-s${seed}-${String(prompts).padStart(3, '0')}`;
    const { chunks, delay } = isSlow ? SLOW : QUICK;
    const text = `script:chunks=${chunks},delay=${delay},id=${canary}`;
    const sent = await slot.conn!.submit(session.key, text);
    if (begins !== null && sent.begins !== null) {
      expect(sent.begins, `${canary} of ${slot.name} begins at once`).toBe(begins);
    }
    const answer = Array.from({ length: chunks }, (_, n) => `[${canary}:${n}] `).join('');
    const turn: Turn = { canary, key: session.key, runId: sent.runId, isSlow, text, answer, fate: 'whole' };
    session.turns.push(turn);
    session.isStored = true;
    return turn;
  }

  const hasSeen = (line: Line, turn: Turn, type: string): boolean =>
    line.shown().some((event) => event.type === type && event.runId === turn.runId);

  const model: Model = {
    world,
    slots,
    sessions,
    conns,
    late,
    done,
    looked: new Map(),
    random,
    pick: (all) => all[Math.floor(random() * all.length)]!,
    did: (what) => void done.set(what, (done.get(what) ?? 0) + 1),
    lines: () => [...new Set<Line>([...conns.flatMap((conn) => conn.lines), ...late])],

    async connect(slot) {
      const name = `${slot.name}${conns.length}`;
      const conn = slot.kind === 'ws' ? await connectWs(world, name) : connectRest(world, name);
      conns.push(conn);
      slot.conn = conn;
      return conn;
    },

    async create(slot) {
      const conn = slot.conn ?? (await model.connect(slot));
      const session = await conn.create();
      noteRuntime(conn.line(session.key)!, []);
      sessions.set(session.key, session);
      slot.key = session.key;
      return session;
    },

    async open(slot, key, before = null) {
      const conn = slot.conn ?? (await model.connect(slot));
      const holders = model.attached(key);
      const line = await conn.open(sessions.get(key)!, before);
      noteRuntime(line, holders);
      slot.key = key;
      return line;
    },

    async selected(slot) {
      const session = slot.key === null ? undefined : sessions.get(slot.key);
      if (slot.conn && session && !session.isGone && slot.conn.line(session.key)) return session;
      if (session && model.openable(slot).includes(session)) {
        await model.open(slot, session.key);
        return session;
      }
      return model.create(slot);
    },

    openable: (slot) =>
      [...sessions.values()].filter((session) => {
        if (session.isGone) return false;
        return session.isStored || (slot.kind === 'ws' && model.attached(session.key).length > 0);
      }),

    async submit(slot, isSlow) {
      const session = await model.selected(slot);
      await model.idle(session.key);
      return send(slot, session, isSlow, true);
    },

    submitBehind: (slot) => send(slot, sessions.get(slot.key!)!, false, false),

    async submitTogether(key) {
      const session = sessions.get(key)!;
      await Promise.all(slots.map((slot) => send(slot, session, false, null)));
      const order = world
        .rows<{ run_id: string }>('SELECT run_id FROM session_admissions WHERE target_session_id = ? ORDER BY seq', key)
        .map(({ run_id }) => run_id);
      session.turns.sort((a, b) => order.indexOf(a.runId) - order.indexOf(b.runId));
    },

    async drop(slot) {
      const { conn, key } = slot;
      const line = key === null ? null : conn!.line(key);
      slot.conn = null;
      await conn!.drop();
      return line;
    },

    attached: (key) =>
      conns.flatMap((conn) => (conn.kind === 'ws' ? conn.lines : [])).filter((one) => one.key === key && one.isOpen()),

    async idle(key) {
      const last = sessions.get(key)!.turns.at(-1);
      const reader = model
        .lines()
        .find((one) => one.key === key && one.isOpen() && !one.endedBefore.has(last?.runId ?? ''));
      if (last && reader) await model.ends(reader, last);
      await until(`${key} is idle`, async () => {
        const live = (await world.active()).find((row) => row.session_key === key);
        if (live && live.status !== 'idle') return false;
        const { status, json } = await world.server().call('GET', `/api/sessions/${key}`);
        return status === 404 || json.session.status === 'idle';
      });
    },

    speaks: async (line, turn) =>
      void (await until(`${line.name} is shown a piece of ${turn.canary}`, () => hasSeen(line, turn, 'message.delta'))),

    ends: async (line, turn) =>
      void (await until(`${line.name} is shown the end of ${turn.canary}`, () =>
        hasSeen(line, turn, 'message.complete'),
      )),

    async join(key) {
      const line = await openStream(world, `L${late.length}`, sessions.get(key)!);
      late.push(line);
      return line;
    },
  };
  return model;
}
