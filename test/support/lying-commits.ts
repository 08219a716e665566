/**
 * A database whose COMMIT happens and reports failure all the same, as a disk does that fails after the write: the driver
 * of this process is told when to lie. Set up before the server is opened.
 */
import Database from 'better-sqlite3';
import { onTestFinished, vi } from 'vitest';

export interface LyingCommits {
  /**
   * From now on, the first commit after which a query finds something reports failure.
   * @param sql a query whose first row, if there is one, says that this is the commit that is meant
   */
  lieOnceAfter(sql: string): void;
  /** The first reads behind a lie fail too, that many of them. */
  thenFailReads(count: number): void;
  /** How many commits have lied. */
  lies(): number;
}

const trouble = () => new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_FSYNC');

export function createLyingCommits(): LyingCommits {
  let wanted: string | null = null;
  let failingReads = 0;
  let armedReads = 0;
  let lies = 0;
  const { prepare } = Database.prototype;
  const spy = vi.spyOn(Database.prototype, 'prepare').mockImplementation(function (
    this: Database.Database,
    sql: string,
  ) {
    const statement = prepare.call(this, sql) as Database.Statement<[]>;
    const run = statement.run.bind(statement);
    if (sql === 'BEGIN') {
      statement.run = () => {
        if (failingReads > 0) {
          failingReads -= 1;
          throw trouble();
        }
        return run();
      };
    }
    if (sql === 'COMMIT') {
      statement.run = () => {
        const result = run();
        if (wanted === null || (prepare.call(this, wanted) as Database.Statement<[]>).get() === undefined)
          return result;
        wanted = null;
        lies += 1;
        failingReads = armedReads;
        throw trouble();
      };
    }
    return statement;
  } as typeof prepare);
  onTestFinished(() => spy.mockRestore());
  return {
    lieOnceAfter(sql) {
      wanted = sql;
    },
    thenFailReads(count) {
      armedReads = count;
    },
    lies: () => lies,
  };
}
