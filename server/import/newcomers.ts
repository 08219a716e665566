/**
 * Conversations that are new here. Each is visible only whole; several of them share a transaction, since to commit one
 * costs as much as to write a conversation (IM1). A server that runs beside waits for it, so it stays short.
 */
import type { ImportRecord, ImportStore, ImportTurn, NewConversation } from '../../db/import-store.ts';
import type { SessionRow } from '../../db/stores.ts';

export interface Newcomer {
  made: NewConversation;
  created(session: SessionRow, record: ImportRecord): Promise<void>;
  /** Another import has brought it meanwhile. */
  moved(): void;
}

export interface Newcomers {
  /** Stores it, now or with the next ones. */
  add(newcomer: Newcomer): Promise<void>;
  /** Whether one with this id there is not stored yet. */
  has(originalId: string): boolean;
  /** Stores all that wait. */
  flush(): Promise<void>;
}

/** Most conversations of one transaction, and the rows after which it is full. */
const MOST = 16;
const ENOUGH_ROWS = 500;

/** @param fresh an id that is likely to be free, for one whose own is taken */
export function createNewcomers(
  store: Pick<ImportStore, 'create'>,
  turn: () => ImportTurn,
  fresh: () => string,
): Newcomers {
  let waiting: Newcomer[] = [];
  let rows = 0;

  async function flush(): Promise<void> {
    let left = waiting;
    waiting = [];
    rows = 0;
    while (left.length > 0) {
      const tried = left;
      const outcomes = await store.create(
        tried.map(({ made }) => made),
        turn(),
      );
      left = [];
      for (const [at, outcome] of outcomes.entries()) {
        const newcomer = tried[at]!;
        if (outcome.kind === 'created') await newcomer.created(outcome.session, outcome.record);
        else if (outcome.kind === 'moved') newcomer.moved();
        else left.push({ ...newcomer, made: { ...newcomer.made, session_id: fresh() } });
      }
    }
  }

  return {
    async add(newcomer) {
      waiting.push(newcomer);
      rows += newcomer.made.rows.length;
      if (waiting.length >= MOST || rows >= ENOUGH_ROWS) await flush();
    },
    has: (originalId) => waiting.some(({ made }) => made.record.original_id === originalId),
    flush,
  };
}
