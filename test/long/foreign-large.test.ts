/**
 * Homes of other programs of the size that people have: thousands of sessions, a hundred thousand rows, one conversation
 * without end. The first list may take a moment, the next ones nothing, and no stream ever waits for either.
 */
import path from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { describe, expect, it } from 'vitest';
import { openHermesHome, turn } from '../foreign/hermes-home.ts';
import { openWebuiHome } from '../foreign/webui-home.ts';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';

const SESSIONS = 5_000;
const ROWS = 130_000;
const LONG = 20_000;

/** How long something took, and the longest time in which nothing else could happen, in milliseconds. */
async function timed<T>(work: () => Promise<T>) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const start = performance.now();
  const result = await work();
  const took = performance.now() - start;
  delay.disable();
  return { result, took, blocked: delay.max / 1e6 };
}

describe('a large home', () => {
  it('[FH11] 5,000 sessions and 130,000 messages are listed, read and searched without holding anybody up', async () => {
    const folder = await temporaryFolder();
    const hermes = openHermesHome(path.join(folder, 'hermes'));
    const webui = openWebuiHome(path.join(folder, 'webui'));
    hermes.db.exec('BEGIN');
    const each = Math.floor((ROWS - LONG) / SESSIONS / 2);
    for (let n = 0; n < SESSIONS; n += 1) {
      hermes.session(`s${n}`, { title: `Session ${n}`, started_at: 1_700_000_000 + n, message_count: 2 * each });
    }
    hermes.session('long', { title: 'Long', message_count: LONG });
    const insert = hermes.db.prepare('INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)');
    const text = 'some words of an ordinary length that an agent says when it is asked about something '.repeat(4);
    for (let n = 0; n < ROWS; n += 1) {
      const id = n < LONG ? 'long' : `s${n % SESSIONS}`;
      insert.run(id, n % 2 ? 'assistant' : 'user', n === 77_777 ? 'the xylophone' : `${n} ${text}`, 1_700_000_000 + n);
    }
    hermes.db.exec('COMMIT');
    // Half of them have a sidecar too, and as many are in files alone.
    for (let n = 0; n < SESSIONS; n += 1) {
      webui.save(n % 2 ? `s${n}` : `f${n}`, turn(`question ${n}`, `answer ${n}`), { title: `File ${n}` });
    }
    webui.index();

    const server = await startTestServer({
      config: `foreign:\n  state_db: ${hermes.file}\n  sessions_dir: ${webui.sessions}\n`,
    });
    const list = () => server.call('GET', '/api/sessions?limit=50');
    const first = await timed(list);
    expect(first.result.json.total).toBe(SESSIONS + SESSIONS / 2 + 1);
    const again = await timed(async () => {
      for (let n = 0; n < 20; n += 1) await list();
    });
    const read = await timed(() => server.messages('long'));
    expect(read.result).toHaveLength(LONG);
    const reread = await timed(() => server.call('GET', '/api/sessions/long/messages?limit=50'));
    hermes.rows('long', turn('at the end', 'of it', 1_800_000_000));
    const grown = await timed(() => server.call('GET', '/api/sessions/long/messages?limit=50'));
    expect(grown.result.json.messages.at(-1).content).toBe('of it');
    const found = await timed(() => server.call('GET', '/api/search?q=xylophone'));
    expect(found.result.json.hits).toHaveLength(1);
    hermes.db.prepare("INSERT INTO state_meta VALUES ('fts_rebuild_progress', '5')").run();
    const scanned = await timed(() => server.call('GET', '/api/search?q=xylophone'));
    expect(scanned.result.json.hits).toHaveLength(1);
    const report = { first, again, read, reread, grown, found, scanned };
    const shown = Object.entries(report).map(([name, { took, blocked }]) => [
      name,
      Math.round(took),
      Math.round(blocked),
    ]);
    process.stdout.write(`took and blocked (ms): ${JSON.stringify(shown)}\n`);
    // What has not changed is not read again: each of twenty lists costs far less than the first one did.
    expect(again.took / 20).toBeLessThan(first.took / 2);
    expect(reread.took).toBeLessThan(read.took / 2);
    hermes.close();
  });
});
