/**
 * Open questions of an agent: approvals and clarifications that wait for a person. The first valid answer wins; a
 * withdrawn question is told to everybody exactly once. They live in memory: a question does not outlive its process.
 */
import type { Answer, ApprovalChoice, Question } from '../runners/runner.ts';
import { plainLiveEvent } from './live-event.ts';
import type { LiveSession, OpenRequest } from './live-session.ts';

export interface RequestsParts {
  /** Epoch seconds. */
  now(): number;
  newId(): string;
  /** Seconds that a question waits; 0 means for ever. */
  timeoutS: number;
  /** The session's status changed (it waits, or it no longer does). */
  onChange(sessionId: string): void;
}

/** What a client may send as an answer. */
export type Reply = { choice: ApprovalChoice } | { answers: Record<string, string | null> } | { value: string };

export interface Requests {
  /**
   * Asks and waits; ends with `withdrawn` when `signal` aborts.
   * @param settled aborts when the answer is known otherwise; ends with `withdrawn` too, and is told as resolved
   */
  ask(
    live: LiveSession,
    runId: string,
    question: Question,
    signal: AbortSignal,
    settled?: AbortSignal,
  ): Promise<Answer>;
  /** Takes back what a turn has asked and nobody has answered: the turn is over. */
  withdraw(live: LiveSession, runId: string): void;
  /** `invalid` leaves the question open. */
  reply(live: LiveSession | null, requestId: string, reply: Reply): 'ok' | 'expired' | 'invalid';
  /** A person has it before them: its time begins again, once. False when it is no longer open. */
  seen(live: LiveSession, requestId: string): boolean;
  /** Answers one question of several; the last one answers the request. `invalid` for a question that was not asked. */
  lock(
    live: LiveSession,
    requestId: string,
    questionId: string,
    answer: string | null,
  ): 'expired' | 'invalid' | { remaining: number };
}

interface Waiting {
  question: Question;
  /** Answers that are locked already, by the ids of their questions. */
  locked: Record<string, string | null>;
  settle(answer: Answer, reason: string): void;
  /** Begins the time anew, unless that was done before. */
  seen(): void;
}

export function createRequests({ now, newId, timeoutS, onChange }: RequestsParts): Requests {
  const waiting = new Map<string, Waiting>();
  const openOf = (live: LiveSession | null, requestId: string): Waiting | null =>
    live?.requests.has(requestId) ? (waiting.get(requestId) ?? null) : null;

  return {
    ask(live, runId, question, signal, settled) {
      if (signal.aborted || settled?.aborted) return Promise.resolve({ kind: 'withdrawn' });
      const { kind, ...params } = question;
      const created_at = now();
      const end = (from: number): number | null => (timeoutS > 0 ? from + timeoutS : null);
      const request: OpenRequest = {
        id: newId(),
        run_id: runId,
        kind,
        params,
        created_at,
        expires_at: end(created_at),
      };
      return new Promise((resolve) => {
        const withdraw = () => settle({ kind: 'withdrawn' }, 'interrupted');
        const drop = () => settle({ kind: 'withdrawn' }, 'resolved');
        const locked: Waiting['locked'] = {};
        const timeOut = () => {
          const answers = Object.keys(locked).length > 0 ? { answers: locked } : {};
          settle({ kind: 'timeout', ...answers }, 'timeout');
        };
        const begin = () => (timeoutS > 0 ? setTimeout(timeOut, timeoutS * 1000) : null);
        let timer = begin();
        let isSeen = false;
        const settle = (answer: Answer, reason: string): void => {
          if (!waiting.delete(request.id)) return;
          if (timer) clearTimeout(timer);
          signal.removeEventListener('abort', withdraw);
          settled?.removeEventListener('abort', drop);
          live.requests.delete(request.id);
          const payload = { id: request.id, method: kind, reason };
          live.publish(plainLiveEvent('request.cancel', live.sessionId, payload));
          onChange(live.sessionId);
          resolve(answer);
        };
        const seen = (): void => {
          if (isSeen) return;
          isSeen = true;
          if (timer) clearTimeout(timer);
          timer = begin();
          if (!timer) return;
          request.expires_at = end(now());
          onChange(live.sessionId);
        };
        waiting.set(request.id, { question, locked, settle, seen });
        live.requests.set(request.id, request);
        signal.addEventListener('abort', withdraw);
        settled?.addEventListener('abort', drop);
        live.publish(plainLiveEvent('request.open', live.sessionId, request));
        onChange(live.sessionId);
      });
    },

    withdraw(live, runId) {
      for (const request of [...live.requests.values()]) {
        if (request.run_id === runId) waiting.get(request.id)?.settle({ kind: 'withdrawn' }, 'interrupted');
      }
    },

    reply(live, requestId, reply) {
      const open = openOf(live, requestId);
      if (!open) return 'expired';
      const answer = toAnswer(open.question, reply);
      if (!answer) return 'invalid';
      // Without any answer nothing is wanted; otherwise what is locked already stays.
      const isPart = answer.kind === 'answers' && Object.keys(answer.answers).length > 0;
      open.settle(isPart ? { ...answer, answers: { ...open.locked, ...answer.answers } } : answer, 'resolved');
      return 'ok';
    },

    seen(live, requestId) {
      const open = openOf(live, requestId);
      open?.seen();
      return open !== null;
    },

    lock(live, requestId, questionId, answer) {
      const open = openOf(live, requestId);
      if (!open) return 'expired';
      const { question, locked } = open;
      if (question.kind !== 'clarify' || !question.questions.some((one) => one.qid === questionId)) return 'invalid';
      locked[questionId] = answer;
      const request = live.requests.get(requestId)!;
      request.params = { ...request.params, answers: locked };
      const remaining = question.questions.filter((one) => !(one.qid in locked)).length;
      if (remaining === 0) open.settle({ kind: 'answers', answers: locked }, 'resolved');
      return { remaining };
    },
  };
}

/** The answer that a reply is to this question, or null when it does not fit. */
function toAnswer(question: Question, reply: Reply): Answer | null {
  if (question.kind === 'approval') {
    return 'choice' in reply && question.choices.includes(reply.choice)
      ? { kind: 'choice', choice: reply.choice }
      : null;
  }
  if (!('answers' in reply)) return null;
  const asked = new Set(question.questions.map((one) => one.qid));
  return Object.keys(reply.answers).every((qid) => asked.has(qid)) ? { kind: 'answers', answers: reply.answers } : null;
}
