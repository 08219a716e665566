/** Contract of the message store's healing: what a transcript that was put together asks of the state DB. */
import { expect, it } from 'vitest';
import type { Healing } from '../../db/stores.ts';
import { type OpenStores, openBench, reply, runId, SESSION } from './stores-bench.ts';

export function healContract(open: OpenStores): void {
  const healing = (part: Partial<Healing> = {}): Healing => ({
    names: [],
    rows: [],
    inactive: [],
    count: 2,
    lastMessageAt: 3_001,
    generation: 1,
    now: 9_000,
    ...part,
  });

  it('[RC2][RE1] adds and takes out rows, counts, and moves the revision', async () => {
    const { stores, session, finish, revision } = await openBench(open);
    await session();
    await finish(1);
    const before = await revision();
    const change = { rows: [reply(2, 1)], inactive: [`${runId(1)}.1`], count: 7, lastMessageAt: 5 };
    expect(await stores.messages.heal(SESSION, healing(change))).toBe('healed');
    expect((await stores.messages.list(SESSION)).map((row) => row.id)).toEqual([`${runId(1)}.0`, `${runId(2)}.1`]);
    expect((await stores.messages.inactive(SESSION)).map((row) => row.id)).toEqual([`${runId(1)}.1`]);
    const healed = await stores.sessions.get(SESSION);
    expect(healed).toMatchObject({
      message_count: 7,
      last_message_at: 5,
      updated_at: 9_000,
      edit_number: 0,
      flags: [],
    });
    expect(await revision()).toBeGreaterThan(before);
  });

  it('[SC3] notes each of its words once', async () => {
    const { stores, session, finish } = await openBench(open);
    await session();
    await finish(1);
    await stores.messages.heal(SESSION, healing({ flags: ['damaged_sidecar', 'recovered'] }));
    await stores.messages.heal(SESSION, healing({ flags: ['recovered'] }));
    expect((await stores.sessions.get(SESSION))!.flags).toEqual(['damaged_sidecar', 'recovered']);
  });

  it('[ED1] notes an edit that the session had not seen', async () => {
    const { stores, session, finish } = await openBench(open);
    await session();
    await finish(1);
    await stores.messages.heal(SESSION, healing({ edit: { number: 3, fence: `${runId(1)}.0` } }));
    expect(await stores.sessions.get(SESSION)).toMatchObject({ edit_number: 3, edit_fence: `${runId(1)}.0` });
  });

  it('[RE2][RE3] writes nothing when a turn was claimed since the transcript was read, or the session is gone', async () => {
    const { stores, session, finish, everything } = await openBench(open);
    const change = healing({ rows: [reply(2, 1)], inactive: [`${runId(1)}.1`], flags: ['x'], generation: 0 });
    expect(await stores.messages.heal(SESSION, change)).toBe('moved');
    await session();
    await finish(1);
    const before = await everything();
    expect(await stores.messages.heal(SESSION, change)).toBe('moved');
    expect(await everything()).toEqual(before);
  });
}
