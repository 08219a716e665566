/** What the agents of others offered when they last ran, so that it can be listed before they run again. */
import { sql } from 'drizzle-orm';
import type { StateDb } from './client.ts';
import { agentOffers } from './schema.ts';
import { given, statement } from './statement.ts';

export interface AgentOfferStore {
  /** Offers are JSON. */
  all(): Promise<{ agent: string; offer: string }[]>;
  put(agent: string, offer: string, now: number): Promise<void>;
}

const ALL = statement((db) => db.select().from(agentOffers).prepare());
const PUT = statement((db) =>
  db
    .insert(agentOffers)
    .values({ agent: given('agent'), offer: given('offer'), updatedAt: given('now') })
    .onConflictDoUpdate({
      target: agentOffers.agent,
      set: { offer: sql`excluded.offer`, updatedAt: sql`excluded.updated_at` },
    })
    .prepare(),
);

export function createAgentOfferStore(state: StateDb): AgentOfferStore {
  return {
    all: () =>
      state.read((db) =>
        ALL(db)
          .all({})
          .map(({ agent, offer }) => ({ agent, offer })),
      ),
    put: (agent, offer, now) =>
      state.write((db) => {
        PUT(db).run({ agent, offer, now });
      }),
  };
}
