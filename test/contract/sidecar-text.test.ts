/**
 * The quick way of reading a sidecar, line by line, says of any file what the general one says; and rows that stand in one
 * text stay what they are, whoever goes on writing behind them.
 */
import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  appended,
  bytesOf,
  listOf,
  plainRow,
  type SidecarRow,
  toSidecarRow,
  unpack,
} from '../../db/files/sidecar-rows.ts';
import {
  type ParsedSidecar,
  parseSidecar,
  parseWhole,
  type SidecarHeader,
  serialiseSidecar,
} from '../../db/files/sidecar-text.ts';
import type { Message } from '../../server/core/terms.ts';

const SESSION = '20260303_130002_abcdef';
const HEADER = { session_id: SESSION, title: 'T', message_count: 0 } as unknown as SidecarHeader;

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }).map((one) => one.toWellFormed()),
  fc.constantFrom('",\n  "messages": [\n    {', '\n    {"role":"user"},', '\\u0041', '\u2028é\u{1F600}'),
);
const row = fc.record(
  {
    id: fc.oneof(text, fc.constantFrom('', null, 3)),
    role: fc.constantFrom('user', 'assistant', 'tool'),
    content: fc.oneof(text, fc.constant([{ type: 'text', text: 'part' }])),
    timestamp: fc.oneof(fc.integer(), fc.double({ noDefaultInfinity: true, noNaN: true }), fc.constant('late')),
    run_id: text,
    _turnTps: fc.integer(),
    more: fc.jsonValue(),
  },
  { requiredKeys: ['role', 'content'] },
);
const fields = fc.dictionary(fc.oneof(text, fc.constantFrom('tool_calls', 'title', '7', '__proto__')), fc.jsonValue());

/** The bytes of a file with these rows, as we write it. */
function fileOf(rows: readonly object[], header: object, tail: Record<string, unknown>): Buffer {
  const texts = rows.map((one) => ({ id: 'x', runId: null, role: 'user', json: JSON.stringify(one) }));
  const sidecar = { header: { ...header, ...HEADER }, rows: texts, tail };
  return Buffer.concat([...serialiseSidecar(sidecar)].map((chunk) => Buffer.from(chunk)));
}

/** Something that happens to a file: in a place of it, by another program, or by hand. */
const accident = fc.oneof(
  fc.record({ kind: fc.constant('cut' as const), at: fc.nat() }),
  fc.record({ kind: fc.constant('byte' as const), at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) }),
  fc.record({
    kind: fc.constant('insert' as const),
    at: fc.nat(),
    what: fc.constantFrom(',', ' ', '\n', '{', '}', ']'),
  }),
  fc.record({ kind: fc.constant('line twice' as const), at: fc.nat() }),
  fc.record({ kind: fc.constant('line away' as const), at: fc.nat() }),
  fc.record({ kind: fc.constant('indent' as const), by: fc.constantFrom(0, 1, 2, 4) }),
);

function after(bytes: Buffer, what: typeof accident extends fc.Arbitrary<infer One> ? One : never): Buffer {
  const place = 'at' in what ? what.at % bytes.length : 0;
  const lines = bytes.toString('utf8').split('\n');
  switch (what.kind) {
    case 'cut':
      return bytes.subarray(0, place);
    case 'byte':
      return Buffer.concat([bytes.subarray(0, place), Buffer.from([what.byte]), bytes.subarray(place + 1)]);
    case 'insert':
      return Buffer.concat([bytes.subarray(0, place), Buffer.from(what.what), bytes.subarray(place)]);
    case 'line twice':
      return Buffer.from(lines.toSpliced(what.at % lines.length, 0, lines[what.at % lines.length]!).join('\n'));
    case 'line away':
      return Buffer.from(lines.toSpliced(what.at % lines.length, 1).join('\n'));
    case 'indent':
      return Buffer.from(JSON.stringify(JSON.parse(bytes.toString('utf8')), null, what.by));
  }
}

/** Everything that a parsed sidecar says. */
function said(parsed: ParsedSidecar | string): unknown {
  if (typeof parsed === 'string') return parsed;
  const rows = unpack(parsed.rows).map((one) => ({ plain: one.plain, ...plainRow(one as SidecarRow) }));
  return {
    header: Object.entries(parsed.header),
    isText: isUtf8(parsed.rows.bytes),
    tail: [parsed.tail.keys, parsed.tail.text],
    // As anybody would write it anew: a number may be too large for one, and a zero have a sign.
    rows: rows.map(({ json, ...one }) => ({ ...one, json: JSON.stringify(JSON.parse(json)) })),
  };
}

describe('a sidecar read line by line', () => {
  it('[SC1] says what any reader of JSON would say, as it was saved and after whatever happened to it', () => {
    const property = fc.property(
      fc.array(row, { maxLength: 4 }),
      fields,
      fields,
      accident,
      (rows, header, tail, what) => {
        const whole = fileOf(rows, header, tail);
        for (const bytes of [whole, after(whole, what)]) {
          expect(said(parseSidecar(SESSION, bytes))).toEqual(said(parseWhole(SESSION, bytes.toString('utf8'))));
        }
      },
    );
    fc.assert(property, { numRuns: 2000, interruptAfterTimeLimit: 40_000 });
  });

  it('[SC1] hands on the rows as they stand: nothing in them is written anew', () => {
    const bytes = Buffer.from(
      `{\n  "session_id": "${SESSION}",\n  "messages": [\n` +
        '    {"role": "user",  "content":"\\u0041", "timestamp":1.0},\n    {"role":"tool","content":"b"}\n  ]\n}\n',
    );
    const parsed = parseSidecar(SESSION, bytes) as ParsedSidecar;
    const [first, second] = unpack(parsed.rows);
    expect(first?.json).toBe('{"role": "user",  "content":"\\u0041", "timestamp":1.0}');
    expect(second?.json).toBe('{"role":"tool","content":"b"}');
  });

  it('[SC1] is not taken for one when two fields of one name stand in it', () => {
    const twice = (before: string, behind: string) =>
      Buffer.from(`{\n  "session_id": "${SESSION}"${before},\n  "messages": [\n    {"role":"user"}\n  ]${behind}\n}\n`);
    for (const bytes of [
      twice(', "messages": []', ''),
      twice('', ',\n  "messages": []'),
      twice(', "title": 1', ',\n  "title": 2'),
      twice('', ',\n  "session_id": "another"'),
    ]) {
      expect(said(parseSidecar(SESSION, bytes))).toEqual(said(parseWhole(SESSION, bytes.toString('utf8'))));
    }
  });
});

describe('rows in one text', () => {
  const message = (n: number): Message => ({ id: `m${n}`, role: 'user', content: `text ${n} é`, timestamp: n });
  const rows = (from: number, to: number): SidecarRow[] =>
    Array.from({ length: to - from }, (_, n) => toSidecarRow(message(from + n)));
  const values = (bytes: Buffer): unknown => JSON.parse(`[${bytes.toString('utf8')}]`);

  it('[SC3] grow without being copied, and every beginning of them is there as bytes', () => {
    let list = listOf(rows(0, 3));
    for (let n = 3; n < 300; n += 1) list = appended(list, rows(n, n + 1));
    expect(list.rows.map(plainRow)).toEqual(rows(0, 300));
    expect(values(bytesOf(list))).toEqual(Array.from({ length: 300 }, (_, n) => message(n)));
    expect(values(bytesOf(list, 7))).toEqual(Array.from({ length: 7 }, (_, n) => message(n)));
    expect(bytesOf(list, 0)).toHaveLength(0);
    expect(listOf(list.rows).text).toBe(list.text);
  });

  it('[SC2] stay what they were for whoever read them, when others go on from an earlier place', () => {
    const seen = appended(listOf(rows(0, 5)), rows(5, 9));
    const cut = appended(listOf(seen.rows.slice(0, 4)), rows(20, 24));
    const other = appended(seen, rows(30, 32));
    const late = appended(seen, rows(40, 41));
    expect(seen.rows.map(plainRow)).toEqual(rows(0, 9));
    expect(cut.rows.map(plainRow)).toEqual([...rows(0, 4), ...rows(20, 24)]);
    expect(other.rows.map(plainRow)).toEqual([...rows(0, 9), ...rows(30, 32)]);
    expect(late.rows.map(plainRow)).toEqual([...rows(0, 9), ...rows(40, 41)]);
    for (const list of [seen, cut, other, late]) {
      expect(values(bytesOf(list))).toEqual(list.rows.map((row) => JSON.parse(row.json)));
    }
  });

  it('[SC1] with something that nobody is shown are saved with it', () => {
    const [first, second, third] = rows(0, 3) as [SidecarRow, SidecarRow, SidecarRow];
    const hidden = { ...second, stored: JSON.stringify({ ...message(1), _private: 'é' }) };
    const list = listOf([first, hidden, third]);
    expect(list.rows.map(plainRow)).toEqual([first, hidden, third]);
    const bytes = Buffer.concat(
      [...serialiseSidecar({ header: HEADER, rows: list.rows, tail: {} })].map((chunk) => Buffer.from(chunk)),
    );
    expect(JSON.parse(bytes.toString('utf8')).messages).toEqual([
      message(0),
      { ...message(1), _private: 'é' },
      message(2),
    ]);
    expect(values(bytesOf(list))).toEqual([message(0), message(1), message(2)]);
  });
});
