/** The journal of a turn that died, cut at any byte or broken anywhere: what stands before is kept, and the second start changes nothing. */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { everythingIn, start } from './damaged-homes.ts';

const WORDS = ['one ', 'two ', 'three ', 'four '];

/** A home as a killed server leaves it in the middle of a turn. */
async function killedHome() {
  const agent = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: agent.runner } });
  const id = await server.session({ title: 'Kept' });
  await server.prompt(id, 'count');
  const turn = await agent.turn(0);
  turn.say({ type: 'message.start', payload: {} });
  for (const word of WORDS) turn.text(word);
  const [run = ''] = await readdir(path.join(server.home, 'sessions/_run_journal', id));
  const journal = path.join('sessions/_run_journal', id, run);
  const bytes = await until('all words are in the journal', async () => {
    const found = await readFile(path.join(server.home, journal));
    return found.includes('four') && found.at(-1) === 10 ? found : undefined;
  });
  const killed = await mkdtemp(path.join(tmpdir(), 'turnkeep-damage-'));
  onTestFinished(() => rm(killed, { recursive: true, force: true }));
  await cp(server.home, killed, { recursive: true });
  turn.complete();
  // Of a process that is gone.
  const db = new Database(path.join(killed, 'state.db'));
  db.exec("UPDATE runtime_epochs SET pid = 4194000, process_start = 'x/1', ended_at = NULL");
  db.exec("UPDATE active_sessions SET pid = 4194000, process_start_time = 'x/1'");
  db.close();
  return { killed, id, journal, bytes };
}

/** The words in events that are whole and stand before anything else. */
function wordsIn(bytes: Buffer): string {
  const lines = bytes.toString('utf8').split('\n').slice(0, -1);
  let text = '';
  for (const [n, line] of lines.entries()) {
    try {
      const { seq, type, payload } = JSON.parse(line);
      if (seq !== n + 1) return text;
      if (type === 'message.delta') text += payload.text;
    } catch {
      return text;
    }
  }
  return text;
}

describe('the journal of a turn that died', () => {
  it('[RE6][JO4][RE1] is read up to its damage, which is kept, and the second start changes nothing', async () => {
    const { killed, id, journal, bytes } = await killedHome();
    const ends = [...bytes.keys()].filter((at) => bytes[at] === 10).map((at) => at + 1);
    const second = ends[2]!;
    const cuts = [0, 1, ends[0]! - 1, ends[0]!, ends[1]! + 1, second - 1, second, second + 40, bytes.length - 1];
    const broken = (at: number, patch: string): Buffer =>
      Buffer.concat([bytes.subarray(0, at), Buffer.from(patch), bytes.subarray(at + patch.length)]);
    const variants: [what: string, damage: (file: string) => Promise<unknown>, text: string | null][] = [
      ...cuts.map((at): (typeof variants)[number] => [
        `cut at ${at}`,
        (file) => truncate(file, at),
        wordsIn(bytes.subarray(0, at)),
      ]),
      ...[broken(3, '\0\0\0'), broken(ends[1]! + 5, '"}'), broken(second - 1, ' ')].map(
        (damaged, n): (typeof variants)[number] => [
          `broken ${n}`,
          (file) => writeFile(file, damaged),
          wordsIn(damaged),
        ],
      ),
      ['missing', (file) => rm(file), ''],
      [
        'a folder',
        async (file) => {
          await rm(file);
          await mkdir(path.join(file, 'within'), { recursive: true });
        },
        '',
      ],
    ];
    for (const [what, damage, text] of variants) {
      const home = await mkdtemp(path.join(killed, 'variant-'));
      for (const name of ['state.db', 'sessions'])
        await cp(path.join(killed, name), path.join(home, name), { recursive: true });
      await damage(path.join(home, journal));
      const old = await readFile(path.join(home, journal)).catch(() => null);
      let after: Map<string, string> | null = null;
      for (let round = 0; round < 2; round += 1) {
        const server = await start(home);
        const rows: Message[] = await server.messages(id);
        expect(
          rows.filter((row) => row.role === 'user').map((row) => row.content),
          what,
        ).toEqual(['count']);
        const marker = rows.at(-1)!;
        expect(marker.error?.cause, what).toBe('process_restart');
        const said = rows
          .slice(1, -1)
          .map((row) => row.content)
          .join('');
        expect(said, what).toBe(text);
        expect((await server.call('GET', `/api/sessions/${id}`)).json.session.status, what).toBe('idle');
        await server.close();
        const found = await everythingIn(home);
        if (after) expect(found, what).toEqual(after);
        after = found;
      }
      // Nothing of the old file is lost: what was read stands, and the rest is beside it.
      const names = await readdir(path.dirname(path.join(home, journal)));
      const aside = names.filter((name) => name.includes('.torn-'));
      if (old) {
        const now = await readFile(path.join(home, journal));
        const rest = aside[0]
          ? await readFile(path.join(path.dirname(path.join(home, journal)), aside[0]))
          : Buffer.alloc(0);
        const kept = old.length - rest.length;
        expect(Buffer.concat([now.subarray(0, kept), rest]), what).toEqual(old);
      }
      await rm(home, { recursive: true });
    }
  });
});
