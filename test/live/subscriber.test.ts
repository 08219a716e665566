/** One reader alone: what waits for it while its socket is full, and when it is closed. */
import { describe, expect, it } from 'vitest';
import { type LiveEvent, plainLiveEvent, replayedLiveEvent } from '../../server/live/live-event.ts';
import { createSubscriber, type Sink, type SubscriberLimits } from '../../server/live/subscriber.ts';

const RUN = 'a'.repeat(32);

const delta = (seq: number, text: string, type = 'message.delta'): LiveEvent =>
  replayedLiveEvent('s', RUN, JSON.stringify({ type, session_id: 's', run_id: RUN, seq, payload: { text } }));
const other = (index: number): LiveEvent => plainLiveEvent('session.info', 's', { index });

/** A socket that takes one write and is then full until it is drained by hand. */
function fullSink() {
  const sent: LiveEvent[][] = [];
  const closed: string[] = [];
  let drained: () => void = () => {};
  const sink: Sink = {
    send(events) {
      sent.push([...events]);
      return false;
    },
    drained: () =>
      new Promise((resolve) => {
        drained = resolve;
      }),
    close: (reason) => void closed.push(reason),
  };
  return {
    sink,
    sent,
    closed,
    async drain() {
      drained();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

function stuckReader(limits: Partial<SubscriberLimits>) {
  const socket = fullSink();
  const all = { backlogEvents: 1_000, backlogBytes: 1_000_000, sendDeadlineS: 600, ...limits };
  const subscriber = createSubscriber(socket.sink, all);
  subscriber.offer([other(0)]);
  return { ...socket, subscriber };
}

describe('a reader whose socket is full', () => {
  it('[SU1] may have as many events waiting as its bound says, and is closed by one more', () => {
    const { subscriber, closed } = stuckReader({ backlogEvents: 3 });
    for (let index = 1; index <= 3; index += 1) subscriber.offer([other(index)]);
    expect(closed).toEqual([]);
    subscriber.offer([other(4)]);
    expect([closed, subscriber.ended]).toEqual([['overflow'], true]);
  });

  it('[SU1] may have as many bytes waiting as its bound says, however few events they are', () => {
    const first = delta(1, 'x'.repeat(500));
    const { subscriber, closed } = stuckReader({ backlogBytes: 2 * first.json.length });
    subscriber.offer([first, delta(2, 'x'.repeat(500))]);
    expect(closed).toEqual([]);
    subscriber.offer([delta(3, '')]);
    expect(closed).toEqual(['overflow']);
  });

  it('[SU1] gets neighbouring deltas of one kind as one, named by the last, and all else as it was', async () => {
    const { subscriber, sent, drain } = stuckReader({});
    subscriber.offer([delta(1, 'a'), delta(2, 'b'), delta(3, 'c', 'reasoning.delta')]);
    subscriber.offer([delta(4, 'd', 'reasoning.delta'), other(1), other(2), delta(5, 'e')]);
    await drain();
    expect(sent[1]!.map(({ json }) => JSON.parse(json))).toEqual([
      { type: 'message.delta', session_id: 's', run_id: RUN, seq: 2, first_seq: 1, payload: { text: 'ab' } },
      { type: 'reasoning.delta', session_id: 's', run_id: RUN, seq: 4, first_seq: 3, payload: { text: 'cd' } },
      { type: 'session.info', session_id: 's', payload: { index: 1 } },
      { type: 'session.info', session_id: 's', payload: { index: 2 } },
      { type: 'message.delta', session_id: 's', run_id: RUN, seq: 5, payload: { text: 'e' } },
    ]);
  });

  it('[SU1] gets the output of a tool as one piece, and never that of two tools', async () => {
    const { subscriber, sent, drain } = stuckReader({});
    const output = (seq: number, tool_id: string, text: string): LiveEvent => {
      const envelope = { type: 'tool.output', session_id: 's', run_id: RUN, seq, payload: { tool_id, text } };
      return replayedLiveEvent('s', RUN, JSON.stringify(envelope));
    };
    subscriber.offer([output(1, 'a', '1'), output(2, 'a', '2'), output(3, 'b', '3')]);
    await drain();
    expect(sent[1]!.map(({ json }) => JSON.parse(json))).toMatchObject([
      { seq: 2, first_seq: 1, payload: { tool_id: 'a', text: '12' } },
      { seq: 3, payload: { tool_id: 'b', text: '3' } },
    ]);
  });

  it('[SU1] is closed once, sent nothing afterwards, and frees what hangs on it', async () => {
    const { subscriber, sent, closed, drain } = stuckReader({ backlogEvents: 1 });
    let freed = 0;
    subscriber.onEnd(() => {
      freed += 1;
    });
    subscriber.offer([other(1), other(2), other(3)]);
    await drain();
    subscriber.offer([other(4)]);
    await subscriber.paced([other(5)]);
    subscriber.heartbeat(other(6));
    subscriber.close('shutdown');
    expect([sent.length, closed, freed]).toEqual([1, ['overflow'], 1]);
    subscriber.onEnd(() => {
      freed += 1;
    });
    expect(freed).toBe(2);
  });
});
