/**
 * Admission: a prompt is accepted by one durable transaction and acknowledged only after it (AD1). The same key and
 * payload give the first receipt again, whatever its state (AD2).
 */
import { createHash } from 'node:crypto';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import type { AdmitOutcome, Cut, NewAdmission, NewSession, Stores } from '../../db/stores.ts';
import type { Admission, Mode } from '../core/terms.ts';
import { utf8Length, wellFormed } from '../core/text.ts';
import { AppError } from '../errors.ts';
import type { Leases } from '../lease/leases.ts';
import { notOwned, unlessElsewhere } from '../lease/not-owned.ts';
import type { LiveRegistry } from '../live/registry.ts';
import type { ReachCrashPoint } from './crash-points.ts';
import type { Drain } from './drain.ts';

export interface Submission {
  sessionId: string;
  text: string;
  attachments: string[];
  mode: Mode;
  /** The caller's key, or null for a new one. */
  requestId: string | null;
  principalId: string;
  replaces?: Replacement;
  /** What the session is stored with, in the same step: for one that has no row before its first prompt. */
  draft?: Draft;
}

export interface Draft {
  title: string | null;
  model: string | null;
  workspace: string | null;
  source: string;
}

/** What a prompt takes the place of (ED3). */
export interface Replacement {
  /** What is taken back of the transcript in the same step. */
  cut: Cut;
  /** What makes a repeat the same. */
  digest: string;
  /** Brings the files behind the cut, before the prompt may run. */
  follow(): Promise<void>;
}

export interface AdmitParts {
  stores: Pick<Stores, 'admissions'>;
  registry: LiveRegistry;
  leases: Leases;
  drain: Drain;
  /** Which of these attachments a session does not have. */
  missingAttachments(sessionId: string, ids: readonly string[]): Promise<string[]>;
  reached: ReachCrashPoint;
  maxQueued: number;
  isDraining(): boolean;
  now(): number;
  /** 32 hexadecimal digits, new each time. */
  newRunId(): string;
  newId(): string;
  onChange(sessionId: string, reason: string): void;
}

/** Longest prompt, in bytes of UTF-8. */
export const MAX_PROMPT_BYTES = 1_048_576;

type Limits = Parameters<Stores['admissions']['admit']>[1];

export type Admit = (submission: Submission) => Promise<Admission>;

/** @throws AppError for every refusal of the catalogue; nothing is stored then */
export function createAdmit(parts: AdmitParts): Admit {
  const { stores, registry, leases } = parts;

  const found = ({ principal_id, session_id, request_id }: NewAdmission): Promise<Admission | null> =>
    stores.admissions.byRequest(principal_id, session_id, request_id);

  /** While the server stops nothing new is accepted; what was accepted has its receipt as ever (AD2). */
  async function repeated(input: NewAdmission): Promise<Admission> {
    const existing = await found(input);
    if (!existing) throw new AppError('draining');
    if (existing.digest !== input.digest) throw new AppError('admission_conflict');
    return existing;
  }

  /**
   * Refuses attachments that are not there (AT5). A repeat has its receipt whatever became of them (AD2), and a retry
   * says again what was said.
   */
  async function checkAttachments(input: NewAdmission, replaces: Replacement | undefined): Promise<void> {
    if (input.attachments.length === 0 || replaces?.digest === RETRY_DIGEST) return;
    const [missing] = await parts.missingAttachments(input.session_id, input.attachments);
    if (missing !== undefined && !(await found(input))) throw new AppError('unknown_attachment');
  }

  /** Admits. A commit that reported failure may have happened: it is looked for before anybody is told that it failed. */
  async function admitOnce(input: NewAdmission, limits: Limits): Promise<AdmitOutcome> {
    try {
      return await stores.admissions.admit(input, limits);
    } catch (error) {
      if (storageTroubleKind(error) === null) throw error;
      const admission = await found(input).catch(() => null);
      if (admission?.admission_id !== input.admission_id) throw error;
      return { kind: 'admitted', admission };
    }
  }

  /** Stops the turn that runs, unless it is that of this very prompt; what it had said is kept. */
  function stopOther(sessionId: string, admissionId: string): void {
    const run = registry.peek(sessionId)?.run;
    if (run && run.admissionId !== admissionId && !run.agentEnded) run.stop.abort();
  }

  return async (submission) => {
    const { sessionId, attachments, mode, replaces, draft } = submission;
    const text = wellFormed(submission.text);
    checkPayload(text);
    const input: NewAdmission = {
      admission_id: parts.newId(),
      request_id: submission.requestId ?? parts.newId(),
      principal_id: submission.principalId,
      session_id: sessionId,
      run_id: parts.newRunId(),
      text,
      attachments,
      mode,
      digest: replaces?.digest ?? digestOf(text, attachments, mode),
      now: parts.now(),
    };
    if (parts.isDraining()) return repeated(input);
    await checkAttachments(input, replaces);
    const release = registry.hold(sessionId);
    try {
      const lease = leases.request(registry.open(sessionId));
      const limits = {
        maxQueued: parts.maxQueued,
        lease,
        ...(replaces && { cut: replaces.cut }),
        ...(draft && { draft: newSession(sessionId, draft, input.now) }),
      };
      const outcome = await admitOnce(input, limits);
      const admission = await admitted(outcome, sessionId, leases);
      // A repeat of its own ids is no repeat: the first try of this very write had happened after all.
      if (admission.admission_id === input.admission_id) {
        parts.reached('admitted');
        await replaces?.follow();
        // Only now: a prompt that was refused stops nothing, and one that is sent twice stops one turn.
        if (mode === 'interrupt') stopOther(sessionId, admission.admission_id);
        parts.onChange(sessionId, 'queued');
      }
      // Also for a repeat: what made the first one pause may be gone.
      if (admission.status === 'queued') parts.drain.arm(sessionId);
      return admission;
    } finally {
      release();
    }
  };
}

function checkPayload(text: string): void {
  if (text.trim() === '') throw new AppError('empty_prompt');
  if (utf8Length(text) > MAX_PROMPT_BYTES) {
    throw new AppError('too_large', `The prompt is longer than ${MAX_PROMPT_BYTES} bytes.`);
  }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The digest of a payload: what makes a repeat the same prompt. */
const digestOf = (text: string, attachments: readonly string[], mode: Mode): string =>
  sha256(JSON.stringify([text, attachments, mode]));

/** A retry says no text of its own, and after it another prompt may be the last one: all retries are the same. */
export const RETRY_DIGEST = sha256('retry');

/** The digest of a prompt that takes the place of another one. @param place of the prompt that it replaces */
export const resendDigest = (place: object, text: string, attachments: readonly string[]): string =>
  sha256(JSON.stringify([text, attachments, 'replaces', place]));

const newSession = (session_id: string, draft: Draft, now: number): NewSession => ({
  session_id,
  ...draft,
  project_id: null,
  now,
  create_key: null,
  create_digest: null,
});

async function admitted(outcome: AdmitOutcome, sessionId: string, leases: Leases): Promise<Admission> {
  switch (outcome.kind) {
    case 'admitted':
    case 'repeat':
      return outcome.admission;
    case 'not_found':
      throw new AppError('session_not_found');
    case 'conflict':
      throw new AppError('admission_conflict');
    case 'queue_full':
    case 'session_busy':
    case 'unknown_execution':
      throw await unlessElsewhere(outcome.kind, sessionId, leases);
    case 'revision_conflict':
      throw new AppError(outcome.kind);
    case 'capacity':
      throw new AppError('max_concurrent_sessions');
    case 'not_owned':
      throw notOwned(sessionId, outcome.holder);
  }
}
