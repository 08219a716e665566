/** Sessions by their exact title, for whoever names one so. */
import type { Sessions } from './sessions.ts';
import type { SessionView } from './view.ts';

/**
 * Sessions with exactly this title, pinned ones first, then the newest.
 * @param limit how many at most
 */
export type Titled = (title: string, options: { archived: 'no' | 'yes'; limit: number }) => Promise<SessionView[]>;

const PAGE = 200;

export function createTitled({ list }: Pick<Sessions, 'list'>): Titled {
  return async (title, { archived, limit }) => {
    const found: SessionView[] = [];
    const query = { limit: PAGE, archived, q: title, project_id: null, source: null };
    // The list finds titles with these words; there may be many of them before the one that is meant.
    for (let page = await list({ ...query, cursor: null }); ; page = await list({ ...query, cursor: page.next })) {
      found.push(...page.sessions.filter((one) => one.title === title));
      if (found.length >= limit || page.next === null) return found.slice(0, limit);
    }
  };
}
