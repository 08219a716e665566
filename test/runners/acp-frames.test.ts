/** The lines between an agent and us: what is passed on, and how much may wait for an agent that takes no answers. */
import type { AnyMessage } from '@agentclientprotocol/sdk';
import { expect, it } from 'vitest';
import { createFrames } from '../../server/runners/acp/frames.ts';
import { until } from '../support/until.ts';

/** Frames, what they pass on, and an agent that takes an answer whenever the test says so. */
function frames() {
  const passed: AnyMessage[] = [];
  const sent: ((isTaken: boolean) => void)[] = [];
  const made = createFrames({
    send: () => new Promise((resolve) => sent.push(resolve)),
    onUpdate: () => {},
    onAnswer: () => {},
    onNoise: () => {},
  });
  const writer = made.stream.writable.getWriter();
  const read = async (): Promise<void> => {
    for await (const message of made.stream.readable) passed.push(message);
  };
  void read();
  return {
    ...made,
    passed,
    ask: (id: unknown, method: string, more = {}) =>
      made.receive(JSON.stringify({ jsonrpc: '2.0', id, method, params: { path: 'a', ...more } })),
    /** We answer; resolves when the agent has taken that. */
    async answer(id: string | number, isTaken = true) {
      const written = writer.write({ jsonrpc: '2.0', id, result: {} });
      await until('it is sent', () => sent.length > 0);
      sent.shift()!(isTaken);
      await written.catch(() => {});
    },
  };
}

const READ = 'fs/read_text_file';
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('[AC6] of what has large answers a few are done at a time, until the agent takes them; the rest is passed on', async () => {
  const { ask, answer, passed } = frames();
  for (let n = 0; n < 200; n += 1) ask(n, READ);
  ask('q', 'session/request_permission');
  await settled();
  expect(passed.map((message) => 'id' in message && message.id)).toEqual([0, 1, 2, 3, 'q']);
  await answer('q');
  await answer(2);
  await answer(0);
  await settled();
  expect(passed.slice(5)).toMatchObject([{ id: 4 }, { id: 5 }]);
  for (let n = 0; n < 200; n += 1) if (n !== 0 && n !== 2) await answer(n);
  await settled();
  expect(passed).toHaveLength(201);
});

it('[AC6] ids that come twice are counted twice', async () => {
  const { ask, answer, passed } = frames();
  for (let n = 0; n < 6; n += 1) ask(0, READ);
  await settled();
  expect(passed).toHaveLength(4);
  for (let n = 0; n < 6; n += 1) await answer(0);
  await settled();
  expect(passed).toHaveLength(6);
});

it.each([
  ['requests', 4000, {}],
  ['bytes of requests', 2, { content: 'x'.repeat(16 * 1024 * 1024) }],
])('[AC6] with too many %s unanswered no more is read', async (_, count, more) => {
  const { ask, answer, room } = frames();
  for (let n = 0; n < count - 1; n += 1) ask(n, 'fs/write_text_file', more);
  expect(room()).toBeNull();
  ask('last', 'fs/write_text_file', more);
  let isFree = false;
  const waits = room()!.then(() => {
    isFree = true;
  });
  await settled();
  expect(isFree).toBe(false);
  await answer('last');
  await waits;
  expect(room()).toBeNull();
});

it('[AC6] nobody waits for an agent that is gone, or takes nothing any more', async () => {
  for (const go of ['end', 'send'] as const) {
    const { ask, answer, room, end } = frames();
    for (let n = 0; n < 4000; n += 1) ask(n, 'x/y');
    const waits = room();
    expect(waits).not.toBeNull();
    if (go === 'end') end();
    else await answer(0, false);
    await waits;
    expect(room()).toBeNull();
  }
});
