/** Prepared statements: building one costs far more than running it, so each is built once for a connection. */
import { sql } from 'drizzle-orm';
import type { Db } from './client.ts';

/** A statement that is built at its first use on a connection. */
export function statement<T>(build: (db: Db) => T): (db: Db) => T {
  const built = new WeakMap<Db, T>();
  return (db) => {
    let known = built.get(db);
    if (known === undefined) {
      known = build(db);
      built.set(db, known);
    }
    return known;
  };
}

/**
 * Statements of one kind that differ in their shape, each built when its shape is first used on a connection.
 * @param build makes one; a shape is a value that JSON can tell from others, and there are few of them
 */
export function statements<S, T>(build: (db: Db, shape: S) => T): (db: Db, shape: S) => T {
  const shapes = statement(() => new Map<string, T>());
  return (db, shape) => {
    const built = shapes(db);
    const key = JSON.stringify(shape);
    let known = built.get(key);
    if (known === undefined) {
      known = build(db, shape);
      built.set(key, known);
    }
    return known;
  };
}

/** A value that is given when the statement runs. Typed as what it stands for, since it may stand where that may. */
export const given = (name: string) => sql.placeholder(name);
