/** Edits beside what only memory knows: a run that has settled, but whose end nobody was told yet. */
import { expect, it } from 'vitest';
import type { LiveRun } from '../../server/live/live-session.ts';
import { createLiveRegistry } from '../../server/live/registry.ts';
import { createEdits, type EditsParts } from '../../server/sessions/edits.ts';
import { createSessionLock } from '../../server/sessions/session-lock.ts';
import { openBench, SESSION } from '../contract/stores-bench.ts';
import { createMemoryStores } from '../support/memory-stores.ts';

it('[ED1][EV3] a run that still writes its sidecar is not edited under, though its prompt has ended', async () => {
  const stores = createMemoryStores(() => true);
  const bench = await openBench(async () => ({ stores, holder: stores.holder, close: () => {} }));
  await bench.session();
  await bench.finish(1);
  const registry = createLiveRegistry({ newRuntimeId: () => '0000000a', now: () => 1, heartbeatS: 10 });
  const unused = new Proxy({}, { get: (_, name) => () => expect.fail(`${String(name)} was used`) });
  const edits = createEdits({
    stores,
    registry,
    lock: createSessionLock(),
    sessions: { get: async () => ({}) },
    recovery: { heal: async () => {} },
    leases: { releaseIdle: async () => {} },
    transcripts: unused,
    admit: () => expect.fail('a prompt was admitted'),
  } as unknown as EditsParts);
  registry.open(SESSION).run = {} as LiveRun;
  const before = await bench.everything();
  const revision = await bench.revision();
  const busy = expect.objectContaining({ code: 'session_busy' });
  await expect(edits.rewind(SESSION, { turns: 1 }, revision)).rejects.toEqual(busy);
  await expect(edits.clear(SESSION, revision)).rejects.toEqual(busy);
  await expect(edits.retry(SESSION, null, 'owner')).rejects.toEqual(busy);
  expect(await bench.everything()).toEqual(before);
});
