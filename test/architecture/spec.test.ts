// Binds SPEC.md to the suite: every rule has a test, every cited rule is stated.

import { expect, it } from 'vitest';
import { sourcesBelow, textOf } from './source.ts';
import { citationsIn, mismatches, rulesIn } from './spec.ts';

it('[HO4] every rule of SPEC.md is cited by a test, and every cited rule is stated', () => {
  const rules = rulesIn(textOf('SPEC.md'));
  expect(rules.length).toBeGreaterThan(10);
  expect(
    mismatches(
      rules,
      sourcesBelow('test').flatMap((path) => citationsIn(path, textOf(path))),
    ),
  ).toEqual([]);
});

it('[HO4] an uncited, an unknown, a doubled and a merely skipped rule are each found', () => {
  const spec =
    '# Rules\n- **AD1** one\n- **AD2** two\n- **AD3** three\n- **AD4** four\n  - **AD5** five\n- **AD1** again\n';
  expect(rulesIn(spec)).toEqual(['AD1', 'AD2', 'AD3', 'AD4', 'AD5', 'AD1']);
  const source = [
    "describe.each(['memory'])('%s', (kind) => {",
    "  it('[AD1] a title', () => {});",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the source that is read has a template
    '  test.each([1])(`[AD5] on ${kind} [ZZ9]`, () => {});',
    "  it.skip('[AD3] not run', () => {});",
    "  it.skipIf(kind === 'none')('[AD4, AD1] run somewhere', () => {});",
    "  note('[AD2] in no title'); // it('[AD2] in a comment')",
    '});',
  ].join('\n');
  expect(mismatches(rulesIn(spec), citationsIn('test/x.test.ts', source))).toEqual([
    'AD1 is stated twice',
    'AD2 has no test',
    'AD3 has no test',
    'ZZ9 is cited in test/x.test.ts but not stated',
  ]);
});
