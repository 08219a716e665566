/** An admission as a client sees it. */
import type { Admission, TurnError } from '../core/terms.ts';
import { wellFormed } from '../core/text.ts';

export interface AdmissionView {
  admission_id: string;
  request_id: string;
  session_id: string;
  run_id: string;
  sequence: number;
  status: Admission['status'];
  outcome: Admission['outcome'];
  /** Place in the queue, 0 next; null when it does not wait. */
  position: number | null;
  generation: number | null;
  created_at: number;
  text: string;
  /** Ids of what came with it, where anything did. */
  attachments?: string[];
  error?: TurnError;
}

/** Longest text of a waiting prompt where all of them are told at once. */
const EXCERPT = 500;

/** A waiting prompt as a queue shows it: with the beginning of its text; GET prompts has the whole. */
export function toQueuedView(admission: Admission, index: number): AdmissionView {
  const view = toAdmissionView(admission, index);
  if (view.text.length > EXCERPT) view.text = wellFormed(`${view.text.slice(0, EXCERPT)}…`);
  return view;
}

/**
 * @param index place among the waiting prompts of its session, in order
 */
export function toAdmissionView(admission: Admission, index?: number): AdmissionView {
  const view: AdmissionView = {
    admission_id: admission.admission_id,
    request_id: admission.request_id,
    session_id: admission.session_id,
    run_id: admission.run_id,
    sequence: admission.sequence,
    status: admission.status,
    outcome: admission.outcome,
    position: admission.status === 'queued' ? (index ?? null) : null,
    generation: admission.generation,
    created_at: admission.created_at,
    text: admission.text,
  };
  if (admission.attachments.length > 0) view.attachments = admission.attachments;
  if (admission.error) view.error = admission.error;
  return view;
}
