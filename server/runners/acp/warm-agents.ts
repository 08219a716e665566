/**
 * One agent process for each session that needs one, kept warm between turns. Owns how long: an idle one ends after a
 * while, and the one that was idle longest when there are too many (AC5).
 */
import { timerMs } from '../../core/timer-ms.ts';
import type { LiveAgentSession } from './agent-sessions.ts';
import type { AgentTarget } from './agent-target.ts';
import { type AgentConnection, type ConnectParts, connectAgent } from './connection.ts';
import type { Failed } from './failure.ts';

export interface WarmAgentsParts extends Pick<ConnectParts, 'programs' | 'secrets' | 'version' | 'startTimeoutS'> {
  /** The environment of every agent, before what the configuration adds. */
  env: Readonly<Record<string, string>>;
  idleS: number;
  /** How many there are at most; those that work are never ended for it. */
  most: number;
  log: { debug(fields: object, message: string): void };
}

export interface AgentPlace {
  target: AgentTarget;
  /** Absolute path of the folder that it works in. */
  cwd: string;
  hasWorkspace: boolean;
}

/** An agent that runs and was greeted. */
export interface WarmAgent {
  connection: AgentConnection;
  /** What it has open for us. */
  session: LiveAgentSession | null;
  /** Ends it: it is not used again. Resolves when it is gone. */
  end(): Promise<void>;
}

export interface WarmAgents {
  /**
   * The agent of a session, started if it must be. It is busy until it is given back.
   * @param stop ends a start that has not come to its end
   */
  take(sessionId: string, place: AgentPlace, stop: AbortSignal): Promise<WarmAgent | Failed>;
  give(sessionId: string): void;
  /** Ends the one of a session, and waits until it is gone. */
  end(sessionId: string): Promise<void>;
}

interface Slot extends WarmAgent {
  /** What it was started for. */
  key: string;
  /** Runs while nobody uses it. */
  idle: NodeJS.Timeout | null;
}

export function createWarmAgents(parts: WarmAgentsParts): WarmAgents {
  const { programs, secrets, version, startTimeoutS, idleS, most, log } = parts;
  /** By session; the one that was used last stands last. */
  const slots = new Map<string, Slot>();

  const start = async (
    sessionId: string,
    place: AgentPlace,
    key: string,
    stop: AbortSignal,
  ): Promise<Slot | Failed> => {
    const { target, cwd: folder, hasWorkspace } = place;
    const env = { ...parts.env, ...target.env };
    const connection = await connectAgent({
      programs,
      target,
      secrets,
      env,
      folder,
      hasWorkspace,
      version,
      startTimeoutS,
      stop,
    });
    if ('kind' in connection) return connection;
    const slot: Slot = {
      key,
      connection,
      session: null,
      idle: null,
      end() {
        if (slot.idle) clearTimeout(slot.idle);
        if (slots.get(sessionId) === slot) slots.delete(sessionId);
        return connection.close();
      },
    };
    slots.set(sessionId, slot);
    void connection.ended.then((how) => {
      log.debug({ session_id: sessionId, agent: target.name, how }, 'an agent has ended');
      void slot.end();
    });
    return slot;
  };

  return {
    async take(sessionId, place, stop) {
      const key = JSON.stringify([place.target, place.cwd, place.hasWorkspace]);
      const found = slots.get(sessionId);
      if (found?.idle) clearTimeout(found.idle);
      if (found?.key === key && found.connection.isOpen()) {
        found.idle = null;
        return found;
      }
      await found?.end();
      return start(sessionId, place, key, stop);
    },

    give(sessionId) {
      const slot = slots.get(sessionId);
      if (!slot) return;
      slots.delete(sessionId);
      slots.set(sessionId, slot);
      slot.idle = setTimeout(() => void slot.end(), timerMs(idleS));
      slot.idle.unref();
      const idle = [...slots.values()].filter((one) => one.idle !== null);
      for (const one of idle.slice(0, Math.max(0, slots.size - most))) void one.end();
    },

    end: async (sessionId) => slots.get(sessionId)?.end(),
  };
}
