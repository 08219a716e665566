/** The last line of a journal whose run can write it no more, and its first where it never got one (JO3). */
import type { JournalRead, JournalStore } from '../../db/files/journal.ts';
import {
  journalLine,
  type MessageComplete,
  type RunEvent,
  type StampedEvent,
  serialiseEnvelope,
  stampEvent,
} from '../core/events.ts';
import type { Admission } from '../core/terms.ts';

/**
 * Ends the journal durably: a torn tail is copied aside and cut, then the terminal event follows.
 * @param read the journal as it was found; null when there is none
 * @param at epoch seconds of the line
 * @returns the terminal event with its place
 */
export async function sealJournal(
  journals: Pick<JournalStore, 'reopen'>,
  admission: Admission,
  read: JournalRead | null,
  complete: MessageComplete,
  at: number,
): Promise<StampedEvent> {
  const { session_id, run_id } = admission;
  const { writer, kept } = await journals.reopen(session_id, run_id, read, at);
  let seq = kept;
  const lines: string[] = [];
  const stamp = (event: RunEvent): StampedEvent => {
    seq += 1;
    const stamped = stampEvent(event, { session_id, run_id, seq }, at);
    lines.push(`${journalLine(stamped, serialiseEnvelope(stamped))}\n`);
    return stamped;
  };
  try {
    if (seq === 0) stamp(startOf(admission));
    const sealed = stamp({ type: 'message.complete', payload: complete });
    await writer.append(lines.join(''));
    await writer.sync();
    return sealed;
  } finally {
    await writer.close();
  }
}

/** The first event of a run whose journal was never written. */
export const startOf = (admission: Admission): RunEvent => ({
  type: 'run.start',
  payload: {
    admission_id: admission.admission_id,
    input: admission.text,
    generation: admission.generation!,
    timestamp: admission.started_at!,
    model: '',
    ...(admission.attachments.length ? { attachments: admission.attachments } : {}),
  },
});
