/**
 * What is allowed without asking: for good (the patterns of `approvals.allow`, kept in the configuration) and for one
 * session while this server runs (in memory). Owns both lists (AP3, AP4).
 */
import type { ConfigFile } from '../../db/files/config-file.ts';
import { type AllowableCall, type AllowPattern, allows, readAllowPattern } from '../core/approval-rules.ts';

export interface AllowListParts {
  /** `approvals.allow` as it was when the server started. */
  patterns: readonly string[];
  file: ConfigFile;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

export interface AllowList {
  allows(sessionId: string, call: AllowableCall): boolean;
  /** Allows exactly this call again, in this session, until the server ends. */
  allowInSession(sessionId: string, call: AllowableCall): void;
  /** Allows a pattern from now on, and writes it down. It holds until the server ends even if that fails, which is logged. */
  allowAlways(pattern: string): Promise<void>;
}

/** Sessions whose permissions are remembered; beyond it the one that was used longest ago is asked again. */
const MOST_SESSIONS = 1000;

export function createAllowList({ patterns, file, log }: AllowListParts): AllowList {
  const always = patterns.flatMap((text) => readAllowPattern(text) ?? []);
  const sessions = new Map<string, Set<string>>();

  return {
    allows(sessionId, call) {
      return sessions.get(sessionId)?.has(keyOf(call)) || always.some((pattern: AllowPattern) => allows(pattern, call));
    },

    allowInSession(sessionId, call) {
      const own = sessions.get(sessionId) ?? new Set();
      own.add(keyOf(call));
      sessions.delete(sessionId);
      sessions.set(sessionId, own);
      if (sessions.size > MOST_SESSIONS) sessions.delete(sessions.keys().next().value!);
    },

    async allowAlways(pattern) {
      const read = readAllowPattern(pattern);
      if (read) always.push(read);
      try {
        const changed = await file.addTo('approvals', 'allow', pattern);
        if (changed === 'unfit')
          log.warn({ pattern }, 'config.yaml has no place for a permission: it holds until the end');
        else log.info({ pattern }, 'allowed from now on');
      } catch (error) {
        // The person allowed it: that a disk is full does not stop the turn. They are asked again after a restart.
        log.warn({ err: error, pattern }, 'a permission could not be written to config.yaml');
      }
    },
  };
}

const keyOf = ({ tool, command }: AllowableCall): string => JSON.stringify([tool, command]);
