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

/** A value that is given when the statement runs. Typed as what it stands for, since it may stand where that may. */
export const given = (name: string) => sql.placeholder(name);
