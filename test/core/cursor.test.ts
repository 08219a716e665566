/** Cursors and ids: what is one and what is not. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatCursor, parseCursor, parseSessionCursor } from '../../server/core/cursor.ts';
import { formatSessionId, isRunId, isSessionId } from '../../server/core/ids.ts';

const RUN = '0123456789abcdef0123456789abcdef';

it('[SU2] a cursor is a run and a seq, or the beginning', () => {
  expect(parseCursor('0')).toEqual({ kind: 'beginning' });
  expect(parseCursor(`${RUN}:0`)).toEqual({ kind: 'at', runId: RUN, seq: 0 });
  expect(parseCursor(`${RUN}:42`)).toEqual({ kind: 'at', runId: RUN, seq: 42 });
  expect(parseCursor(`${RUN}:999999999999999`)).toEqual({ kind: 'at', runId: RUN, seq: 999_999_999_999_999 });
});

it('[SU2] anything else is no cursor', () => {
  const bad = [
    ...['', ' ', '00', '1', 'null', 'NaN', ':', ':1', RUN, `${RUN}:`, `${RUN}:-1`, `${RUN}:+1`, `${RUN}:1.5`],
    ...[`${RUN}:1e3`, `${RUN}: 1`, ` ${RUN}:1`, `${RUN}:1 `, `${RUN}:1\n`, `${RUN}:0x1`, `${RUN}:١`],
    ...[`${RUN}:1:2`, `${RUN.toUpperCase()}:1`, `${RUN}0:1`, `${RUN.slice(1)}:1`, `${RUN}:9999999999999999`],
    ...[`${'g'.repeat(32)}:1`, `${RUN}:1\0`, '0\n', '../../etc:1'],
  ];
  for (const text of bad) expect(parseCursor(text), JSON.stringify(text)).toBeNull();
});

it('[SU2] a cursor that was written is read as the same, and any text that is read is written as the same', () => {
  const runId = fc
    .array(fc.constantFrom(...'0123456789abcdef'), { minLength: 32, maxLength: 32 })
    .map((d) => d.join(''));
  const both = fc.property(runId, fc.nat({ max: 999_999_999_999_999 }), (id, seq) => {
    const cursor = { kind: 'at' as const, runId: id, seq };
    expect(parseCursor(formatCursor(cursor))).toEqual(cursor);
  });
  fc.assert(both);
  expect(formatCursor({ kind: 'beginning' })).toBe('0');
});

it('[SU2] a session may carry its cursor behind an @', () => {
  const table: [text: string, sessionId: string, cursor: string | null][] = [
    ['s1', 's1', null],
    [`s1@${RUN}:7`, 's1', `${RUN}:7`],
    ['s1@0', 's1', '0'],
    ['s1@', 's1', ''],
    ['@0', '', '0'],
    ['s1@a@b', 's1', 'a@b'],
    ['', '', null],
  ];
  for (const [text, sessionId, cursor] of table) expect(parseSessionCursor(text)).toEqual({ sessionId, cursor });
});

it('[SE1] a session id of ours names its second, and is an id', () => {
  expect(formatSessionId(1_772_542_802, 'abcdef')).toBe('20260303_130002_abcdef');
  expect(formatSessionId(1_772_542_802.999, 'abcdef')).toBe('20260303_130002_abcdef');
  expect(formatSessionId(0, '000000')).toBe('19700101_000000_000000');
  const property = fc.property(fc.double({ min: 0, max: 253_402_300_799, noNaN: true }), (now) => {
    const id = formatSessionId(now, 'abcdef');
    expect(id).toMatch(/^\d{8}_\d{6}_abcdef$/);
    expect(isSessionId(id)).toBe(true);
    expect(isRunId(id)).toBe(false);
  });
  fc.assert(property);
});
