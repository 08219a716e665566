/** The numbered events of live sessions: what is kept for whoever missed some, and what is said to be gone. */
import { expect, it } from 'vitest';
import { createEventWindows } from '../../server/live/event-window.ts';
import { plainLiveEvent } from '../../server/live/live-event.ts';

const LIMITS = { events: 10, bytes: 10_000, sessions: 3, processBytes: 15_000 };
const event = (size = 0) => plainLiveEvent('session.info', 's', { text: 'x'.repeat(size) });
const seqsOf = (events: string[]) => events.map((json) => JSON.parse(json).seq);

it('[GW3] the newest events are kept, never more than the bound, and what is no longer kept is said to be', () => {
  const window = createEventWindows(LIMITS).open('r');
  for (let count = 1; count <= 25; count += 1) {
    window.stamp(event());
    expect(window.since(0).events.length).toBe(Math.min(count, 10));
  }
  expect(window.since(14)).toMatchObject({ latestSeq: 25, truncated: true });
  expect(window.since(15).truncated).toBe(false);
  expect(seqsOf(window.since(15).events)).toEqual([16, 17, 18, 19, 20, 21, 22, 23, 24, 25]);
  expect(window.since(25)).toEqual({ events: [], latestSeq: 25, truncated: false });
  expect(window.since(26)).toEqual({ events: [], latestSeq: 25, truncated: true });
});

it('[GW3] an event that is too large to be kept is counted and said to be gone', () => {
  const windows = createEventWindows(LIMITS);
  const window = windows.open('r');
  window.stamp(event());
  expect(JSON.parse(window.stamp(event(20_000)).json).seq).toBe(2);
  window.stamp(event());
  expect(window.since(1)).toMatchObject({ truncated: true });
  expect(seqsOf(window.since(1).events)).toEqual([3]);
  expect(windows.stats()).toMatchObject({ sessions: 1, events: 1 });
});

it('[GW3] of too many sessions, and of too many bytes, the one that began first loses what it kept, and goes on counting', () => {
  const windows = createEventWindows(LIMITS);
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((id) => windows.open(id));
  for (const window of [a!, b!, c!, d!]) window.stamp(event());
  expect(a!.since(0)).toEqual({ events: [], latestSeq: 1, truncated: true });
  expect(windows.stats().sessions).toBe(3);
  expect(JSON.parse(a!.stamp(event()).json).seq).toBe(2);
  c!.stamp(event(8_000));
  d!.stamp(event(8_000));
  expect(windows.stats().bytes).toBeLessThanOrEqual(LIMITS.processBytes);
  expect(d!.since(1).events).toHaveLength(1);
  for (const window of [a!, b!, c!, d!]) window.close();
  expect(windows.stats()).toEqual({ sessions: 0, events: 0, bytes: 0 });
});
