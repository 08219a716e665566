/**
 * Files of a home are damaged in every way that a disk or a person knows: the server starts, shows every session with all that
 * any store has of it, moves aside what is damaged, and the second start changes nothing.
 */
import { appendFile, chmod, cp, mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { everythingIn, journalOf, type Kept, listed, sharedHome, sidecarOf, start } from './damaged-homes.ts';

const cutTo = (share: number) => async (file: string) => {
  const { length } = await readFile(file);
  await truncate(file, Math.floor(length * share));
};
const text = (content: string) => (file: string) => writeFile(file, content);
const folderInPlace = async (file: string) => {
  await rm(file);
  await mkdir(path.join(file, 'within'), { recursive: true });
};
const change = (edit: (text: string) => string) => async (file: string) =>
  writeFile(file, edit(await readFile(file, 'utf8')));

/** What may become of any file that somebody reads; each on a session of its own. */
const SIDECARS: [what: string, damage: (file: string, home: Kept) => unknown][] = [
  ['missing', (file) => rm(file)],
  ['empty', text('')],
  ['blank', text(' \n')],
  ['zeros', (file) => writeFile(file, Buffer.alloc(3000))],
  ...[0.03, 0.2, 0.5, 0.8, 0.97].map((share): [string, (file: string) => unknown] => [`cut at ${share}`, cutTo(share)]),
  ['cut by one byte', async (file) => truncate(file, (await readFile(file)).length - 3)],
  ['another shape', text('{"session_id": 7, "messages": {}}')],
  ['a list', text('[1, 2]')],
  ['rows that are none', change((all) => all.replace('"messages": [', '"messages": [7, null, "x", '))],
  ['of another session', async (file, home) => cp(sidecarOf(home, 0), file)],
  ['a folder', folderInPlace],
  ['no text', (file) => writeFile(file, Buffer.from([0xff, 0xfe, 0x00, 0x80]))],
  ['bytes behind its end', (file) => appendFile(file, '{"and": "more"}')],
];

const JOURNALS: [what: string, damage: (file: string) => unknown][] = [
  ['missing', (file) => rm(file)],
  ['empty', text('')],
  ...[0.02, 0.3, 0.6, 0.99].map((share): [string, (file: string) => unknown] => [`cut at ${share}`, cutTo(share)]),
  ['broken in the middle', change((all) => all.replace('\n', '\n{"broken\n'))],
  ['zeros', (file) => writeFile(file, Buffer.alloc(3000))],
  ['a folder', folderInPlace],
  [
    'the whole folder is a file',
    async (file) => {
      await rm(path.dirname(file), { recursive: true });
      await writeFile(path.dirname(file), 'no folder');
    },
  ],
];

const home24 = sharedHome(SIDECARS.length + 1);
const home11 = sharedHome(JOURNALS.length + 1);
const home2 = sharedHome(2);

/** Starts twice: each time every session is there as it was, and the second time nothing changes. @returns the log of the first */
async function startTwice(home: Kept) {
  let after: Map<string, string> | null = null;
  const logs = [];
  for (let round = 0; round < 2; round += 1) {
    const server = await start(home.home);
    expect([...(await listed(server, home.ids.length))].sort()).toEqual(
      home.ids.map((id, n) => [id, `Title ${n}`]).sort(),
    );
    for (const id of home.ids) expect(await server.messages(id), id).toEqual(home.rows.get(id));
    if (round === 0) logs.push(...server.logs);
    await server.close();
    const found = await everythingIn(home.home);
    if (after) expect(found).toEqual(after);
    after = found;
  }
  return logs;
}

describe('sidecars', () => {
  it('[RE6][RE1] damaged in every way: each is flagged, moved aside byte for byte, and made anew', async () => {
    const home = await home24();
    const damaged = new Map<string, Buffer>();
    for (const [n, [, damage]] of SIDECARS.entries()) {
      await damage(sidecarOf(home, n + 1), home);
      const bytes = await readFile(sidecarOf(home, n + 1)).catch(() => null);
      if (bytes) damaged.set(home.ids[n + 1]!, bytes);
    }
    await startTwice(home);
    const names = await readdir(home.file('sessions'));
    const server = await start(home.home);
    for (const [n, [what]] of SIDECARS.entries()) {
      const id = home.ids[n + 1]!;
      const aside = names.filter((name) => name.startsWith(`${id}.json.damaged-`));
      expect(aside, what).toHaveLength(what === 'missing' ? 0 : 1);
      const bytes = damaged.get(id);
      if (bytes) expect(await readFile(home.file('sessions', aside[0]!)), what).toEqual(bytes);
      expect(JSON.parse(await readFile(sidecarOf(home, n + 1), 'utf8')).messages, what).toEqual(home.rows.get(id));
      const { flags } = (await server.call('GET', `/api/sessions/${id}`)).json.session;
      expect(flags, what).toEqual(what === 'missing' ? [] : ['damaged_sidecar']);
    }
    // Deleted is deleted, with all that was put aside of it.
    for (const id of home.ids) expect((await server.call('DELETE', `/api/sessions/${id}`)).status).toBe(204);
    expect(await readdir(home.file('sessions'))).toEqual(['_run_journal']);
  });

  it('[RE6] damaged while the state DB is lost too: the sound ones are listed, the others stay as they are', async () => {
    const home = await home2();
    await rm(home.file('state.db'));
    await writeFile(sidecarOf(home, 0), '{"session_id": "torn');
    const server = await start(home.home);
    expect([...(await listed(server, 1)).keys()]).toEqual([home.ids[1]]);
    expect(await server.messages(home.ids[1]!)).toEqual(home.rows.get(home.ids[1]!));
    expect(await readFile(sidecarOf(home, 0), 'utf8')).toBe('{"session_id": "torn');
    await until('it is told', () => server.logs.find((line) => line.session_id === home.ids[0] && line.level >= 40));
  });
});

describe('journals of turns that ended', () => {
  it('[RE6][RE1] damaged in every way cost no conversation anything', async () => {
    const home = await home11();
    for (const [n, [, damage]] of JOURNALS.entries()) await damage(journalOf(home, n + 1));
    await startTwice(home);
    const server = await start(home.home);
    for (const id of home.ids) await server.ask(id, 'and on');
  });
});

describe('what else stands in a home', () => {
  const DAMAGES: [what: string, damage: (home: Kept) => unknown][] = [
    ['all sidecars are gone', (h) => rm(h.file('sessions'), { recursive: true })],
    [
      'the folder of sidecars is a file',
      async (h) => {
        await rm(h.file('sessions'), { recursive: true });
        await writeFile(h.file('sessions'), 'no folder');
      },
    ],
    [
      'the folder of journals is a file',
      async (h) => {
        await rm(h.file('sessions', '_run_journal'), { recursive: true });
        await writeFile(h.file('sessions', '_run_journal'), 'no folder');
      },
    ],
    ['attachments is a file', (h) => writeFile(h.file('attachments'), 'no folder')],
    [
      'attachments of a session are a file',
      async (h) => {
        await mkdir(h.file('attachments'));
        await writeFile(h.file('attachments', h.ids[0]!), 'no folder');
      },
    ],
    [
      'strange names among the sidecars',
      async (h) => {
        for (const name of ['a b.json', '..json', 'x'.repeat(200), '.json', '_index.json', 'é\n.json']) {
          await writeFile(h.file('sessions', name), '{');
        }
        await mkdir(h.file('sessions', '20260101_000000_abcdef.json'));
        await writeFile(h.file('sessions', `${h.ids[0]}.json.tmp.1.1`), '{');
      },
    ],
    [
      'backups and copies are files',
      async (h) => {
        await writeFile(h.file('backups'), 'no folder');
        await writeFile(h.file('doctor-20260101T000000Z'), 'no folder');
      },
    ],
    ['everything may be read by all', (h) => chmod(h.home, 0o777)],
  ];

  it.each(DAMAGES)(
    '[RE6][RE1] %s: the server starts with every session, and the second start changes nothing',
    async (_what, damage) => {
      const home = await home2();
      await damage(home);
      await startTwice(home);
      const server = await start(home.home);
      await server.ask(home.ids[0]!, 'and on');
      expect(await server.messages(home.ids[0]!)).toHaveLength(6);
    },
  );
});
