/**
 * Situations of a sidecar and a state DB without ids, one line each: what was observed of the system that Turnkeep follows,
 * and, where that system loses something, what is right. `@` is the time, `*c1` a tool call, `!` a marker.
 */
import { expect, it } from 'vitest';
import { merged, result, rows } from './reconcile-rows.ts';

const TWO_TURNS = 'u q1@100 | a a1@101 | u q2@200 | a a2@201';

const replays: [name: string, sidecar: string, state: string, transcript: string][] = [
  ['V01 a prefix with finer times', TWO_TURNS, 'u q1@100.25 | a a1@101.5', 'q1 a1 q2 a2'],
  ['V02 all of it under new times', TWO_TURNS, 'u q1@300 | a a1@301 | u q2@302 | a a2@303', 'q1 a1 q2 a2'],
  ['V03 a turn of the middle', TWO_TURNS, 'u q2@400 | a a2@401', 'q1 a1 q2 a2'],
  ['V04 an answer', TWO_TURNS, 'a a1@400', 'q1 a1 q2 a2'],
  ['V19 a prompt without a time', TWO_TURNS, 'u q1', 'q1 a1 q2 a2'],
  ['V20 other white space', TWO_TURNS, 'u q1 @100 | a   a1@101', 'q1 a1 q2 a2'],
  ['V21 a workspace tag', TWO_TURNS, 'u [Workspace::v1: /w] q1@100 | u [Workspace: /w] q2@200', 'q1 a1 q2 a2'],
];

it.each(replays)('[RC5] a replay adds nothing: %s', (_name, sidecar, state, transcript) => {
  expect(merged(sidecar, state)).toBe(transcript);
  expect(result(sidecar, state).changed).toBe(false);
});

const additions: [name: string, sidecar: string, state: string, transcript: string][] = [
  ['V07 a turn that is newer', TWO_TURNS, 'u q3@300 | a a3@301', 'q1 a1 q2 a2 q3 a3'],
  ['V08 a prompt before a later tail', 'u q1@100 | a a1@101 | a tail@300', 'u q2@200', 'q1 a1 q2 tail'],
  ['V09 a prompt at the time of the tail', 'u q1@100 | a a1@101 | a tail@200', 'u q2@200', 'q1 a1 q2 tail'],
  ['V10 everything in one second', 'u q1@200 | a a1@200 | a tail@200', 'u q2@200', 'q1 a1 q2 tail'],
  ['V11 a prompt from before the sidecar', 'a a1@100', 'u old@50', 'a1'],
  ['V11b a prompt at the time of the first answer', 'a a1@100', 'u old@100', 'old a1'],
  [
    'V12 a prompt inside a tool block',
    'u alpha@100 | a*c1 call@150 | t#c1 res@250 | a fin@300',
    'u zebra@200',
    'alpha call res zebra fin',
  ],
  [
    'V13 a prompt at the time of a tool block',
    'u alpha@200 | a*c1 call@200 | t#c1 res@200 | a fin@200',
    'u zebra@200',
    'alpha call res zebra fin',
  ],
  [
    'V14 a prompt at the time of a block with two results',
    'u alpha@200 | a*c1,c2 call@200 | t#c1 r1@200 | t#c2 r2@200 | u next@200',
    'u zebra@200',
    'alpha call r1 r2 zebra next',
  ],
  ['V15 another answer to an answered prompt', TWO_TURNS, 'a other@150', 'q1 a1 q2 a2'],
  ['V16b a call that nothing is like', 'u q@100 | a fin@103', 'a*b @102', 'q fin'],
  ['V18 a prompt without a time', TWO_TURNS, 'u nots', 'q1 a1 q2 a2 nots'],
  ['V26 repeats of one instant', '', 'u x@1 | u x@1 | u x@1.5', 'x x'],
  [
    'V37 an interrupted turn and a newer one',
    'u q@1 | a~ frag@2 | a% err@3 | u n@4 | a m@5',
    'u p@6 | a o@7',
    'q frag err n m p o',
  ],
  ['V40 the same prompt, newer than all', 'u x@1.1', 'u x@1.1 | u x@1.9', 'x x'],
  ['V41 the same prompt of the same second', 'u x@1.1 | a y@5', 'u x@1.1 | u x@1.9', 'x y'],
  ['V45 a prompt whose time is no number', 'u x@100', 'u y@NaN', 'x y'],
];

it.each(additions)('[RC6] what only the state DB has finds its place: %s', (_name, sidecar, state, transcript) => {
  expect(merged(sidecar, state)).toBe(transcript);
});

it('[RC6] V16 a call with other arguments goes before the answer, behind the block of its like', () => {
  const sidecar = rows('u q@100 | a*a @101 | t#a res@102 | a fin@103');
  expect(result(sidecar, 'a*b @102').rows.map(({ source, index }) => `${source[1]}${index}`)).toEqual([
    'i0',
    'i1',
    'i2',
    't0',
    'i3',
  ]);
});

it('[RC6] V16 and takes its result along', () => {
  const sidecar = 'u q@100 | a*a call@101 | t#a res@102 | a fin@103';
  expect(merged(sidecar, 'a*b call@102 | t#b other@102.5')).toBe('q call res call other fin');
});

it('[RC4] V26b the same time as a number and as text is the same time', () => {
  const state = [
    { role: 'user', content: 'x', timestamp: 1 },
    { role: 'user', content: 'x', timestamp: '1.0' },
  ];
  expect(result([], state).rows).toHaveLength(1);
  expect(result([{ role: 'user', content: 'x', timestamp: '1' }], state)).toMatchObject({ changed: false });
});

it('[RC4] V42 a row number is no proof for rows that say different things', () => {
  const numbered = (content: string, timestamp: number) => ({ role: 'user', content, timestamp, _state_db_row_id: 7 });
  expect(merged([numbered('y', 1)], [numbered('x', 2)])).toBe('y x');
  expect(merged([numbered('x', 1)], [numbered('x', 2)])).toBe('x');
});

const fenced: [name: string, watermark: number, boundary: number | null, sidecar: string, state: string, is: string][] =
  [
    ['V27 after a clear', 0, 0, '', 'u a@1 | a b@2', ''],
    ['V28 an empty sidecar', 2, null, '', 'u a@1 | a b@2 | u c@3 | u n', 'a b'],
    ['V29 an empty sidecar with a boundary', 3, 1, '', 'u a@1 | a del@2 | u ed@3 | a r@3', 'a ed r'],
    ['V31 a cut tail', 2, 2, 'u a@1 | a b@2', 'u a@1 | a b@2 | u del@3', 'a b'],
    [
      'V32 rows behind an edit',
      5,
      2,
      'u a@1 | a b@2 | u ed@5 | a r@6',
      'u a@1 | a b@2 | u del@3 | a delr@4 | u ed@5 | a r@6 | u n@7',
      'a b ed r n',
    ],
    ['V33 the answer to an edit', 5, 2, 'u a@1 | a b@2 | u ed@5', 'u a@1 | a b@2 | u ed@5 | a r@6', 'a b ed r'],
    ['V34 all in one second', 5, 2, 'u a@1 | a b@2 | u ed@5', 'u a@1 | a b@2 | u old@5 | u ed@5 | a r@5', 'a b ed r'],
    [
      'a session that went on without a boundary',
      2,
      null,
      'u a@1 | a b@2 | u c@4 | a d@5',
      'u del@3 | u n@6',
      'a b c d n',
    ],
    ['a row that the state DB has before older ones', 2, 0, 'u a@1 | a b@3', 'u x@9 | u a@1 | a b@3', 'a b'],
    ['a row without a time', 2, 2, 'u a@1 | a b@2', 'u a@1 | a b@2 | u nots', 'a b'],
  ];

it.each(fenced)('[RC7] what was edited away stays away: %s', (_name, watermark, boundary, sidecar, state, is) => {
  expect(merged(sidecar, state, { watermark, boundary })).toBe(is);
});

const kept: [name: string, sidecar: string, state: string, transcript: string][] = [
  [
    'P17 a prompt that contains an old one',
    'u yes@1 | a long@2',
    'u yes please@10 | a fine@11',
    'yes long yes please fine',
  ],
  ['P17 a prompt inside an old one', 'u yes please@1 | a long@2', 'u yes@10 | a fine@11', 'yes please long yes fine'],
  ['P23 an old prompt with a new answer', 'u go@1 | a ok@2', 'u go@10 | a ok2@11', 'go ok go ok2'],
  ['P24 without times in the sidecar', 'u go | a ok', 'u go@10 | a ok2@11', 'go ok go ok2'],
  ['P24 without any time', 'u go | a ok', 'u go | a done', 'go ok go done'],
  ['the third time', 'u go@1 | a ok@2', 'u go@1 | a ok@2 | u go@10 | a ok@11 | u go@20 | a ok@21', 'go ok go ok go ok'],
  ['three times without an answer', 'u go@1', 'u go@1 | u go@2 | u go@3', 'go go go'],
  [
    'between other turns',
    'u go@1 | a ok@2 | u x@20 | a y@21',
    'u go@1 | a ok@2 | u go@10 | a ok@11 | u x@20 | a y@21',
    'go ok go ok x y',
  ],
  ['an old answer to a new prompt', 'u go@1 | a ok@2', 'u next@10 | a ok@11', 'go ok next ok'],
  ['alone and newer than all', TWO_TURNS, 'u q2@400', 'q1 a1 q2 a2 q2'],
  [
    'with a new answer in the middle',
    'u go@1 | a ok@2 | u x@90 | a y@91',
    'u go@50 | a other@51',
    'go ok go other x y',
  ],
];

it.each(kept)('[RC5] a repeated prompt is kept: %s', (_name, sidecar, state, transcript) => {
  expect(merged(sidecar, state)).toBe(transcript);
});

const late: [name: string, sidecar: string, state: string, transcript: string, replaced: number[]][] = [
  ['P26 with its prompt', 'u go@100 | a! marker@130', 'u go@100 | a real@120', 'go real', [1]],
  ['S3 newer than the marker', 'u go@100 | a! marker@130', 'u go@100 | a real@150', 'go real', [1]],
  ['without a time', 'u go@100 | a! marker@130', 'u go@100 | a real', 'go real', [1]],
  ['Q9 without its prompt', 'u go@100 | a! marker@130', 'a real@120', 'go real', [1]],
  [
    'Q10 behind older turns',
    `${TWO_TURNS} | u go@300 | a! marker@330`,
    `${TWO_TURNS} | a real@320`,
    'q1 a1 q2 a2 go real',
    [5],
  ],
  ['a prompt that was stored later', 'u go@100 | a! marker@130', 'u go@103 | a real@120', 'go real', [1]],
  ['the same prompt as one before', 'u go@1 | a ok@2 | u go@100', 'u go@103 | a real@105', 'go ok go real', []],
  ['a tagged prompt', 'u go@100 | a! marker@130', 'u [Workspace::v1: /w] go@101 | a real@120', 'go real', [1]],
  ['behind a fragment', 'u go@100 | a~ rea@110 | a! marker@130', 'u go@100 | a real@120', 'go rea real', [2]],
  [
    'with its tools',
    'u go@100 | a! marker@130',
    'u go@100 | a*c1 call@105 | t#c1 res@106 | a real@120',
    'go call res real',
    [1],
  ],
  [
    'before a newer turn',
    'u go@100 | a! marker@130 | u n@200 | a m@201',
    'u go@100 | a real@120 | u n@200 | a m@201',
    'go real n m',
    [1],
  ],
  ['a newer turn with the same prompt', 'u go@100 | a! marker@130', 'u go@500 | a real@501', 'go marker go real', []],
  ['tools only', 'u go@100 | a! marker@130', 'u go@100 | a*c1 call@105 | t#c1 res@106', 'go call res marker', []],
  [
    'a fragment that is there already',
    'u go@100 | a~ frag@110 | a! marker@130',
    'u go@100 | a frag@110',
    'go frag marker',
    [],
  ],
  [
    'the beginning of what was recovered',
    'u go@100 | a~ fragment@110 | a! marker@130',
    'u go@100 | a frag@110',
    'go fragment marker',
    [],
  ],
  ['an error that is no marker', 'u go@100 | a% failed@130', 'u go@100 | a real@120', 'go real failed', []],
];

it.each(late)(
  '[RC3] a late answer is shown in place of the marker: %s',
  (_name, sidecar, state, transcript, replaced) => {
    expect(merged(sidecar, state)).toBe(transcript);
    expect(result(sidecar, state).replaced).toEqual(replaced);
  },
);

it('[RC6] S4 a prompt of the state DB comes without its workspace tag, and one that a person typed keeps it', () => {
  expect(merged(TWO_TURNS, 'u [Workspace::v1: /w] q3@300')).toBe('q1 a1 q2 a2 q3');
  expect(merged('u [Workspace: /w] q@1', 'u q@1')).toBe('[Workspace: /w] q q');
  expect(merged('', 'a [Workspace: /w] said@1')).toBe('[Workspace: /w] said');
});
