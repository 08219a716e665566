/** Why a queue does not move although something waits in it: what those who wait for a prompt are told (CL2). */
import type { Stores } from '../../db/stores.ts';
import { headOf } from '../core/admission-rules.ts';
import type { LiveRegistry } from '../live/registry.ts';

/** @returns the reason of a refused check, or `unknown_execution`; null when it moves, or nothing waits */
export type WhyStuck = (sessionId: string) => Promise<string | null>;

export function createWhyStuck(stores: Pick<Stores, 'sessions'>, registry: Pick<LiveRegistry, 'peek'>): WhyStuck {
  return async (sessionId) => {
    const open = (await stores.sessions.get(sessionId))?.open ?? [];
    if (!open.some((one) => one.status === 'queued')) return null;
    const head = headOf(open);
    if (head.kind === 'blocked') return head.by === 'unknown' ? 'unknown_execution' : null;
    return registry.peek(sessionId)?.paused ?? null;
  };
}
