/**
 * The stores of one session are lost, put back to an older state, cut and written twice, one at a time and in any order,
 * between turns: every read gives the truth, which is what was asked and answered, and the second changes no byte.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { filesOf } from '../support/child-server.ts';
import { createForeignWriter } from '../support/foreign-writer.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';

/** Seeds that failed once. */
const KEPT: number[] = [];

const SAY = ['go', 'yes', 'yes please', 'go', 'a longer prompt that contains go and yes'];

async function playThrough(seed: number): Promise<void> {
  const next = seededRandom(seed);
  const random = { int: (below: number) => Math.floor(next() * below) };
  const steps: string[] = [];
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const sessionId = await server.session({ title: 'Truth' });
  const file = path.join(server.home, 'sessions', `${sessionId}.json`);
  const foreign = createForeignWriter(server.home, sessionId);
  const older: string[] = [];
  let truth: Message[] = [];

  const inDb = (work: (db: Database.Database) => void): void => {
    const db = new Database(path.join(server.home, 'state.db'), { timeout: 2000 });
    work(db);
    db.close();
  };
  const damage: Record<string, () => Promise<void> | void> = {
    'lose the sidecar': () => rm(file, { force: true }),
    'an older sidecar': () => writeFile(file, older[random.int(older.length)]!),
    'cut the sidecar': async () => {
      const text = await readFile(file, 'utf8');
      await writeFile(file, text.slice(0, random.int(text.length)));
    },
    'the sidecar as another program indents it': async () =>
      writeFile(file, JSON.stringify(JSON.parse(await readFile(file, 'utf8')), null, 1 + random.int(4))),
    'lose the last rows of the state DB': () =>
      inDb((db) => {
        const ids = db.prepare('SELECT id FROM messages ORDER BY id').pluck().all();
        db.prepare('DELETE FROM messages WHERE id >= ?').run(ids[random.int(ids.length)]);
      }),
    'lose all rows of the state DB': () => inDb((db) => void db.prepare('DELETE FROM messages').run()),
    'another program replays rows': () => {
      const from = random.int(truth.length);
      const rows = truth.slice(from, from + 2 + random.int(truth.length));
      if (rows.length > 1) foreign.appendRows(rows.map(({ id: _id, run_id: _run, ...row }) => row));
    },
  };

  try {
    for (let step = 0; step < 12; step += 1) {
      if (step < 2 || random.int(3) === 0) {
        const text = SAY[random.int(SAY.length)]!;
        steps.push(`ask ${JSON.stringify(text)}`);
        await server.ask(sessionId, text);
        truth = await server.messages(sessionId);
        older.push(await readFile(file, 'utf8'));
        expect(truth.at(-2)?.content).toBe(text);
      } else {
        const names = Object.keys(damage);
        const name = names[random.int(names.length)]!;
        steps.push(name);
        await damage[name]!();
      }
      expect(await server.messages(sessionId)).toEqual(truth);
      const files = await filesOf(server.home);
      expect(await server.messages(sessionId)).toEqual(truth);
      expect(await filesOf(server.home)).toEqual(files);
    }
  } catch (error) {
    throw new Error(`seed ${seed}, after: ${steps.join('; ')}`, { cause: error });
  } finally {
    await server.close();
  }
}

describe('lost, stale and repeated writes', () => {
  it('[RC1][RC2][RE1] in any order, one store at a time: every read gives the truth', {
    timeout: 120_000,
  }, async () => {
    const first = testSeed();
    for (const seed of [...KEPT, ...Array.from({ length: 12 }, (_, index) => first + index)]) await playThrough(seed);
  });
});
