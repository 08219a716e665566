/**
 * What of a session can be copied or taken away: what is displayed and settled. The rows of a turn that waits, runs or
 * is of unknown fate belong to that turn alone until it has ended.
 */
import { type SidecarRow, toSidecarRow } from '../../db/files/sidecar-store.ts';
import type { SessionRow, Stores } from '../../db/stores.ts';
import { givenUp } from '../core/marker.ts';
import { AppError } from '../errors.ts';
import type { LiveRegistry } from '../live/registry.ts';
import type { Recovery } from '../recovery/recovery.ts';
import type { Sessions } from './sessions.ts';
import type { Transcripts } from './transcripts.ts';

export interface SettledParts {
  stores: Pick<Stores, 'sessions'>;
  sessions: Pick<Sessions, 'get'>;
  transcripts: Transcripts;
  recovery: Pick<Recovery, 'heal' | 'needsHealing'>;
  registry: LiveRegistry;
}

export interface Settled {
  session: SessionRow;
  rows: readonly SidecarRow[];
}

/** @throws AppError session_not_found */
export type ReadSettled = (sessionId: string) => Promise<Settled>;

export function createReadSettled(parts: SettledParts): ReadSettled {
  const { transcripts, recovery } = parts;

  async function row(sessionId: string): Promise<SessionRow> {
    const session = await parts.stores.sessions.get(sessionId);
    if (!session) throw new AppError('session_not_found');
    return session;
  }

  return async (sessionId) => {
    await parts.sessions.get(sessionId); // 404 first, and what a dead process left is resolved.
    const before = await row(sessionId);
    const isIdle = before.open.every((one) => one.status === 'queued');
    if (isIdle && recovery.needsHealing(await transcripts.read(sessionId))) await recovery.heal(sessionId);
    const { rows, armed } = await transcripts.read(sessionId);
    const session = await row(sessionId);
    // On both sides of the read: a turn may have begun before it, and another one ended.
    const open = new Set([...before.open, ...session.open].map((one) => one.run_id));
    const live = parts.registry.peek(sessionId)?.run;
    if (live) open.add(live.runId);
    const settled = rows.filter((one) => one.runId === null || !open.has(one.runId));
    // Only here its output is looked for.
    const waits = ({ json }: SidecarRow): boolean => json.includes('"recovery":"pending"');
    return {
      session,
      rows: armed ? settled.map((one) => (waits(one) ? toSidecarRow(givenUp(JSON.parse(one.json))) : one)) : settled,
    };
  };
}
