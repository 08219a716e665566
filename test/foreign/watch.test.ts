/** A page that has the list open sees what another program does in its own home, without asking for it. */
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ForeignMap } from '../../server/foreign/sources.ts';
import { createForeignWatch } from '../../server/foreign/watch.ts';
import { importFrom } from '../import/homes.ts';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';
import { openHermesHome, turn } from './hermes-home.ts';
import { openWebuiHome } from './webui-home.ts';

describe('readers of the list', () => {
  it('[FH12] are told what is new, what went on and what is gone there, and of imported ones nothing', async () => {
    const folder = await temporaryFolder();
    const hermes = openHermesHome(path.join(folder, 'hermes'));
    const webui = openWebuiHome(path.join(folder, 'webui'));
    for (const id of ['one', 'two', 'taken']) hermes.session(id, { title: id }, turn('q', 'a'));
    const config = `foreign: {state_db: ${hermes.file}, sessions_dir: ${webui.sessions}}`;
    const server = await startTestServer({ config });
    const stream = await server.stream('/api/events');
    const changed = async (id: string) => {
      const event = await stream.next(({ json }) => json.payload?.session_id === id);
      return event.json.payload;
    };
    // What is told to this reader is what changed behind its first look.
    await stream.next(({ json }) => json.payload?.reason === 'connected');
    await server.call('GET', '/api/sessions');

    hermes.session('new', { title: 'New' }, turn('q', 'a'));
    expect(await changed('new')).toMatchObject({ reason: 'created', session: { title: 'New', flags: ['foreign'] } });

    hermes.rows('one', turn('more', 'and more', 1_700_000_100));
    hermes.db.prepare("UPDATE sessions SET message_count = 4 WHERE id = 'one'").run();
    expect(await changed('one')).toMatchObject({ reason: 'changed', session: { message_count: 4 } });

    webui.save('file', turn('q', 'a'), { title: 'A file' });
    expect(await changed('file')).toMatchObject({ reason: 'created', session: { title: 'A file' } });

    hermes.db.exec("DELETE FROM messages WHERE session_id = 'two'; DELETE FROM sessions WHERE id = 'two'");
    expect(await changed('two')).toEqual({ session_id: 'two', reason: 'deleted' });

    // Very much at once is one event.
    for (let n = 0; n < 60; n += 1) hermes.session(`many-${n}`, {}, turn('q', 'a'));
    await stream.next(({ json }) => json.payload?.session_id === null && json.payload.reason === 'changed');

    // What was imported is ours: that it goes on there changes nothing in the list.
    await importFrom(path.dirname(hermes.file), server.home);
    const before = stream.events.length;
    hermes.rows('one', turn('once more', 'and more', 1_700_000_200));
    hermes.db.prepare("UPDATE sessions SET message_count = 6, last_activity_at = 1700000200 WHERE id = 'one'").run();
    await server.call('GET', '/api/sessions');
    webui.save('another', turn('q', 'a'), { title: 'Another file' });
    await changed('another');
    const told = stream.events.slice(before).filter(({ json }) => json.payload?.session_id === 'one');
    expect(told.map(({ json }) => json.payload.session?.flags ?? [])).not.toContainEqual(['foreign']);
    hermes.close();
  });

  it('[FH12] cost nothing when there are none', async () => {
    let [looks, list] = [0, true];
    const map: ForeignMap = { sessions: new Map(), ids: new Set(), listed: [] };
    const watch = createForeignWatch({
      all: async () => {
        looks += 1;
        return map;
      },
      ours: async () => new Set(),
      registry: { read: () => ({ sessions: [], list }), publishList: () => {} },
      log: { warn: () => {} },
    });
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    watch.came();
    watch.came();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(looks).toBe(3);
    list = false;
    await vi.advanceTimersByTimeAsync(60_000);
    expect([looks, vi.getTimerCount()]).toEqual([3, 0]);
    list = true;
    watch.came();
    await vi.advanceTimersByTimeAsync(2_500);
    expect(looks).toBe(5);
    watch.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(looks).toBe(5);
  });
});
