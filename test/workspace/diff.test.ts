/** Diffs: a patch made of one gives the new text from the old one. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { diffOf, MAX_DIFF } from '../../server/workspace/diff.ts';
import { seededRandom, testSeed } from '../support/random.ts';

it('[TL2] a diff applied by patch(1) gives the new text, whatever was changed', () => {
  const seed = testSeed();
  const random = seededRandom(seed);
  const folder = mkdtempSync(join(tmpdir(), 'turnkeep-diff-'));
  const pick = (most: number) => Math.floor(random() * most);
  try {
    for (let round = 0; round < 60; round++) {
      const old = Array.from({ length: pick(40) }, () => `line ${pick(6)}`);
      const now = old.flatMap((line) => (pick(5) === 0 ? [] : pick(5) === 0 ? [line, `new ${pick(4)}`] : [line]));
      const end = () => (pick(4) === 0 ? '' : '\n');
      const [before, after] = [`${old.join('\n')}${end()}`, `${now.join('\n')}${end()}`];
      const { text, added, removed } = diffOf(before, after, 'file');
      if (before === after) {
        expect(text).toBe('');
        continue;
      }
      const file = join(folder, 'file');
      writeFileSync(file, before);
      execFileSync('patch', ['-s', '-p1'], { cwd: folder, input: text });
      expect(readFileSync(file, 'utf8'), `seed ${seed}, round ${round}:\n${text}`).toBe(after);
      expect(text.match(/^\+(?!\+\+ )/gm)?.length ?? 0).toBe(added);
      expect(text.match(/^-(?!-- )/gm)?.length ?? 0).toBe(removed);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it('[TL2] a diff is bounded, and says how many of its lines are left out', () => {
  const lines = Array.from({ length: 50_000 }, (_, n) => `line ${n}\n`);
  const { text, added, removed } = diffOf(lines.join(''), lines.toReversed().join(''), 'file');
  expect(text.length).toBeLessThan(MAX_DIFF + 200);
  expect(text).toMatch(/\[\d+ more lines of the diff are left out\.\]\n$/);
  expect(added).toBe(removed);
});
