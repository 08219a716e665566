/** `message.complete`: how the end of an admission is told, whoever tells it. */
import type { MessageComplete } from './events.ts';
import { finalRow } from './fold.ts';
import { isMarkerId } from './ids.ts';
import type { MarkerCause, Message, Outcome, TurnError, Usage } from './terms.ts';

const STATUS: Record<Outcome, MessageComplete['status']> = {
  completed: 'complete',
  failed: 'error',
  rejected: 'error',
  interrupted: 'interrupted',
  cancelled: 'interrupted',
};

export interface Ending {
  admissionId: string;
  outcome: Outcome;
  /** Rows of the run but the prompt; the last reply of them is what the completion names. */
  rows: readonly Message[];
  usage: Usage | null;
  error?: TurnError | null;
  /** Of a turn that died with its process. */
  cause?: MarkerCause;
}

/** The payload of `message.complete`. The text of a marker is no text of the run. */
export function completionOf({ admissionId, outcome, rows, usage, error, cause }: Ending): MessageComplete {
  const final = finalRow(rows);
  const complete: MessageComplete = {
    text: final && !isMarkerId(final.id) ? final.content : '',
    status: STATUS[outcome],
    outcome,
    admission_id: admissionId,
    message_id: final?.id ?? null,
    usage,
  };
  if (error) complete.error = error;
  if (cause) complete.cause = cause;
  return complete;
}
