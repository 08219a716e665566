/** What an agent of others was told of our sessions (AC3): a cache, whose loss costs the agent a second telling. */
import { eq, sql } from 'drizzle-orm';
import type { StateDb } from './client.ts';
import { agentSessions } from './schema.ts';
import { given, statement } from './statement.ts';

export interface AgentSessionRecord {
  /** Name of the agent. */
  agent: string;
  /** The agent's own id of its session. */
  agent_session_id: string;
  /** Absolute path that it was made for. */
  cwd: string;
  /** The last run that it was given. */
  seen_run: string;
  /** Whether it has answered that one, in whatever way: only then it surely knows of it. */
  answered: boolean;
}

export interface AgentSessionStore {
  get(sessionId: string): Promise<AgentSessionRecord | null>;
  put(sessionId: string, record: AgentSessionRecord, now: number): Promise<void>;
}

const OF_SESSION = statement((db) =>
  db
    .select()
    .from(agentSessions)
    .where(eq(agentSessions.sessionId, given('session')))
    .prepare(),
);
const PUT = statement((db) =>
  db
    .insert(agentSessions)
    .values({
      sessionId: given('session'),
      agent: given('agent'),
      agentSessionId: given('agentSessionId'),
      cwd: given('cwd'),
      seenRun: given('seenRun'),
      answered: given('answered'),
      updatedAt: given('now'),
    })
    .onConflictDoUpdate({
      target: agentSessions.sessionId,
      set: {
        agent: sql`excluded.agent`,
        agentSessionId: sql`excluded.agent_session_id`,
        cwd: sql`excluded.cwd`,
        seenRun: sql`excluded.seen_run`,
        answered: sql`excluded.answered`,
        updatedAt: sql`excluded.updated_at`,
      },
    })
    .prepare(),
);

export function createAgentSessionStore(state: StateDb): AgentSessionStore {
  return {
    get: (session) =>
      state.read((db) => {
        const row = OF_SESSION(db).get({ session });
        if (!row) return null;
        const { agent, agentSessionId, cwd, seenRun, answered } = row;
        return { agent, agent_session_id: agentSessionId, cwd, seen_run: seenRun, answered };
      }),

    put: (session, { agent, agent_session_id, cwd, seen_run, answered }, now) =>
      state.write((db) => {
        PUT(db).run({ session, agent, agentSessionId: agent_session_id, cwd, seenRun: seen_run, answered, now });
      }),
  };
}
