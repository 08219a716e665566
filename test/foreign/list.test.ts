/** Two lists as one: whatever stands in either, pages go through both without gap or repeat, in one order, with one total. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { importPlaces } from '../../server/foreign/refusal.ts';
import { temporaryFolder } from '../support/home.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { startTestServer } from '../support/test-server.ts';
import { openHermesHome } from './hermes-home.ts';

describe('the list of both', () => {
  it('[FH1] pages have no gap and no repeat, in any size, with equal times, pins and imported sessions', async () => {
    const seed = testSeed();
    const below = (n: number) => Math.floor(next() * n);
    const next = seededRandom(seed);
    const hermes = openHermesHome(path.join(await temporaryFolder(), 'hermes'));
    const server = await startTestServer({ config: `foreign: {state_db: ${hermes.file}}` });
    const own = new Database(path.join(server.home, 'state.db'), { timeout: 2000 });
    const insert = own.prepare(
      `INSERT INTO sessions (id, source, title, started_at, updated_at, last_activity_at, pinned, archived)
       VALUES (?, 'turnkeep', ?, 1, 1, ?, ?, ?)`,
    );
    const wanted: [pinned: number, activity: number, id: string][] = [];
    for (let n = 0; n < 120; n += 1) {
      const [id, at] = [`s${below(400)}`, below(12)];
      const [pinned, archived] = [below(5) === 0 ? 1 : 0, below(6) === 0 ? 1 : 0];
      const isOurs = below(2) === 0;
      const exists = own.prepare('SELECT 1 FROM sessions WHERE id = ?').get(id);
      const theirs = hermes.db.prepare('SELECT 1 FROM sessions WHERE id = ?').get(id);
      if (exists || (theirs && !isOurs)) continue;
      if (isOurs) insert.run(id, `Ours ${n}`, at, pinned, archived);
      else hermes.session(id, { title: `Theirs ${n}`, started_at: at, pinned, archived });
      const before = wanted.findIndex((one) => one[2] === id);
      if (before >= 0) wanted.splice(before, 1); // Ours, which hides theirs.
      if (archived === 0) wanted.push([pinned, at, id]);
    }
    wanted.sort((a, b) => b[0] - a[0] || b[1] - a[1] || (a[2] < b[2] ? 1 : -1));
    for (const limit of [1, 2, 3, 7, 50, 1000]) {
      const seen: string[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const { json } = await server.call('GET', `/api/sessions?limit=${limit}${cursor && `&cursor=${cursor}`}`);
        expect(json.total).toBe(wanted.length);
        expect(json.sessions.length).toBeLessThanOrEqual(limit);
        seen.push(...json.sessions.map((one: { session_id: string }) => one.session_id));
        cursor = json.next_cursor;
      }
      expect(seen, `limit ${limit}, seed ${seed}`).toEqual(wanted.map(([, , id]) => id));
    }
    own.close();
    hermes.close();
  });
});

describe('the way to import', () => {
  it.each([
    [{ state_db: '/h/state.db' }, ['/h']],
    [{ sessions_dir: '/w/sessions' }, ['/w']],
    [{ state_db: '/h/state.db', sessions_dir: '/h/webui/sessions' }, ['/h']],
    [{ state_db: '/h/state.db', sessions_dir: '/h/sessions' }, ['/h']],
    [{ state_db: '/h/state.db', sessions_dir: '/w/sessions' }, ['/h', '/w']],
    [{ state_db: '/h/copy.db', sessions_dir: '/w/chats' }, ['/h/copy.db', '/w/chats']],
  ])('[FH8] names all of what is configured: %j', (places, expected) => {
    expect(importPlaces(places)).toEqual(expected);
  });
});
