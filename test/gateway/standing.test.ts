/** Where a session stands when a client enters it: nothing is answered that the events behind it do not follow. */
import { expect, it } from 'vitest';
import { AppError } from '../../server/errors.ts';
import type { GatewayClient, GatewaySession } from '../../server/live/gateway-sessions.ts';
import { createEnter } from '../../server/live/gateway-standing.ts';
import { createLiveSession } from '../../server/live/live-session.ts';

/** A session whose turn has ended and is put away after so many looks. */
function setUp(looks: number) {
  const live = createLiveSession('s', '00000001');
  const log = { ended: () => true, published: () => 3, fold: { view: () => ({ text: '' }) } };
  live.run = { runId: 'r', log } as never;
  const pauses: number[] = [];
  let reads = 0;
  let isGone = false;
  const client = { subscriber: { ended: false } } as unknown as GatewayClient;
  const session = { sessionId: 's', runtimeId: '00000001', live, draft: null } as unknown as GatewaySession;
  const joined: GatewayClient[] = [];
  const enter = createEnter({
    sessions: {
      get: () => {
        if (isGone) throw new AppError('runtime_not_live');
        return session;
      },
      join: (_session, one) => void joined.push(one),
      keptDuring: (_session, work) => work(),
    },
    async read() {
      reads += 1;
      if (reads > looks) live.run = null;
      return { session: {}, rows: '' };
    },
    look: async () => {},
    pause: async (ms) => void pauses.push(ms),
  });
  Object.assign(session, { isCurrent: () => true, window: { latest: () => 7 } });
  return { enter: () => enter(session, client, true), pauses, joined, client, end: () => (isGone = true) };
}

it('[GW4] while a turn that has ended is not put away, it is waited for, ever less busily', async () => {
  const { enter, pauses, joined, client } = setUp(20);
  expect(await enter()).toMatchObject({ run: null, latestSeq: 7 });
  expect(joined).toEqual([client]);
  expect(pauses.slice(0, 3)).toEqual([2, 4, 8]);
  expect(Math.max(...pauses)).toBe(250);
});

it('[GW4] who waits for a session that is closed meanwhile, or is gone itself, waits no longer', async () => {
  const closed = setUp(Number.POSITIVE_INFINITY);
  closed.end();
  await expect(closed.enter()).rejects.toMatchObject({ code: 'runtime_not_live' });
  const gone = setUp(Number.POSITIVE_INFINITY);
  Object.assign(gone.client.subscriber, { ended: true });
  await expect(gone.enter()).rejects.toMatchObject({ code: 'runtime_not_live' });
  expect(gone.joined).toEqual([]);
});
