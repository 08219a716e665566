/**
 * Telling readers that a session changed: its own readers get `session.info`, readers of the list `sessions.changed`. One
 * description at a time for each session, so that nobody is told an older state after a newer one; changes that come
 * meanwhile are told by one more.
 */
import { GaveUp, type Persist } from '../authority/persist.ts';
import { AppError } from '../errors.ts';
import type { SessionDescription } from '../live/attach.ts';
import { plainLiveEvent } from '../live/live-event.ts';
import type { LiveRegistry } from '../live/registry.ts';

export interface AnnounceParts {
  registry: LiveRegistry;
  describe(sessionId: string): Promise<SessionDescription>;
  /** Tries again under storage trouble: a change that is not told would be shown wrong for ever. */
  persist: Persist;
  log: { error(fields: object, message: string): void };
}

/** @param reason one word for the list: what happened */
export type Announce = (sessionId: string, reason: string) => void;

export function createAnnounce({ registry, describe, persist, log }: AnnounceParts): Announce {
  /** Sessions that are being described, with the reasons that came since. */
  const pending = new Map<string, string[]>();

  async function tell(sessionId: string, reason: string): Promise<void> {
    const description = await persist('describe', () => describe(sessionId));
    const live = registry.peek(sessionId);
    const open_requests = [...(live?.requests.values() ?? [])];
    live?.publish(plainLiveEvent('session.info', sessionId, { ...description, open_requests }));
    registry.publishList(sessionId, reason, description.session);
  }

  async function work(sessionId: string, reasons: string[]): Promise<void> {
    try {
      for (let reason = reasons.shift(); reason !== undefined; reason = reasons.pop()) {
        reasons.length = 0; // One description answers all that came before it.
        await tell(sessionId, reason).catch((error) => {
          // Deleted meanwhile, which is told by itself; or the server stops.
          if (error instanceof AppError || error instanceof GaveUp) return;
          log.error({ err: error, session_id: sessionId }, 'a change could not be told');
        });
      }
    } finally {
      pending.delete(sessionId);
    }
  }

  return (sessionId, reason) => {
    if (!registry.isWatched(sessionId)) return;
    const reasons = pending.get(sessionId);
    if (reasons) {
      reasons.push(reason);
      return;
    }
    const first = [reason];
    pending.set(sessionId, first);
    void work(sessionId, first);
  };
}
