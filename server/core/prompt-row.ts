/** The row of a prompt: what a person wrote, at the time of its claim. The same in every store. */
import type { Admission, Message } from './terms.ts';

/** @param timestamp epoch seconds of the claim */
export function promptRow(admission: Pick<Admission, 'run_id' | 'text' | 'attachments'>, timestamp: number): Message {
  const row: Message = {
    id: `${admission.run_id}.0`,
    role: 'user',
    content: admission.text,
    timestamp,
    run_id: admission.run_id,
  };
  if (admission.attachments.length) row.attachments = admission.attachments;
  return row;
}
