/** What a check is given, and how it speaks. A check yields findings and changes nothing (DR1). */
import type { StateView } from '../../db/doctor-view.ts';
import type { HomeFiles } from '../../db/files/home-files.ts';
import type { ProcessIdentity } from '../core/terms.ts';
import type { Finding } from './finding.ts';

export interface Examination {
  files: HomeFiles;
  /** Null when the state DB cannot be asked: what only it knows is then not judged. */
  view: StateView | null;
  /** Epoch seconds at the start. */
  now: number;
  /** Seconds that a journal is kept after its run. */
  journalKeepS: number;
  isAlive(process: ProcessIdentity): boolean;
  /** The user of this process; null where the system has no such numbers. */
  uid: number | null;
  version: string;
  nodeVersion: string;
  /** Tells a person how far a long check is. */
  progress(text: string): void;
}

export type Check = (examination: Examination) => AsyncGenerator<Finding>;

/** How many names are looked up at once. */
export const STEP = 200;

/** The same things in groups. */
export async function* inGroups<T>(things: AsyncIterable<T>, size: number = STEP): AsyncGenerator<T[]> {
  let group: T[] = [];
  for await (const thing of things) {
    group.push(thing);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length) yield group;
}

/** All pages of a list that is ordered by id. */
export function* pages<T extends { id: string }>(page: (after: string, limit: number) => T[]): Generator<T> {
  for (let after = ''; ; ) {
    const some = page(after, STEP);
    yield* some;
    const last = some.at(-1);
    if (!last || some.length < STEP) return;
    after = last.id;
  }
}
