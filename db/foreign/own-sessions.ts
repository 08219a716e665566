/** What a list that shows sessions of other programs beside ours must know of ours: which ids we have, and since when. */
import { sql } from 'drizzle-orm';
import type { StateDb } from '../client.ts';

export interface OwnSessions {
  /** Those of these ids that are sessions of ours. Asked anew only when a session was made or deleted. */
  among(ids: ReadonlySet<string>): Promise<ReadonlySet<string>>;
  /** Newest activity (epoch seconds) of sessions of ours, as the list is ordered by it. */
  activities(ids: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

export function createOwnSessions(state: StateDb): OwnSessions {
  let kept: { ids: ReadonlySet<string>; made: string; ours: ReadonlySet<string> } | null = null;

  return {
    among: (ids) =>
      state.read((db) => {
        const [counts] = db.all<{ made: string }>(sql`
          SELECT coalesce((SELECT max(rowid) FROM sessions), 0) || '.' ||
            coalesce((SELECT max(rowid) FROM session_tombstones), 0) AS made`);
        const made = counts!.made;
        if (kept?.ids === ids && kept.made === made) return kept.ours;
        const rows = db.all<{ id: string }>(
          sql`SELECT id FROM sessions WHERE id IN (SELECT value FROM json_each(${JSON.stringify([...ids])}))`,
        );
        kept = { ids, made, ours: new Set(rows.map(({ id }) => id)) };
        return kept.ours;
      }),

    activities: (ids) =>
      state.read((db) => {
        const rows = db.all<{ id: string; activity: number | null }>(
          sql`SELECT id, last_activity_at AS activity FROM sessions
            WHERE id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`,
        );
        return new Map(rows.map(({ id, activity }) => [id, activity ?? 0]));
      }),
  };
}
