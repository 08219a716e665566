/** Live sessions of gateway clients by themselves: when they are given back, and what happens when their events end. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Attach } from '../../server/live/attach.ts';
import { createEventWindows } from '../../server/live/event-window.ts';
import { createGatewaySessions, type GatewayClient } from '../../server/live/gateway-sessions.ts';
import { createLiveRegistry } from '../../server/live/registry.ts';
import type { Subscriber } from '../../server/live/subscriber.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const DRAFT = { title: null, model: null, workspace: null, source: 'test' };

function setUp(more: { graceS?: number; idleS?: number; most?: number; attach?: Attach } = {}) {
  let made = 0;
  const next = (digits: number) => () => (made++).toString(16).padStart(digits, '0');
  const working = new Set<string>();
  const released: string[] = [];
  const now = () => Date.now() / 1000;
  const registry = createLiveRegistry({ newRuntimeId: next(8), now, heartbeatS: 10 });
  const sessions = createGatewaySessions({
    registry,
    attach: more.attach ?? (async () => {}),
    windows: createEventWindows(),
    works: (sessionId) => working.has(sessionId),
    releaseLease: async ({ sessionId }) => void released.push(sessionId),
    graceS: more.graceS ?? 0,
    staleS: 600,
    idleS: more.idleS ?? 3600,
    most: more.most ?? 100,
    now,
    newRuntimeId: next(8),
    newIdSuffix: next(6),
    log: { info() {}, warn() {} },
  });
  return { sessions, registry, working, released };
}

function client() {
  const told: string[] = [];
  const closed: string[] = [];
  const subscriber = {
    offer: (events: readonly { json: string }[]) => void told.push(...events.map(({ json }) => json)),
    close: (reason: string) => void closed.push(reason),
    ended: false,
  } as unknown as Subscriber;
  const one: GatewayClient = { subscriber, ask() {} };
  return { one, closed, reasons: () => told.map((json) => JSON.parse(json).payload.reason) };
}

it('[GW6] with a grace of 0 a session that everybody has left is kept until it is too long unused', async () => {
  const { sessions, released } = setUp({ idleS: 600 });
  const { one, reasons } = client();
  sessions.connected(one);
  const kept = await sessions.open('a');
  const attended = await sessions.open('b');
  sessions.join(attended, one);
  await vi.advanceTimersByTimeAsync(590_000);
  expect(sessions.list()).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(sessions.find(kept.runtimeId)).toBeNull();
  expect(sessions.find(attended.runtimeId)).toBe(attended);
  expect(reasons()).toEqual(['idle_timeout']);
  expect(released).toEqual(['a']);
});

it('[GW6] a machine that sleeps shortens no grace', async () => {
  const { sessions } = setUp({ graceS: 20 });
  const session = await sessions.open('a');
  await vi.advanceTimersByTimeAsync(5_000);
  vi.setSystemTime(Date.now() + 3_600_000); // An hour in which no timer ran.
  await vi.advanceTimersByTimeAsync(14_000);
  expect(sessions.find(session.runtimeId)).toBe(session);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sessions.find(session.runtimeId)).toBeNull();
});

it('[GW6] a session whose queue moves is not given back, however long nobody looks', async () => {
  const { sessions, working } = setUp({ idleS: 60, graceS: 5, most: 1 });
  working.add('a');
  const session = await sessions.open('a');
  await vi.advanceTimersByTimeAsync(1_000_000);
  await sessions.open('b'); // There is no room.
  expect(sessions.find(session.runtimeId)).toBe(session);
  working.delete('a');
  await vi.advanceTimersByTimeAsync(6_000);
  expect(sessions.find(session.runtimeId)).toBeNull();
});

it('[GW6] when there are too many, the longest unused that nobody is attached to makes room', async () => {
  const { sessions } = setUp({ most: 3 });
  const { one, reasons } = client();
  sessions.connected(one);
  sessions.join(await sessions.open('attended'), one);
  const open = async (id: string) => {
    await vi.advanceTimersByTimeAsync(1000);
    return sessions.open(id);
  };
  const { runtimeId } = await open('first');
  await open('second');
  await vi.advanceTimersByTimeAsync(1000);
  sessions.get(runtimeId); // Somebody works with it.
  await open('third');
  expect(sessions.list().map((session) => session.sessionId)).toEqual(['attended', 'first', 'third']);
  expect(reasons()).toEqual(['lru_evict']);
});

it('[GW6] a session that ends with its last client does not end while another one is about to join', async () => {
  const { sessions } = setUp({ graceS: 5 });
  const [first, second] = [client(), client()];
  const session = await sessions.create(DRAFT, { closeOnDisconnect: true });
  sessions.join(session, first.one);
  await sessions.keptDuring(session, async () => {
    sessions.disconnected(first.one);
    sessions.join(session, second.one);
  });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(sessions.find(session.runtimeId)).toBe(session);
  sessions.disconnected(second.one);
  expect(sessions.find(session.runtimeId)).toBeNull();
});

it('[GW6] a server that stops gives nothing back any more, and has no timer left', async () => {
  const { sessions, released } = setUp({ graceS: 5 });
  const { one } = client();
  for (const closeOnDisconnect of [true, false]) {
    sessions.join(await sessions.open(`${closeOnDisconnect}`, { closeOnDisconnect }), one);
  }
  sessions.stop();
  sessions.disconnected(one);
  expect(vi.getTimerCount()).toBe(0);
  expect(released).toEqual([]);
});

it('[GW4] when the events of a session cannot be followed any more, its clients are closed so that they come again', async () => {
  let feed: Subscriber | null = null;
  const { sessions } = setUp({
    attach: async ({ subscriber }) => {
      feed = subscriber;
    },
  });
  const { one, closed, reasons } = client();
  sessions.connected(one);
  const session = await sessions.open('a');
  sessions.join(session, one);
  feed!.close('shutdown');
  expect(sessions.find(session.runtimeId)).toBeNull();
  expect([reasons(), closed]).toEqual([['closed'], ['shutdown']]);
});

it('[GW2] a key is good for five minutes', async () => {
  const { sessions } = setUp();
  const session = await sessions.create(DRAFT, { key: 'k' });
  await vi.advanceTimersByTimeAsync(299_000);
  expect(sessions.byKey('k')).toBe(session);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sessions.byKey('k')).toBeNull();
});
