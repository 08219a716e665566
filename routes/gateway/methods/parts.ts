/** What the methods of the gateway are made of, and the shapes that several of them share. */
import Type from 'typebox';
import type { Draft } from '../../../server/authority/admit.ts';
import type { Stop } from '../../../server/authority/stop.ts';
import type { Mode } from '../../../server/core/terms.ts';
import type { Intake } from '../../../server/limits/intake.ts';
import type { EventWindows } from '../../../server/live/event-window.ts';
import type { GatewaySessions } from '../../../server/live/gateway-sessions.ts';
import type { Enter } from '../../../server/live/gateway-standing.ts';
import type { Requests } from '../../../server/live/requests.ts';
import type { Compacted } from '../../../server/sessions/compaction.ts';
import type { Edits } from '../../../server/sessions/edits.ts';
import type { Fork } from '../../../server/sessions/fork.ts';
import type { Prompts } from '../../../server/sessions/prompts.ts';
import type { Seed } from '../../../server/sessions/seed.ts';
import type { Sessions } from '../../../server/sessions/sessions.ts';
import type { Titled } from '../../../server/sessions/titled.ts';
import type { SessionView } from '../../../server/sessions/view.ts';

export interface GatewayMethodParts {
  live: GatewaySessions;
  enter: Enter<SessionView>;
  windows: EventWindows;
  sessions: Sessions;
  prompts: Prompts;
  edits: Edits;
  fork: Fork;
  intake: Intake;
  /** Has a session compacted; `pending` when that takes longer than a request may. It goes on by itself then. */
  compress(sessionId: string, focus: string | null): Promise<Compacted | 'pending'>;
  seed: Seed;
  stop: Stop;
  requests: Requests;
  /** What a prompt does when a turn runs and it does not say so itself. */
  busyMode(): Mode;
  /** What a client wants a session to be, checked. @throws AppError unknown_model, bad_workspace */
  draftOf(fields: Draft): Promise<Draft>;
  titled: Titled;
  /** Throws where a session is another program's. */
  assertOwn(sessionId: string): Promise<void>;
  /** Resolves when what was accepted is claimed or waits, at most as long as a request may take. */
  claimed(sessionId: string): Promise<void>;
  /** Resolves when no turn of the session is worked on, at most as long as a request may take. */
  turnEnded(sessionId: string): Promise<void>;
  version: string;
  /** Changes with each start of the server: sequence numbers of before mean nothing. */
  epoch: string;
}

/** The id of a live session. */
export const RuntimeId = Type.String({ minLength: 1, maxLength: 128 });
/** The id under which a session is stored. */
export const StoredId = Type.String({ minLength: 1, maxLength: 128 });
/** Width of a terminal: clients of other kinds of this gateway send it, and nothing here depends on it. */
export const Cols = Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 }));
