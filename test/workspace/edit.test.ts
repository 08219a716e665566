/** Finding and replacing in bytes, against the same done with texts by the language itself. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { countOf, replaceAll } from '../../server/workspace/edit.ts';

// Two letters: so that what is looked for repeats itself, and stands in what it overlaps.
const letters = (min: number, max: number) =>
  fc.string({ unit: fc.constantFrom('a', 'b'), minLength: min, maxLength: max });

it('[TL2] every place is found once, and each is replaced as text is', () => {
  fc.assert(
    fc.property(letters(0, 40), letters(1, 5), letters(0, 3), (text, wanted, by) => {
      const places = [...text].filter((_, at) => text.startsWith(wanted, at));
      expect(countOf(Buffer.from(text), Buffer.from(wanted))).toBe(places.length);
      const replaced = text.replaceAll(wanted, () => by);
      const at = (most: number) =>
        replaceAll(Buffer.from(text), Buffer.from(wanted), Buffer.from(by), most)?.toString() ?? null;
      expect(at(replaced.length)).toBe(replaced);
      if (replaced.length > 0) expect(at(replaced.length - 1)).toBeNull();
    }),
    { numRuns: 3000 },
  );
});
