/**
 * Where a session stands at the moment in which a gateway client begins to get its events: what is stored, what the
 * running turn has shown, what is asked. The two fit exactly: nothing of it comes again as an event, and nothing is in
 * neither (GW4).
 */
import { AppError } from '../errors.ts';
import type { GatewayClient, GatewaySession, GatewaySessions } from './gateway-sessions.ts';
import type { OpenRequest } from './live-session.ts';
import { type RunView, runViewOf } from './run-view.ts';

export interface StandingParts<Session> {
  sessions: Pick<GatewaySessions, 'join' | 'get' | 'keptDuring'>;
  /** What is stored of a session: its view, and with `rows` its transcript as JSON texts with commas between them. */
  read(sessionId: string, rows: boolean): Promise<{ session: Session; rows: string }>;
  /** What other processes did is followed first. */
  look(sessionId: string): Promise<void>;
  /** Resolves so many milliseconds later. */
  pause(ms: number): Promise<void>;
}

export interface Standing<Session> {
  /** Null for a draft. */
  session: Session | null;
  /** Rows of the transcript as JSON texts with commas between them. */
  rows: string;
  run: RunView | null;
  requests: OpenRequest[];
  /** The last event before those that the client will get. */
  latestSeq: number;
}

/** @throws AppError runtime_not_live when the session was given back meanwhile */
export type Enter<Session> = (
  session: GatewaySession,
  client: GatewayClient,
  rows: boolean,
) => Promise<Standing<Session>>;

/** A turn that cannot be put away for now is looked at ever less often, in milliseconds. */
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 250;

export function createEnter<Session>({ sessions, read, look, pause }: StandingParts<Session>): Enter<Session> {
  // To find out where it stands may take longer than the grace.
  return (session, client, withRows) => sessions.keptDuring(session, () => standing(session, client, withRows));

  async function standing(session: GatewaySession, client: GatewayClient, withRows: boolean) {
    const { live, sessionId, runtimeId } = session;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      sessions.get(runtimeId); // It may have been closed while this waited.
      if (session.draft === null) await look(sessionId);
      const { run, lastGeneration, infos } = live;
      const stored = session.draft === null ? await read(sessionId, withRows) : { session: null, rows: '' };
      const isSame = live.run === run && live.lastGeneration === lastGeneration && live.infos === infos;
      // A turn whose end is told already and that is not put away yet is neither in the rows nor still to come.
      if (isSame && session.isCurrent() && !run?.log?.ended()) {
        sessions.join(session, client);
        return {
          ...stored,
          run: runViewOf(live),
          requests: [...live.requests.values()],
          latestSeq: session.window.latest(),
        };
      }
      if (client.subscriber.ended) throw new AppError('runtime_not_live');
      await pause(pauseMs);
    }
  }
}
