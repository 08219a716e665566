/**
 * What a person has just allowed an agent to do, so that they are not asked about the same thing twice: some agents ask for
 * permission and then have their client do it (AC20). Each is used once, in the turn in which it was allowed.
 */

export type Allowed =
  /** `name`: from the root of the workspace; `changes`: all that was shown of what becomes of the file, in its order. */
  | { kind: 'write'; name: string; changes: readonly ShownChange[] }
  /** A command with its folder and environment (`runKey`). */
  | { kind: 'run'; key: string };

/** A text of a file, and what it becomes; null: whatever is there. */
export interface ShownChange {
  before: string | null;
  after: string;
}

export interface JustAllowed {
  add(things: readonly Allowed[]): void;
  /** Whether something about that file is among it. */
  hasWrite(name: string): boolean;
  /** Whether writing that is among it: what is shown, done to what is there, and nothing else. */
  useWrite(name: string, content: string, current: string): boolean;
  useRun(key: string): boolean;
}

/** So many are kept, the newest: most agents never have their client do what they asked for. */
const MOST = 64;

export function createJustAllowed(): JustAllowed {
  const kept: Allowed[] = [];
  const use = (isIt: (thing: Allowed) => boolean): boolean => {
    const at = kept.findIndex(isIt);
    if (at >= 0) kept.splice(at, 1);
    return at >= 0;
  };
  return {
    add(things) {
      kept.push(...things);
      kept.splice(0, kept.length - MOST);
    },
    hasWrite: (name) => kept.some((thing) => thing.kind === 'write' && thing.name === name),
    useWrite: (name, content, current) =>
      use(
        (thing) =>
          thing.kind === 'write' &&
          thing.name === name &&
          isSame(changed(plain(current), thing.changes), plain(content)),
      ),
    useRun: (key) => use((thing) => thing.kind === 'run' && thing.key === key),
  };
}

/** A text after these changes; null when one of them is none of this text. */
function changed(current: string, changes: readonly ShownChange[]): string | null {
  let text = current;
  for (const { before, after } of changes) {
    const old = before === null ? text : plain(before);
    const at = text.indexOf(old);
    if (at < 0 || (old === '' && text !== '')) return null;
    text = text.slice(0, at) + plain(after) + text.slice(at + old.length);
  }
  return text;
}

/** Line ends are no difference, nor whether the last line has one: an agent may show others than it writes. */
const plain = (text: string): string => text.replaceAll('\r\n', '\n');
const isSame = (one: string | null, other: string): boolean => one?.replace(/\n$/, '') === other.replace(/\n$/, '');
