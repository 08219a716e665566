/** What the journal of a dead turn says, whoever wrote it: the evidence that recovery goes by. */
import type { JournalStore } from '../../db/files/journal.ts';
import type { DeadJournal } from '../core/dead-turn.ts';
import type { MessageComplete } from '../core/events.ts';
import { createFold, type FoldEnd } from '../core/fold.ts';
import { foldForeign } from '../core/foreign-journal/fold-foreign.ts';
import { isPromptId, isRunId } from '../core/ids.ts';
import { isMarker } from '../core/marker.ts';
import type { Message } from '../core/terms.ts';

type Reading = Pick<JournalStore, 'read' | 'readForeign'>;

const NOTHING: DeadJournal = { state: 'missing', rows: [], ended: false, completed: false, error: null };

/**
 * Reads the journal of a turn that no longer runs. Never writes to it.
 * @returns its rows without the prompt and without a marker
 */
export async function readDeadJournal(journals: Reading, sessionId: string, runId: string): Promise<DeadJournal> {
  if (!isRunId(runId)) return NOTHING;
  const foreign = await journals.readForeign(sessionId, runId);
  if (foreign.kind !== 'there') return { ...NOTHING, state: foreign.kind };
  if (foreign.version === 1) {
    const run = foldForeign(foreign.records, { sessionId, runId });
    const completed = run.terminal === 'completed';
    const ended = run.terminal !== null;
    return { state: 'there', rows: run.rows, ended, completed, error: run.error?.row ?? null };
  }
  return ofOurs(journals, sessionId, runId);
}

async function ofOurs(journals: Reading, sessionId: string, runId: string): Promise<DeadJournal> {
  const read = await journals.read(sessionId, runId);
  if (!read) return NOTHING;
  const fold = createFold(runId);
  for (const { event } of read.records) fold.apply(event, event.created_at);
  const last = read.records.at(-1)?.event;
  const ended = last?.type === 'message.complete' ? last : null;
  fold.end(ended ? endOf(ended.payload) : { kind: 'dead', cause: 'lost_bookkeeping' }, ended?.created_at ?? 0);
  const rows = fold.rows().filter((row): row is Message => !isPromptId(row.id) && !isMarker(row));
  // What recovery itself wrote for a journal that was not there is no journal.
  const isStub = ended?.payload.cause !== undefined && rows.length === 0;
  if (isStub) return { ...NOTHING, state: 'empty' };
  const completed = ended?.payload.outcome === 'completed';
  return { state: 'there', rows, ended: ended !== null, completed, error: null };
}

/** How the rows of a sealed journal end. */
export function endOf(complete: MessageComplete): FoldEnd {
  if (complete.status === 'complete') return { kind: 'complete' };
  if (complete.cause) {
    return { kind: 'dead', cause: complete.cause, armed: complete.error?.recovery === 'pending' };
  }
  if (complete.status === 'error' && complete.error) return { kind: 'error', error: complete.error };
  return complete.error ? { kind: 'interrupted', error: complete.error } : { kind: 'interrupted' };
}
