/** Who serves this home, and what dead processes have left of theirs. */
import type { NamedProcess, StateView } from '../../db/doctor-view.ts';
import type { Check, Examination } from './examination.ts';
import { counted, type Finding, REPAIR } from './finding.ts';

/** The processes that serve this home now. */
export function servingProcesses(view: StateView, isAlive: Examination['isAlive']): number[] {
  const named: NamedProcess[] = [...view.epochProcesses(), ...view.leases()];
  return [...new Set(named.filter(({ pid, start }) => isAlive({ pid, start })).map(({ pid }) => pid))];
}

export const checkProcesses: Check = async function* ({ view, isAlive }) {
  if (!view) return;
  const living = servingProcesses(view, isAlive);
  const found: Finding[] = [];
  for (const { sessionId, leaseId, pid, start } of view.leases()) {
    if (isAlive({ pid, start })) continue;
    found.push({
      severity: 'warn',
      area: 'processes',
      code: 'dead_lease',
      message: `${sessionId} is held by process ${pid}, which is gone`,
      remedy: `start the server, or ${REPAIR}`,
      session_id: sessionId,
      repair: { kind: 'delete_lease', sessionId, leaseId },
    });
  }
  for (const { sessionId, status, process } of view.openAdmissions()) {
    if (status === 'unknown') {
      found.push({
        severity: 'warn',
        area: 'processes',
        code: 'unknown_prompt',
        message: `nobody knows how a prompt of ${sessionId} ended`,
        remedy: 'open the session and say that it ended, or POST …/prompts/<id>/resolve',
        session_id: sessionId,
      });
    } else if (!process || process.ended || !isAlive(process)) {
      found.push({
        severity: 'warn',
        area: 'processes',
        code: 'dead_turn',
        message: `a turn of ${sessionId} ran when its process${process ? ` ${process.pid}` : ''} died`,
        remedy: 'start the server: it keeps what was said and marks the turn as interrupted',
        session_id: sessionId,
      });
    }
  }
  yield* found;
  if (living.length) {
    yield {
      severity: 'info',
      area: 'processes',
      code: 'served',
      message: `served by process ${living.join(', ')}`,
      remedy: null,
    };
  } else if (found.length === 0) {
    const message = `nobody serves this home, and ${counted(0, 'turn')} are left over`;
    yield { severity: 'ok', area: 'processes', code: 'processes', message, remedy: null };
  }
};
