/**
 * What a person has just allowed an agent to do, so that they are not asked about the same thing twice: some agents ask for
 * permission and then have their client do it (AC20). Each is used once, in the turn in which it was allowed.
 */

export type Allowed =
  /** `name`: from the root of the workspace; `texts`: what was shown of what is to be written. */
  | { kind: 'write'; name: string; texts: string[] }
  /** A command with its folder and environment (`runKey`). */
  | { kind: 'run'; key: string };

export interface JustAllowed {
  add(things: readonly Allowed[]): void;
  /** Whether writing that is among it. */
  useWrite(name: string, content: string): boolean;
  useRun(key: string): boolean;
}

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
    },
    useWrite(name, content) {
      const text = plain(content);
      return use(
        (thing) =>
          thing.kind === 'write' && thing.name === name && thing.texts.every((one) => text.includes(plain(one))),
      );
    },
    useRun: (key) => use((thing) => thing.kind === 'run' && thing.key === key),
  };
}

/** Line ends are no difference: an agent may show others than it writes. */
const plain = (text: string): string => text.replaceAll('\r\n', '\n');
