/** What must be true in the middle of an operation, at the moment at which it can be seen. */
import { expect } from 'vitest';
import { RpcFailure } from '../../support/gateway.ts';
import { until } from '../../support/until.ts';
import type { Turn } from './conn.ts';
import type { Model } from './model.ts';

/** Whether a session is live. */
export const liveOf = async ({ world }: Model, key: string): Promise<boolean> =>
  (await world.active()).some((row) => row.session_key === key);

/** Waits until nobody has a session any more: no live one, not before its last turn has ended, and then no lease. */
export async function givenBack(model: Model, key: string, runtimeId: string | null, last: Turn): Promise<void> {
  const { world } = model;
  if (runtimeId !== null) {
    const reclaimed = () =>
      world
        .bystander()
        .events('', 'session.reclaimed')
        .filter(({ payload }) => payload.session_id === runtimeId);
    await until(`everybody is told that ${key} was given back`, () => reclaimed().length > 0);
    expect(await liveOf(model, key), `GW6: ${key} was given back and is live`).toBe(false);
    expect(reclaimed().map(({ payload }) => payload)).toEqual([
      { session_id: runtimeId, stored_session_id: key, reason: 'ws_orphan_reap' },
    ]);
  } else {
    await until(`${key} has nothing to do`, async () => {
      const { json } = await world.server().call('GET', `/api/sessions/${key}`);
      return json.session.status === 'idle';
    });
  }
  expectWhole(model, last);
  await until(
    `the lease of ${key} is given back`,
    () => world.rows('SELECT 1 FROM active_sessions WHERE session_id = ?', key).length === 0,
  );
}

/** EV3, GW6: what it said is stored, all of it, when its end can be seen. */
export function expectWhole({ world }: Model, { canary, runId, answer, fate }: Turn): void {
  if (fate !== 'whole') return;
  const said = world.rows<{ content: string }>(
    "SELECT content FROM messages WHERE run_id = ? AND role = 'assistant'",
    runId,
  );
  expect(
    said.map(({ content }) => content),
    `${canary} was cut short`,
  ).toEqual([answer]);
}

/** GW2: a draft does not outlive its server. */
export async function expectUnknown({ world }: Model, key: string): Promise<void> {
  const resumed = world.bystander().call('session.resume', { session_id: key });
  const code = await resumed.then(
    () => 0,
    (error: unknown) => (error instanceof RpcFailure ? error.code : -1),
  );
  expect(code, `GW2: the draft ${key} is gone`).toBe(4007);
}
