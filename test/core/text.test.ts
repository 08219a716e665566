/** Text that can be stored and sent, and the joiner of what a provider cut in two. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTextJoiner, utf8Length, wellFormed, wellFormedJson } from '../../server/core/text.ts';

const R = '\uFFFD';
/** Any UTF-16, also what is no text. */
const anything = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0xd7f0, max: 0xe00f }), fc.constant(0)))
  .map((units) => String.fromCharCode(...units));

describe('text', () => {
  it('[HT5] lone surrogates and NUL become U+FFFD, everything else stays', () => {
    const table: [text: string, well: string][] = [
      ['', ''],
      ['plain', 'plain'],
      ['\u{1F600}', '\u{1F600}'],
      ['a\0b\0', `a${R}b${R}`],
      ['\uD83D', R],
      ['\uDE00', R],
      ['a\uD83Db', `a${R}b`],
      ['\uDE00\uD83D', R + R],
      ['\uD83D\uD83D\uDE00', `${R}\u{1F600}`],
      ['\u0001\u001F\u007F\uFFFE\uFFFF', '\u0001\u001F\u007F\uFFFE\uFFFF'],
    ];
    for (const [text, well] of table) expect(wellFormed(text)).toBe(well);
  });

  it('[HT5] any text becomes one that UTF-8 can carry, and no other when done again', () => {
    const property = fc.property(anything, (text) => {
      const well = wellFormed(text);
      expect(Buffer.from(well).toString()).toBe(well);
      expect(well).not.toContain('\0');
      expect(well).toHaveLength(text.length);
      expect(wellFormed(well)).toBe(well);
      expect(utf8Length(well)).toBe(Buffer.from(well).length);
    });
    fc.assert(property);
  });

  it('[HT5] every string in a JSON value is mended, keys included, and nothing else is touched', () => {
    const value = { 'k\0': ['\uD83D', 1, null, true, { deep: 'a\0' }], fine: 'x' };
    expect(wellFormedJson(value)).toEqual({ [`k${R}`]: [R, 1, null, true, { deep: `a${R}` }], fine: 'x' });
    expect(value).toEqual({ 'k\0': ['\uD83D', 1, null, true, { deep: 'a\0' }], fine: 'x' });
    const hostile = JSON.parse('{"__proto__": {"polluted": "\\u0000"}}');
    expect(JSON.stringify(wellFormedJson(hostile))).toBe(`{"__proto__":{"polluted":"${R}"}}`);
    expect({}).not.toHaveProperty('polluted');
  });
});

describe('the joiner', () => {
  it('[HT5] joins a pair that was cut, and gives up a half whose other half does not come', () => {
    const table: [chunks: string[], given: string[]][] = [
      [
        ['a\uD83D', '\uDE00b'],
        ['a', '\u{1F600}b', ''],
      ],
      [
        ['\uD83D', '', '\uDE00'],
        ['', '', '\u{1F600}', ''],
      ],
      [
        ['\uD83D', 'x'],
        ['', `${R}x`, ''],
      ],
      [
        ['\uD83D', '\uD83D', '\uDE00'],
        ['', R, '\u{1F600}', ''],
      ],
      [['a\uD83D'], ['a', R]],
      [['\uDE00'], [R, '']],
      [[], ['']],
    ];
    for (const [chunks, given] of table) {
      const joiner = createTextJoiner();
      expect([...chunks.map((chunk) => joiner.push(chunk)), joiner.end()]).toEqual(given);
      expect(joiner.end()).toBe('');
    }
  });

  it('[HT5] any text cut anywhere comes out as the whole would, well-formed at every moment', () => {
    const property = fc.property(anything, fc.array(fc.nat(100)), (text, cuts) => {
      const at = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
      const joiner = createTextJoiner();
      const given = at.slice(1).map((end, n) => joiner.push(text.slice(at[n], end)));
      given.push(joiner.end());
      expect(given.join('')).toBe(wellFormed(text));
      for (const part of given) expect(part.isWellFormed()).toBe(true);
    });
    fc.assert(property, { numRuns: 500 });
  });
});
