/** Full-text search over all conversations. */
import type { MessageStore, SearchHit } from '../../db/stores.ts';

export type Search = (q: string, limit: number) => Promise<SearchHit[]>;

export const createSearch =
  (messages: MessageStore): Search =>
  (q, limit) =>
    messages.search(q, limit);
