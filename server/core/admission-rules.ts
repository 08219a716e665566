/** Whether a prompt may be admitted, claimed or cancelled: decisions over values (AD2, AD3, AD4, AD5, CL1). */
import type { Admission, AdmissionStatus, Mode } from './terms.ts';

export interface AdmitFacts {
  /** The admission that already has this key, if any. */
  existing: Pick<Admission, 'digest'> | null;
  digest: string;
  mode: Mode;
  /** Prompts of the session that wait. */
  queued: number;
  /** Whether a prompt of the session runs, or its fate is unknown. */
  busy: boolean;
  maxQueued: number;
}

export type AdmitVerdict = 'admit' | 'repeat' | 'conflict' | 'queue_full' | 'session_busy';

/** The verdict on a prompt. A repeat is a repeat whatever the queue looks like now (AD2). */
export function judgeAdmission(facts: AdmitFacts): AdmitVerdict {
  if (facts.existing) return facts.existing.digest === facts.digest ? 'repeat' : 'conflict';
  if (facts.mode === 'reject' && (facts.busy || facts.queued > 0)) return 'session_busy';
  if (facts.queued >= facts.maxQueued) return 'queue_full';
  return 'admit';
}

export interface OpenAdmission {
  admission_id: string;
  sequence: number;
  status: Exclude<AdmissionStatus, 'terminal'>;
}

export type Head =
  | { kind: 'empty' }
  | { kind: 'blocked'; by: 'started' | 'unknown'; admissionId: string }
  | { kind: 'queued'; admissionId: string };

/** What the drain of a session may do next: the lowest queued prompt, unless one runs or its fate is unknown. */
export function headOf(open: readonly OpenAdmission[]): Head {
  const blocker = open.find((row) => row.status === 'unknown') ?? open.find((row) => row.status === 'started');
  if (blocker) {
    return {
      kind: 'blocked',
      by: blocker.status === 'unknown' ? 'unknown' : 'started',
      admissionId: blocker.admission_id,
    };
  }
  const first = open.reduce<OpenAdmission | null>((a, b) => (a && a.sequence < b.sequence ? a : b), null);
  return first ? { kind: 'queued', admissionId: first.admission_id } : { kind: 'empty' };
}

export type CancelVerdict = 'cancel' | 'repeat' | 'stale_generation' | 'unknown_execution';

/** The verdict on cancelling a prompt in this state. */
export function judgeCancel(status: AdmissionStatus): CancelVerdict {
  switch (status) {
    case 'queued':
      return 'cancel';
    case 'terminal':
      return 'repeat';
    case 'started':
      return 'stale_generation';
    case 'unknown':
      return 'unknown_execution';
  }
}
