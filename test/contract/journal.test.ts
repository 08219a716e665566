/** Run journals: what is written is read, cut or damaged anywhere it still gives every whole event before. */
import { appendFile, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createJournalStore, type JournalStore, parseJournal } from '../../db/files/journal.ts';
import { createPaths } from '../../db/files/paths.ts';
import {
  envelopeOfLine,
  journalLine,
  type RunEvent,
  type StampedEvent,
  serialiseEnvelope,
} from '../../server/core/events.ts';
import { temporaryFolder } from '../support/home.ts';

const SESSION = '20260303_130002_abcdef';
const RUN = '0123456789abcdef0123456789abcdef';
const NOW = 1_772_542_802.5;

const stamp = (event: RunEvent, seq: number): StampedEvent =>
  ({ ...event, session_id: SESSION, run_id: RUN, seq, created_at: 1_000 + seq / 1_000 }) as StampedEvent;
const lineOf = (event: StampedEvent): string => journalLine(event, serialiseEnvelope(event));

const start: RunEvent = {
  type: 'run.start',
  payload: { admission_id: 'a1', input: 'hé "llo"\n', generation: 1, timestamp: 999.5, model: 'm' },
};
const delta = (text: string): RunEvent => ({ type: 'message.delta', payload: { text } });
const complete = (part: object = {}): RunEvent => ({
  type: 'message.complete',
  payload: {
    text: 'done',
    status: 'complete',
    outcome: 'completed',
    admission_id: 'a1',
    message_id: `${RUN}.1`,
    usage: null,
    ...part,
  },
});

/** Texts that hold what the readers of a line look for. */
const LURES = [
  '"type":"message.complete"',
  `"run_id":"${RUN}","seq":99,`,
  '"terminal":true,"terminal_state":"completed"',
  '{"version":2}',
  'line\nbreak \u2028 \r\n',
  'ü\u{1F600}\uFFFD',
  '',
];

const small: StampedEvent[] = [
  start,
  ...LURES.map(delta),
  {
    type: 'tool.start',
    payload: { tool_id: 't', name: 'x', args: { type: 'a', seq: 3, run_id: RUN }, preview: '"seq":1' },
  } as RunEvent,
  complete(),
].map((event, n) => stamp(event, n + 1));

const textOf = (events: readonly StampedEvent[]): string => events.map((event) => `${lineOf(event)}\n`).join('');

async function open(): Promise<{ store: JournalStore; file: string; put(content: string | Buffer): Promise<void> }> {
  const paths = createPaths(await temporaryFolder());
  const file = paths.journal(SESSION, RUN);
  await mkdir(path.dirname(file), { recursive: true });
  return { store: createJournalStore(paths), file, put: (content) => writeFile(file, content) };
}

async function linesOf(store: JournalStore, after: number, upTo: number): Promise<string[]> {
  const batches = await store.lines(SESSION, RUN, after, upTo);
  if (!batches) throw new Error('there is no journal');
  const lines: string[] = [];
  for await (const batch of batches) {
    expect(batch.length).toBeGreaterThan(0);
    lines.push(...batch);
  }
  return lines;
}

describe('a journal line', () => {
  it('[EV5] holds the exact bytes of the envelope', () => {
    for (const event of small) {
      const envelope = serialiseEnvelope(event);
      const line = journalLine(event, envelope);
      expect(envelopeOfLine(line)).toBe(envelope);
      expect(line).not.toContain('\n');
      const { payload, seq, type, created_at } = event;
      expect(JSON.parse(line)).toEqual({
        version: 2,
        created_at,
        terminal: type === 'message.complete',
        terminal_state: type === 'message.complete' ? 'completed' : null,
        type,
        session_id: SESSION,
        run_id: RUN,
        seq,
        payload,
      });
    }
  });

  it('[EV5] holds the exact bytes of the envelope, whatever the payload is', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...LURES));
    const payload = fc.oneof(
      fc.record({ text }),
      fc.record({ args: fc.jsonValue(), name: text }),
      fc.dictionary(text, fc.oneof(text, fc.jsonValue())),
    );
    const property = fc.property(payload, fc.nat(), (value, seq) => {
      const event = stamp({ type: 'tool.start', payload: value } as unknown as RunEvent, seq);
      const envelope = serialiseEnvelope(event);
      expect(envelopeOfLine(journalLine(event, envelope))).toBe(envelope);
    });
    fc.assert(property);
  });

  it('[JO3] names the end of a run by its state', () => {
    const table: [part: object, state: string][] = [
      [{}, 'completed'],
      [{ status: 'error' }, 'errored'],
      [{ status: 'interrupted' }, 'interrupted-by-user'],
      [{ status: 'interrupted', cause: 'process_restart' }, 'interrupted-by-crash'],
    ];
    for (const [part, state] of table) {
      expect(JSON.parse(lineOf(stamp(complete(part), 2)))).toMatchObject({ terminal: true, terminal_state: state });
    }
  });
});

describe('reading a journal', () => {
  it('[JO1, JO3] gives the events, their lines and the state of the last', async () => {
    const { store, put } = await open();
    await put(textOf(small));
    const read = await store.read(SESSION, RUN);
    expect(read?.records.map((record) => record.event)).toEqual(small);
    expect(read?.records.map((record) => record.line)).toEqual(small.map(lineOf));
    expect(read?.records.map((record) => record.terminalState)).toEqual([
      ...Array(small.length - 1).fill(null),
      'completed',
    ]);
    expect(read).toMatchObject({ rest: 'none', validBytes: Buffer.byteLength(textOf(small)) });
  });

  it('[JO4] a torn last line is not an event: cut at every byte, exactly the whole events before the cut', () => {
    const bytes = Buffer.from(textOf(small));
    const ends = small.map((_, n) => Buffer.byteLength(textOf(small.slice(0, n + 1))));
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const whole = ends.filter((end) => end <= cut);
      const valid = whole.at(-1) ?? 0;
      const { records, validBytes, rest } = parseJournal(bytes.subarray(0, cut), RUN);
      expect([cut, records.length, validBytes, rest]).toEqual([
        cut,
        whole.length,
        valid,
        cut === valid ? 'none' : 'torn',
      ]);
      expect(records.at(-1)?.event).toEqual(small[whole.length - 1]);
    }
  });

  it('[JO4] zeros behind the last line, as a power cut leaves them, are a torn end', () => {
    const bytes = Buffer.from(textOf(small.slice(0, 3)));
    const { records, validBytes, rest } = parseJournal(Buffer.concat([bytes, Buffer.alloc(4_096)]), RUN);
    expect([records.length, validBytes, rest]).toEqual([3, bytes.length, 'torn']);
  });

  it('[JO1, JO4] damage in the middle is told from a torn end, and nothing behind it is an event', () => {
    const lines = small.map(lineOf);
    const bad: [what: string, line: string][] = [
      ['empty', ''],
      ['no JSON', lines[3]!.slice(0, 40)],
      ['no object', '7'],
      ['null', 'null'],
      ['a gap', lines[4]!],
      ['a repeat', lines[2]!],
      ['another run', lines[3]!.replace(`"run_id":"${RUN}"`, `"run_id":"${'f'.repeat(32)}"`)],
      ['no type', lines[3]!.replace('"type":"message.delta",', '')],
      ['a seq that is text', lines[3]!.replace('"seq":4', '"seq":"4"')],
      ['no session', lines[3]!.replace(`"session_id":"${SESSION}",`, '')],
    ];
    const head = `${lines.slice(0, 3).join('\n')}\n`;
    for (const [what, line] of bad) {
      for (const [behind, rest] of [
        [`\n${lines[4]}\n`, 'damaged'],
        [`\n${lines[4]}\n${lines[5]!.slice(0, 9)}`, 'damaged'],
        ['\n', 'torn'],
        ['', line === '' ? 'none' : 'torn'],
      ] as const) {
        const read = parseJournal(Buffer.from(`${head}${line}${behind}`), RUN);
        expect([what, read.records.length, read.validBytes, read.rest]).toEqual([
          what,
          3,
          Buffer.byteLength(head),
          rest,
        ]);
      }
    }
  });

  it('[JO3] nothing behind the terminal line is an event', () => {
    const sealed = [stamp(start, 1), stamp(complete(), 2)];
    for (const [late, rest] of [
      [`${lineOf(stamp(delta('late'), 3))}\n`, 'damaged'],
      [lineOf(stamp(delta('late'), 3)), 'torn'],
      [`${lineOf(stamp(complete(), 3))}\n`, 'damaged'],
    ] as const) {
      const read = parseJournal(Buffer.from(textOf(sealed) + late), RUN);
      expect(read.records.map((record) => record.terminalState)).toEqual([null, 'completed']);
      expect([read.validBytes, read.rest]).toEqual([Buffer.byteLength(textOf(sealed)), rest]);
    }
  });

  it('[JO1] there is none of a run that never began, and an empty one has no event', async () => {
    const { store, put } = await open();
    expect(await store.read(SESSION, RUN)).toBeNull();
    expect(await store.lines(SESSION, RUN, 0, 9)).toBeNull();
    expect(await store.read('20260303_130002_ffffff', RUN)).toBeNull();
    await put('');
    expect(await store.read(SESSION, RUN)).toEqual({ records: [], validBytes: 0, rest: 'none' });
    expect(await linesOf(store, 0, 9)).toEqual([]);
  });
});

describe('the lines of a journal', () => {
  it('[EV5, SU2] are exactly those after a seq up to another, for all pairs', async () => {
    const { store, put } = await open();
    await put(`${textOf(small)}{"version":2,"created_at":1,"ter`);
    const lines = small.map(lineOf);
    for (let after = 0; after <= lines.length + 1; after += 1) {
      for (let upTo = 0; upTo <= lines.length + 1; upTo += 1) {
        expect(await linesOf(store, after, upTo), `(${after}, ${upTo}]`).toEqual(
          lines.slice(after, Math.max(after, upTo)),
        );
      }
    }
  });

  it('[EV5] are whole where the file is read in pieces, with characters across their borders', async () => {
    const { store, put } = await open();
    for (const shift of [0, 1, 2, 3]) {
      const texts = [
        'x'.repeat(shift),
        ...Array.from({ length: 60 }, (_, n) => '\u{1F600}ü'.repeat(700 + n)),
        // Longer than several pieces.
        '\u20AC'.repeat(100_000),
        ...Array.from({ length: 10 }, (_, n) => `after ${n}`),
      ];
      const events = texts.map((text, n) => stamp(delta(text), n + 1));
      const lines = events.map(lineOf);
      await put(textOf(events));
      const all = lines.length;
      for (const [after, upTo] of [
        [0, all],
        [0, 1],
        [all - 1, all],
        [17, 44],
        [60, 62],
        [61, 70],
        [all, all],
      ] as const) {
        expect(await linesOf(store, after, upTo), `(${after}, ${upTo}]`).toEqual(lines.slice(after, upTo));
      }
    }
  });

  it('[SU1] free the file also when the reader goes away in the middle', async () => {
    const { store, put } = await open();
    await put(textOf(Array.from({ length: 3_000 }, (_, n) => stamp(delta('some text '.repeat(20)), n + 1))));
    const opened = async (): Promise<number> => {
      const names = await readdir('/proc/self/fd');
      return names.length;
    };
    const before = await opened();
    for (let n = 0; n < 20; n += 1) {
      const batches = await store.lines(SESSION, RUN, 0, 3_000);
      for await (const batch of batches ?? []) {
        expect(batch.length).toBeGreaterThan(0);
        break;
      }
    }
    expect(await opened()).toBeLessThanOrEqual(before + 1);
  });
});

describe('writing a journal', () => {
  it('[JO1] appends lines to a new file, which must not be there yet', async () => {
    const { store, file } = await open();
    const writer = await store.create(SESSION, RUN);
    await writer.append(textOf(small.slice(0, 1)));
    await writer.append(textOf(small.slice(1)));
    await writer.append('');
    await writer.sync();
    await writer.close();
    expect(await readFile(file, 'utf8')).toBe(textOf(small));
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await expect(store.create(SESSION, RUN)).rejects.toMatchObject({ code: 'EEXIST' });
    expect(await readFile(file, 'utf8')).toBe(textOf(small));
  });

  it('[JO1] writes at the place it knows: what a failed write left is written over', async () => {
    const { store, file } = await open();
    const writer = await store.create(SESSION, RUN);
    await writer.append(textOf(small.slice(0, 2)));
    // Half of a line that the disk took before it was full.
    await appendFile(file, lineOf(small[2]!).slice(0, 30));
    await writer.append(textOf(small.slice(2)));
    await writer.close();
    expect(await readFile(file, 'utf8')).toBe(textOf(small));
  });

  it('[JO3, JO4] is taken up again after a crash: the torn tail goes aside, the terminal line is last', async () => {
    const { store, file } = await open();
    const torn = '{"version":2,"created_at":1002,"terminal":fal';
    // Also one that is longer than what is written in its place.
    for (const [n, rest] of [torn, `${torn}\n${`${lineOf(small[4]!)}\n`.repeat(9)}`, ''].entries()) {
      await writeFile(file, textOf(small.slice(0, 3)) + rest);
      const read = await store.read(SESSION, RUN);
      const { writer } = await store.reopen(SESSION, RUN, read, NOW + n);
      const last = stamp(complete({ status: 'interrupted', cause: 'process_restart' }), 4);
      await writer.append(`${lineOf(last)}\n`);
      await writer.sync();
      await writer.close();
      const again = await store.read(SESSION, RUN);
      expect(again?.rest).toBe('none');
      expect(again?.records.map((record) => record.event)).toEqual([...small.slice(0, 3), last]);
      expect(again?.records.at(-1)?.terminalState).toBe('interrupted-by-crash');
      const aside = `${file}.torn-${Math.floor(NOW + n)}`;
      if (rest === '') expect(await readdir(path.dirname(file))).not.toContain(path.basename(aside));
      else expect(await readFile(aside, 'utf8')).toBe(rest);
    }
  });

  it('[JO4, RE1] is torn twice within a second: each tail is kept in a file of its own', async () => {
    const { store, file } = await open();
    for (const tail of ['one {', 'two {', 'three {']) {
      await writeFile(file, textOf(small.slice(0, 3)) + tail);
      const { writer } = await store.reopen(SESSION, RUN, await store.read(SESSION, RUN), NOW);
      await writer.close();
      expect(await readFile(file, 'utf8')).toBe(textOf(small.slice(0, 3)));
    }
    const name = `${file}.torn-${Math.floor(NOW)}`;
    const tails = await Promise.all([name, `${name}-1`, `${name}-2`].map((aside) => readFile(aside, 'utf8')));
    expect(tails).toEqual(['one {', 'two {', 'three {']);
  });

  it('[JO4] is taken up again after a cut anywhere', async () => {
    const { store, file } = await open();
    const bytes = Buffer.from(textOf(small.slice(0, 3)));
    const ends = [1, 2, 3].map((n) => Buffer.byteLength(textOf(small.slice(0, n))));
    for (let cut = 0; cut <= bytes.length; cut += 11) {
      await writeFile(file, bytes.subarray(0, cut));
      const read = await store.read(SESSION, RUN);
      const whole = ends.filter((end) => end <= cut).length;
      const { writer } = await store.reopen(SESSION, RUN, read, NOW);
      await writer.append(textOf(small.slice(whole)));
      await writer.close();
      expect(await readFile(file, 'utf8'), `cut at ${cut}`).toBe(textOf(small));
    }
  });

  it('[JO1] is made anew where the file is missing', async () => {
    const paths = createPaths(await temporaryFolder());
    const store = createJournalStore(paths);
    const { writer } = await store.reopen(SESSION, RUN, null, NOW);
    await writer.append(textOf(small));
    await writer.close();
    expect((await store.read(SESSION, RUN))?.records).toHaveLength(small.length);
  });

  it('[JO4] may be read while it is written', async () => {
    const { store, file } = await open();
    const writer = await store.create(SESSION, RUN);
    await writer.append(textOf(small.slice(0, 4)));
    expect(await linesOf(store, 1, 4)).toEqual(small.slice(1, 4).map(lineOf));
    await writer.append(textOf(small.slice(4, 5)));
    await truncate(file, (await stat(file)).size - 3);
    expect(await linesOf(store, 1, 5)).toEqual(small.slice(1, 4).map(lineOf));
    await writer.close();
  });

  it('[DB3] is removed alone or with all others of its session; nothing there is no failure', async () => {
    const { store, file } = await open();
    const other = '20260303_130002_ffffff';
    for (const session of [SESSION, other]) await (await store.create(session, RUN)).close();
    await (await store.create(SESSION, 'f'.repeat(32))).close();
    await store.remove(SESSION, RUN);
    await store.remove(SESSION, RUN);
    expect(await readdir(path.dirname(file))).toEqual([`${'f'.repeat(32)}.jsonl`]);
    await store.removeAll(SESSION);
    await store.removeAll(SESSION);
    expect(await readdir(path.dirname(path.dirname(file)))).toEqual([other]);
    expect(await store.read(other, RUN)).not.toBeNull();
  });
});

describe('a journal of another program', () => {
  const foreign = ['token', 'tool', 'done'].map((event, n) => ({
    version: 1,
    event_id: `${RUN}:${n + 1}`,
    seq: n + 1,
    run_id: RUN,
    session_id: SESSION,
    event,
    type: event,
    created_at: 1_000 + n,
    terminal: event === 'done',
    terminal_state: event === 'done' ? 'completed' : null,
    payload: { text: 'ü\u{1F600}', name: 'ls' },
  }));
  // With the blanks that its writer puts between the parts of a line.
  const lines = foreign.map((line) => JSON.stringify(line).replaceAll('":', '": '));

  it('[JO5] is missing, empty, or there with its lines', async () => {
    const { store, put } = await open();
    expect(await store.readForeign(SESSION, RUN)).toEqual({ kind: 'missing' });
    expect(await store.readForeign('20260303_130002_ffffff', RUN)).toEqual({ kind: 'missing' });
    for (const blank of ['', '\n \n']) {
      await put(blank);
      expect(await store.readForeign(SESSION, RUN)).toEqual({ kind: 'empty' });
    }
    await put(`${lines.join('\n')}\n`);
    expect(await store.readForeign(SESSION, RUN)).toEqual({ kind: 'there', version: 1, records: foreign });
  });

  it('[JO4][JO5] cut at every byte it gives the whole lines before the cut', async () => {
    const { store, put } = await open();
    const bytes = Buffer.from(`${lines.join('\n')}\n`);
    const ends = lines.map((_, n) => Buffer.byteLength(lines.slice(0, n + 1).join('\n')));
    for (let cut = 1; cut <= bytes.length; cut += 1) {
      await put(bytes.subarray(0, cut));
      const whole = ends.filter((end) => end <= cut).length;
      expect(await store.readForeign(SESSION, RUN), `cut at ${cut}`).toEqual({
        kind: 'there',
        version: whole ? 1 : null,
        records: foreign.slice(0, whole),
      });
    }
  });

  it('[JO5] is told from one of ours', async () => {
    const { store, put } = await open();
    await put(textOf(small));
    expect(await store.readForeign(SESSION, RUN)).toEqual({ kind: 'there', version: 2, records: [] });
  });

  it('[JO5][SE1] of a run whose id is none of a run is not looked for', async () => {
    const { store } = await open();
    for (const id of ['', '..', '../../state', 'stream_1', 'event:2']) {
      expect(await store.readForeign(SESSION, id)).toEqual({ kind: 'missing' });
    }
  });

  it('[JO5] is never written: who takes up its run begins another, and it stands beside as it was', async () => {
    const { store, file, put } = await open();
    const torn = `${lines.join('\n')}\n{"version": 1, "ev`;
    await put(torn);
    const before = await stat(file, { bigint: true });
    await store.readForeign(SESSION, RUN);
    await expect(store.create(SESSION, RUN)).rejects.toMatchObject({ code: 'EEXIST' });
    const { mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    expect({ mtimeNs, ctimeNs }).toEqual({ mtimeNs: before.mtimeNs, ctimeNs: before.ctimeNs });
    expect(await readFile(file, 'utf8')).toBe(torn);
    expect(await readdir(path.dirname(file))).toEqual([path.basename(file)]);
    const { writer, kept } = await store.reopen(SESSION, RUN, await store.read(SESSION, RUN), NOW);
    await writer.close();
    expect(kept).toBe(0);
    const names = await readdir(path.dirname(file));
    const aside = names.find((name) => name.includes('.damaged-'))!;
    expect(await readFile(path.join(path.dirname(file), aside), 'utf8')).toBe(torn);
  });

  it.each(['a folder in its place', 'a file in the place of its folder'])('[JO4] %s is moved aside', async (what) => {
    const { store, file } = await open();
    await rm(path.dirname(file), { recursive: true, force: true });
    if (what.startsWith('a folder')) await mkdir(path.join(file, 'not empty'), { recursive: true });
    else {
      await mkdir(path.dirname(path.dirname(file)), { recursive: true });
      await writeFile(path.dirname(file), 'a file');
    }
    expect(await store.read(SESSION, RUN)).toBeNull();
    const { writer } = await store.reopen(SESSION, RUN, null, NOW);
    await writer.append('x');
    await writer.close();
    expect(await readFile(file, 'utf8')).toBe('x');
  });
});
