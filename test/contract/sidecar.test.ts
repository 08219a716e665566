/** Sidecars: reading ours and those of other programs, saving them, and telling what is damaged. */
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { createPaths } from '../../db/files/paths.ts';
import { plainRow } from '../../db/files/sidecar-rows.ts';
import {
  createSidecarStore,
  type Sidecar,
  type SidecarHeader,
  type SidecarRow,
  type SidecarStore,
  toSidecarRow,
} from '../../db/files/sidecar-store.ts';
import type { Message } from '../../server/core/terms.ts';
import { temporaryFolder } from '../support/home.ts';

const SESSION = '20260303_130002_abcdef';
const NOW = 1_772_542_802.5;

const header = (part: Partial<SidecarHeader> = {}): SidecarHeader => ({
  session_id: SESSION,
  active_stream_id: null,
  pending_user_message: null,
  pending_attachments: [],
  pending_started_at: null,
  pending_user_source: null,
  edit_number: 0,
  message_count: 0,
  ...part,
});

const message = (n: number, part: Partial<Message> = {}): Message => ({
  id: `m${n}`,
  role: n % 2 ? 'assistant' : 'user',
  content: `text ${n}`,
  timestamp: 1_000 + n,
  ...part,
});

/** Bytes that look like the place where the transcript begins, in a text. */
const LURE = '",\n  "messages": [\n    {"id": "x"';

async function open(): Promise<{ store: SidecarStore; file: string; put(content: string | Buffer): Promise<void> }> {
  const paths = createPaths(await temporaryFolder());
  await mkdir(paths.sessions);
  const file = paths.sidecar(SESSION);
  return { store: createSidecarStore(paths), file, put: (content) => writeFile(file, content) };
}

/** What is found, every row cut from where it stands. */
async function found(store: SidecarStore): Promise<Sidecar> {
  const read = await store.read(SESSION);
  if (read.kind !== 'found') throw new Error(JSON.stringify(read));
  const { header, rows, tail } = read.sidecar;
  return { header, rows: (rows as readonly SidecarRow[]).map(plainRow), tail };
}

describe('a sidecar', () => {
  it('[SC1] is read as it was saved: header, rows, tail, in a file that indents by two', async () => {
    const { store, file } = await open();
    const rows = [message(0), message(1, { content: `${LURE} \u2028 \u{1F600}`, run_id: 'r', tool_calls: [] })];
    const saved: Sidecar = {
      header: header({ pending_user_message: LURE, pending_attachments: ['x'], title: 'T' }),
      rows: rows.map(toSidecarRow),
      tail: { tool_calls: [{ name: 'search' }], context_messages: [{ role: 'user' }] },
    };
    const identity = await store.save(SESSION, saved);
    expect(await store.identity(SESSION)).toBe(identity);
    expect(await store.read(SESSION)).toMatchObject({ kind: 'found', identity });
    expect(await found(store)).toEqual({ ...saved, header: { ...saved.header, message_count: 2 } });
    const text = await readFile(file, 'utf8');
    const { messages, tool_calls } = JSON.parse(text);
    expect([messages, tool_calls]).toEqual([rows, [{ name: 'search' }]]);
    expect(Object.keys(JSON.parse(text)).slice(-3)).toEqual(['messages', 'tool_calls', 'context_messages']);
    expect(text).toMatch(/^\{\n {2}"session_id": /);
    expect(text.endsWith('\n}\n')).toBe(true);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('[SC1] with any texts in it is read as it was saved, and its header is the same both ways', async () => {
    const { store } = await open();
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constant(LURE), fc.string());
    const property = fc.asyncProperty(
      fc.array(text, { maxLength: 5 }),
      text,
      fc.dictionary(text, fc.jsonValue()),
      async (contents, pending, extra) => {
        const rows = contents.map((content, n) => toSidecarRow(message(n, { content: content.toWellFormed() })));
        const more = Object.fromEntries(
          Object.entries(extra).map(([key, value]) => [`x_${key.toWellFormed()}`, value]),
        );
        const named = header({ ...more, pending_user_message: pending.toWellFormed(), message_count: rows.length });
        await store.save(SESSION, { header: named, rows, tail: { tool_calls: [], more } });
        const sidecar = await found(store);
        expect(sidecar.rows).toEqual(rows);
        expect(JSON.stringify(sidecar.header)).toBe(JSON.stringify(named));
        expect(JSON.stringify(sidecar.tail)).toBe(JSON.stringify({ tool_calls: [], more }));
        expect(await store.readHeader(SESSION)).toEqual(sidecar.header);
      },
    );
    await fc.assert(property, { numRuns: 60 });
  });

  it('[SC1] that is empty or has no tail is a whole file all the same', async () => {
    const { store, file } = await open();
    await store.save(SESSION, { header: header(), rows: [], tail: {} });
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ message_count: 0, messages: [], tool_calls: [] });
    expect((await found(store)).rows).toEqual([]);
    expect(await store.readHeader(SESSION)).toMatchObject({ session_id: SESSION });
  });

  it('[SC1] of another program is read, and every field that we do not know survives read and save', async () => {
    const { store, file, put } = await open();
    const foreign = {
      session_id: SESSION,
      title: 'Theirs',
      nested: { messages: ['not these'], deep: { deeper: [1, { x: null }] } },
      unknown_before: [1.5, 'two'],
      pending_user_message: LURE,
      message_count: 2,
      anchor_scene_index: {},
      messages: [
        { id: 'm0', role: 'user', content: 'hi', timestamp: 1, _private: { a: [1] } },
        { role: 'assistant', id: 'm1', content: [{ type: 'text', text: LURE }], timestamp: 2.25, _turnTps: 3 },
      ],
      tool_calls: [{ name: 'x', args: {} }],
      anchor_activity_scenes: { a: 1 },
      unknown_behind: { session_id: 'of something else' },
    };
    await put(JSON.stringify(foreign, null, 2));
    const sidecar = await found(store);
    expect(await store.readHeader(SESSION)).toEqual(sidecar.header);
    expect(Object.keys(sidecar.header)).not.toContain('messages');
    expect(sidecar.rows.map(({ id, role, runId }) => [id, role, runId])).toEqual([
      ['m0', 'user', null],
      ['m1', 'assistant', null],
    ]);
    await store.save(SESSION, sidecar);
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(foreign);
    expect(Object.keys(JSON.parse(await readFile(file, 'utf8')))).toEqual(Object.keys(foreign));
    await store.save(SESSION, await found(store));
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(foreign);
  });

  it.each([undefined, 1, 4, '\t'])('[SC1] indented by %j is read too, the header as well', async (indent) => {
    const { store, put } = await open();
    const foreign = {
      ...header({ nested: { a: 1, messages: [1], x: { a: 2, messages: [2] } } }),
      messages: [message(0)],
    };
    await put(JSON.stringify(foreign, null, indent));
    expect((await found(store)).rows).toHaveLength(1);
    expect(await store.readHeader(SESSION)).toEqual((await found(store)).header);
  });

  it('[SC1] whose fields are in another order loses none of them and says none of them twice', async () => {
    const { store, file, put } = await open();
    const foreign = {
      tool_calls: [{ name: 'kept' }],
      session_id: SESSION,
      messages: [message(0)],
      message_count: 7,
      title: 'Behind',
    };
    await put(JSON.stringify(foreign, null, 2));
    const sidecar = await found(store);
    await store.save(SESSION, { ...sidecar, rows: [...sidecar.rows, toSidecarRow(message(1))] });
    const text = await readFile(file, 'utf8');
    expect(JSON.parse(text)).toEqual({ ...foreign, messages: [message(0), message(1)], message_count: 2 });
    for (const key of ['message_count', 'tool_calls', 'messages']) expect(text.split(`"${key}":`)).toHaveLength(2);
  });
});

describe('the header of a sidecar', () => {
  it('[SC1] is read without the transcript behind it, wherever that begins', async () => {
    const { store, put } = await open();
    // The first and the last place where its beginning lies on the border of two reads, and some around.
    for (const length of [0, 65_200, ...Array.from({ length: 60 }, (_, n) => 65_250 + n * 5), 200_000]) {
      const named = header({ pending_user_message: LURE + 'x'.repeat(length) });
      // What follows the transcript's first byte is no JSON: whoever parsed it would say so.
      const whole = JSON.stringify({ ...named, messages: [message(0)] }, null, 2);
      const cut = whole.indexOf('"messages": [\n') + '"messages": ['.length;
      await put(Buffer.concat([Buffer.from(whole.slice(0, cut)), Buffer.alloc(100_000, 0xff)]));
      expect(await store.readHeader(SESSION)).toEqual(named);
    }
    expect(await store.read(SESSION)).toMatchObject({ kind: 'damaged' });
  });

  it('[SC1] may be longer than a read, with characters across its borders', async () => {
    const { store } = await open();
    for (const shift of [0, 1, 2, 3]) {
      const text = `${'x'.repeat(shift)}${'\u{1F600}'.repeat(60_000)}${LURE}`;
      await store.save(SESSION, { header: header({ pending_user_message: text }), rows: [], tail: {} });
      expect((await store.readHeader(SESSION))?.pending_user_message).toBe(text);
    }
  });

  it('[SC1] of a large file that is on one line costs no more than the file', async () => {
    const { store, file, put } = await open();
    const messages = Array.from({ length: 2_000 }, (_, n) => message(n, { content: 'word '.repeat(2_000) }));
    await put(JSON.stringify({ ...header(), messages }));
    // However many pieces the file has, each is put to what came before it at most once.
    const concat = vi.spyOn(Buffer, 'concat');
    expect(await store.readHeader(SESSION)).toEqual(header());
    const joined = concat.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0);
    concat.mockRestore();
    expect(joined).toBeGreaterThan(0);
    expect(joined).toBeLessThan(2 * (await stat(file)).size);
  });

  it('[SC1] is nothing where the file is missing, damaged, or of another session', async () => {
    const { store, file, put } = await open();
    expect(await store.readHeader(SESSION)).toBeNull();
    await put('');
    expect(await store.readHeader(SESSION)).toBeNull();
    await put('{"session_id": ');
    expect(await store.readHeader(SESSION)).toBeNull();
    await put(JSON.stringify({ ...header({ session_id: 'another' }), messages: [] }, null, 2));
    expect(await store.readHeader(SESSION)).toBeNull();
    await put(JSON.stringify({ ...header({ session_id: 'another' }), messages: [] }));
    expect(await store.readHeader(SESSION)).toBeNull();
    await rm(file);
    await mkdir(file);
    expect(await store.readHeader(SESSION)).toBeNull();
  });
});

describe('a damaged sidecar', () => {
  it('[SC2] is told from a missing one, with the reason in words', async () => {
    const { store, file, put } = await open();
    expect(await store.read(SESSION)).toEqual({ kind: 'missing' });
    expect(await store.identity(SESSION)).toBeNull();
    const table: [content: string | Buffer, reason: RegExp][] = [
      ['', /empty/],
      [' \n', /empty/],
      ['null', /not a JSON object/],
      ['[]', /not a JSON object/],
      ['"text"', /not a JSON object/],
      ['{}', /no list of messages/],
      [JSON.stringify({ ...header(), messages: {} }), /no list of messages/],
      [JSON.stringify({ ...header(), messages: null }), /no list of messages/],
      [JSON.stringify({ ...header({ session_id: 'another' }), messages: [] }), /of session "another"/],
      [JSON.stringify({ messages: [] }), /of session/],
      [Buffer.alloc(4_096), /not JSON/],
      [Buffer.from([0xff, 0xfe, 0x00]), /not JSON/],
      ['<<<<<<< HEAD', /not JSON/],
    ];
    for (const [content, reason] of table) {
      await put(content);
      expect(await store.read(SESSION), String(content)).toEqual({
        kind: 'damaged',
        reason: expect.stringMatching(reason),
        identity: await store.identity(SESSION),
      });
    }
    await rm(file);
    await mkdir(file);
    const identity = await store.identity(SESSION);
    expect(await store.read(SESSION)).toEqual({ kind: 'damaged', reason: expect.stringMatching(/folder/), identity });
  });

  it.each([null, 'text', 7, [], { id: 'a' }])(
    '[SC3] %j among its rows costs only itself, and a save over it keeps a copy',
    async (bad) => {
      const { store, file, put } = await open();
      const messages = [message(0), bad, message(1)];
      const before = `${JSON.stringify({ ...header(), messages, context_messages: [1] }, null, 2)}`;
      await put(before);
      const read = await store.read(SESSION);
      expect(read).toMatchObject({ kind: 'found', damage: 'row 1 is not a message' });
      const sidecar = await found(store);
      expect(sidecar.rows).toEqual([message(0), message(1)].map(toSidecarRow));
      expect(sidecar.tail).toEqual({ context_messages: [1] });
      expect(await store.saveOver(SESSION, sidecar, 'another file', NOW)).toBeNull();
      expect(await readdir(path.dirname(file))).toEqual([path.basename(file)]);
      const { identity } = read as { identity: string };
      expect(await store.saveOver(SESSION, sidecar, identity, NOW)).not.toBeNull();
      expect(await readFile(`${file}.damaged-1772542802`, 'utf8')).toBe(before);
      expect(await store.read(SESSION)).toMatchObject({ kind: 'found', damage: null });
    },
  );

  it('[SC2] cut at any length is damaged, never a shorter transcript', async () => {
    const { store, file, put } = await open();
    const rows = [message(0, { content: 'ü\u{1F600}' }), message(1)].map(toSidecarRow);
    await store.save(SESSION, { header: header(), rows, tail: { context_messages: [1] } });
    const whole = await readFile(file);
    const end = whole.lastIndexOf('}') + 1;
    for (let length = 0; length < end; length += 1) {
      await put(whole.subarray(0, length));
      expect((await store.read(SESSION)).kind, `cut at ${length}`).toBe('damaged');
      const found = await store.readHeader(SESSION);
      if (found !== null) expect(found).toEqual(header({ message_count: 2 }));
    }
    await put(whole.subarray(0, end));
    expect((await found(store)).rows).toEqual(rows);
  });

  it('[SC2] is moved aside with its bytes, and its place is free', async () => {
    const { store, file, put } = await open();
    await put('half a fi');
    const aside = await store.moveAside(SESSION, NOW);
    expect(path.basename(aside)).toBe(`${SESSION}.json.damaged-1772542802`);
    expect(await readFile(aside, 'utf8')).toBe('half a fi');
    expect(await store.read(SESSION)).toEqual({ kind: 'missing' });
    await mkdir(file);
    expect((await stat(await store.moveAside(SESSION, NOW + 1))).isDirectory()).toBe(true);
  });

  it('[RE1] is moved over nothing that was moved aside before, not even within a second', async () => {
    const { store, file, put } = await open();
    const asides: string[] = [];
    for (const text of ['first', 'second', '']) {
      await put(text);
      asides.push(await store.moveAside(SESSION, NOW));
    }
    await mkdir(file);
    await writeFile(path.join(file, 'inside'), 'a folder');
    asides.push(await store.moveAside(SESSION, NOW));
    await mkdir(file);
    asides.push(await store.moveAside(SESSION, NOW));
    const name = `${SESSION}.json.damaged-1772542802`;
    expect(asides.map((aside) => path.basename(aside))).toEqual([name, ...[1, 2, 3, 4].map((n) => `${name}-${n}`)]);
    expect(await Promise.all(asides.slice(0, 3).map((aside) => readFile(aside, 'utf8')))).toEqual([
      'first',
      'second',
      '',
    ]);
    expect(await readFile(path.join(asides[3]!, 'inside'), 'utf8')).toBe('a folder');
    expect((await readdir(path.dirname(file))).sort()).toEqual(asides.map((aside) => path.basename(aside)).sort());
    // With nothing to move, nothing is left behind.
    await expect(store.moveAside(SESSION, NOW)).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await readdir(path.dirname(file))).toHaveLength(5);
  });
});

describe('a save', () => {
  it('[SC2] that fails leaves the disk as it was', async () => {
    const { store, file } = await open();
    await store.save(SESSION, { header: header({ title: 'old' }), rows: [toSidecarRow(message(0))], tail: {} });
    const before = [await readFile(file, 'utf8'), await store.identity(SESSION)];
    const loop: Record<string, unknown> = {};
    loop.loop = loop;
    await expect(store.save(SESSION, { header: header(), rows: [], tail: { loop } })).rejects.toThrow();
    expect([await readFile(file, 'utf8'), await store.identity(SESSION)]).toEqual(before);
    expect(await readdir(path.dirname(file))).toEqual([path.basename(file)]);
  });

  it('[SC1] changes the identity each time; without one the identity stays', async () => {
    const { store } = await open();
    const seen = new Set<string | null>();
    for (let n = 0; n < 20; n += 1) {
      // The same bytes each time: a reader that has the old file must still see that it was replaced.
      await store.save(SESSION, { header: header(), rows: [], tail: {} });
      seen.add(await store.identity(SESSION));
    }
    expect(seen.size).toBe(20);
    expect(await store.identity(SESSION)).toBe(await store.identity(SESSION));
  });

  it('[SC1] makes the folder where there is none; a removal leaves nothing and may be repeated', async () => {
    const paths = createPaths(path.join(await temporaryFolder(), 'new', 'home'));
    const store = createSidecarStore(paths);
    await store.save(SESSION, { header: header(), rows: [], tail: {} });
    expect((await stat(paths.sessions)).mode & 0o777).toBe(0o700);
    await store.remove(SESSION);
    await store.remove(SESSION);
    expect(await readdir(paths.sessions)).toEqual([]);
  });
});
