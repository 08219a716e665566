/** The sidecar lost, old or damaged: what another store still knows comes back at the first read, and stays. */

import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { filesOf } from '../support/child-server.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';

/** A home with a session of two turns, its server stopped; and a copy of the sidecar as it was after the first. */
async function homeWithTwoTurns() {
  const overrides = { runner: createEchoRunner().runner };
  const server = await startTestServer({ overrides });
  const sessionId = await server.session({ title: 'Kept' });
  const sidecar = path.join(server.home, 'sessions', `${sessionId}.json`);
  const old = path.join(server.home, 'old.json');
  await server.ask(sessionId, 'one');
  await copyFile(sidecar, old);
  await server.ask(sessionId, 'two');
  const rows = await server.messages(sessionId);
  await server.close();
  const open = () => startTestServer({ home: server.home, overrides });
  return { home: server.home, sessionId, sidecar, old, rows, open };
}

describe('a sidecar that is not what it should be', () => {
  it('[RC2][RE1] missing: it is rebuilt from the state DB, and the second read changes no byte', async () => {
    const { home, sessionId, sidecar, rows, open } = await homeWithTwoTurns();
    await rm(sidecar);
    const server = await open();
    expect(await server.messages(sessionId)).toEqual(rows);
    const files = await filesOf(home);
    expect(files.has(`${sessionId}.json`)).toBe(true);
    expect(await server.messages(sessionId)).toEqual(rows);
    expect(await filesOf(home)).toEqual(files);
  });

  it('[RC2] older: what it lacks is added behind what it has', async () => {
    const { sessionId, sidecar, old, rows, open } = await homeWithTwoTurns();
    await copyFile(old, sidecar);
    const server = await open();
    expect(await server.messages(sessionId)).toEqual(rows);
    expect(JSON.parse(await readFile(sidecar, 'utf8')).messages).toEqual(rows);
  });

  it.each(['', '{"session_id": "x", "mess', '[]', '{}', 'null', '\0\0\0\0'])(
    '[RE1] damaged (%j): it is moved aside, never deleted, and rebuilt',
    async (damage) => {
      const { home, sessionId, sidecar, rows, open } = await homeWithTwoTurns();
      await writeFile(sidecar, damage);
      const server = await open();
      expect(await server.messages(sessionId)).toEqual(rows);
      const aside = (await readdir(path.join(home, 'sessions'))).filter((name) => name.includes('.damaged-'));
      expect(aside).toHaveLength(1);
      expect(await readFile(path.join(home, 'sessions', aside[0]!), 'utf8')).toBe(damage);
      expect(JSON.parse(await readFile(sidecar, 'utf8')).messages).toEqual(rows);
      const { session } = (await server.call('GET', `/api/sessions/${sessionId}`)).json;
      expect(session.flags).toContain('damaged_sidecar');
      await server.ask(sessionId, 'three');
      expect(await server.messages(sessionId)).toHaveLength(6);
    },
  );

  it('[SC3][RE1] damaged in one row: a copy is kept, and every other row, also one that no other store has', async () => {
    const { home, sessionId, sidecar, rows, open } = await homeWithTwoTurns();
    const found = JSON.parse(await readFile(sidecar, 'utf8'));
    const note = { id: 'note', role: 'assistant', content: 'known here alone', timestamp: 1 };
    const damaged = JSON.stringify({ ...found, messages: [rows[0], 'no row', note, ...rows.slice(1)] }, null, 2);
    await writeFile(sidecar, damaged);
    const server = await open();
    expect(await server.messages(sessionId)).toEqual([rows[0], note, ...rows.slice(1)]);
    const aside = (await readdir(path.join(home, 'sessions'))).filter((name) => name.includes('.damaged-'));
    expect(aside).toHaveLength(1);
    expect(await readFile(path.join(home, 'sessions', aside[0]!), 'utf8')).toBe(damaged);
    const { session } = (await server.call('GET', `/api/sessions/${sessionId}`)).json;
    expect(session.flags).toContain('damaged_sidecar');
    const files = await filesOf(home);
    expect(await server.messages(sessionId)).toHaveLength(5);
    expect(await filesOf(home)).toEqual(files);
    await server.ask(sessionId, 'three');
    expect(await server.messages(sessionId)).toHaveLength(7);
  });

  it('[SC3][RC1] ahead: rows and fields that only it has stay where they are, also after the next turn', async () => {
    const { sessionId, sidecar, rows, open } = await homeWithTwoTurns();
    const found = JSON.parse(await readFile(sidecar, 'utf8'));
    const foreign = {
      id: 'from-elsewhere',
      role: 'assistant',
      content: 'by another program',
      timestamp: 1,
      mood: 'fine',
    };
    const messages = [rows[0], foreign, ...rows.slice(1)];
    const { messages: _old, tool_calls, ...header } = found;
    const changed = { ...header, personality: 'calm', messages, tool_calls, anchor_activity_scenes: { a: 1 } };
    await writeFile(sidecar, JSON.stringify(changed, null, 2));
    const server = await open();
    expect(await server.messages(sessionId)).toEqual(messages);
    await server.ask(sessionId, 'three');
    const after = JSON.parse(await readFile(sidecar, 'utf8'));
    expect(after.messages.slice(0, 5)).toEqual(messages);
    expect(after.messages).toHaveLength(7);
    expect(after).toMatchObject({ personality: 'calm', anchor_activity_scenes: { a: 1 }, message_count: 7 });
  });

  it('[RC2] alone: without the rows of the state DB it still tells the conversation', async () => {
    const { home, sessionId, rows, open } = await homeWithTwoTurns();
    const db = new Database(path.join(home, 'state.db'));
    db.prepare('DELETE FROM messages').run();
    db.close();
    const server = await open();
    expect(await server.messages(sessionId)).toEqual(rows);
  });

  it('[DB3] of a deleted session: files that a crash left are removed, and never bring it back', async () => {
    const { home, sessionId, sidecar, old, open } = await homeWithTwoTurns();
    const first = await open();
    expect((await first.call('DELETE', `/api/sessions/${sessionId}`)).status).toBe(204);
    await first.close();
    await copyFile(old, sidecar);
    const db = new Database(path.join(home, 'state.db'));
    db.prepare('UPDATE session_tombstones SET files_removed = 0').run();
    db.close();
    const second = await open();
    expect((await second.call('GET', `/api/sessions/${sessionId}`)).status).toBe(404);
    await expect.poll(() => readdir(path.join(home, 'sessions'))).not.toContain(`${sessionId}.json`);
  });
});
