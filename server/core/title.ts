/** A title from the first words of a conversation, until somebody gives a better one. */

const LONGEST = 60;

/** The beginning of a text, cut at a word; null when there is no word in it. */
export function deriveTitle(text: string): string | null {
  const line = text.split('\n').find((one) => /[\p{L}\p{N}]/u.test(one));
  const words = line?.replaceAll(/\s+/g, ' ').trim();
  if (!words) return null;
  const characters = [...words];
  if (characters.length <= LONGEST) return words;
  const cut = characters.slice(0, LONGEST).join('');
  const space = cut.lastIndexOf(' ');
  return `${space > LONGEST / 2 ? cut.slice(0, space) : cut}…`;
}
