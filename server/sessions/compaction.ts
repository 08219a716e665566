/**
 * Compaction (CX2 to CX6): the older part of a conversation is summarised by its own model, which is given the summary from
 * then on. What people see is never touched: a summary is one row of its own beside the transcript.
 *
 * Each is bounded, and a turn that asks for one can do without. A death at any moment of it leaves the summary that there
 * was, or the new one.
 */
import type { SessionRow, Stores } from '../../db/stores.ts';
import type { ReachCrashPoint } from '../authority/crash-points.ts';
import {
  cleanSummary,
  isSummaryRow,
  type Parting,
  planCompaction,
  summaryQuestion,
  summaryRow,
} from '../core/compaction.ts';
import { tokensOfRow, tokensOfRows } from '../core/context-size.ts';
import { judgeEdit } from '../core/edit-rules.ts';
import type { Message } from '../core/terms.ts';
import { AppError } from '../errors.ts';
import type { Leases } from '../lease/leases.ts';
import { notOwned, unlessElsewhere } from '../lease/not-owned.ts';
import type { LiveRegistry } from '../live/registry.ts';
import type { CompactionWish } from '../runners/runner.ts';
import { withTimeLimit } from '../time-limit.ts';
import { digestOf, historyOf } from './model-context.ts';
import type { Transcripts } from './transcripts.ts';
import type { SessionView } from './view.ts';

export interface CompactionParts {
  stores: Pick<Stores, 'sessions' | 'messages' | 'contexts'>;
  sessions: {
    /** What a dead process left of it is resolved. @throws AppError session_not_found */
    get(sessionId: string): Promise<SessionView>;
  };
  transcripts: Pick<Transcripts, 'read'>;
  registry: Pick<LiveRegistry, 'peek'>;
  leases: Pick<Leases, 'elsewhere'>;
  /** Asks a session's model briefly; null when it has none (the built-in agent) or did not answer. Never rejects. */
  ask(
    model: string | null,
    question: { system: string; text: string; maxTokens: number; timeoutS: number },
    signal: AbortSignal,
  ): Promise<string | null>;
  /** Tokens of the window of a session's model; null where nobody knows. */
  windowOf(model: string | null): number | null;
  reached: ReachCrashPoint;
  /** Epoch seconds. */
  now(): number;
  onChange(sessionId: string, reason: string): void;
  log: Record<'warn' | 'error', (fields: object, message: string) => void>;
}

export interface Compacted {
  session: SessionView;
  status: 'compressed' | 'aborted';
  /** Rows of the model's context before and after it, and the tokens that they are estimated to have. */
  before_messages: number;
  after_messages: number;
  before_tokens: number;
  after_tokens: number;
  /** How many fewer rows the context has. */
  removed: number;
  /** The summary that stands now; null for none. */
  summary: string | null;
  /** For a person: why nothing was compressed. */
  message?: string;
}

export interface Compaction {
  /** For a turn that runs: its new history; null when there is nothing to be summarised, or it could not be. Never rejects. */
  inTurn(
    turn: { sessionId: string; runId: string; model: string },
    wish: CompactionWish,
    signal: AbortSignal,
  ): Promise<readonly Message[] | null>;
  /**
   * On request: all but the last turn. A second request meanwhile is answered with the first.
   * @param focus what is to be kept above all; null for nothing special
   * @throws AppError session_not_found; session_busy while a turn runs or waits; unknown_execution; session_not_owned
   */
  onRequest(sessionId: string, focus: string | null): Promise<Compacted>;
  /** Gives up what is under way; resolves when nothing of it will touch the stores any more. */
  close(): Promise<void>;
}

type Outcome = 'compacted' | 'nothing' | 'failed';

interface Wish {
  model: string | null;
  parting: Parting;
  /** Tokens of one request at most, where that is known better than the window says; null for nobody knows. */
  most: number | null;
  focus: string | null;
}

/** Seconds for all requests of one compaction. */
const TIMEOUT_S = 90;
/** After one that failed no turn waits for another for so long, unless it cannot go on. Seconds. */
const COOLDOWN_S = 300;
/** Tokens of a summary at most, and letters of one; and the part of the window that it may have. */
const [SUMMARY_TOKENS, LETTERS_PER_TOKEN, SUMMARY_PART] = [2000, 6, 0.15];
/** The part of a window that one piece may have, since our estimate may be wrong by a third; without a window, tokens. */
const [PIECE_PART, PIECE_TOKENS] = [0.5, 12_000];
/** The same for the last turn, which stays on request. */
const [KEEP_PART, KEEP_TOKENS] = [0.25, 8000];
/** No run: all that is said is history. */
const NO_RUN = '';

export function createCompaction(parts: CompactionParts): Compaction {
  const { stores, now, reached, log } = parts;
  const closing = new AbortController();
  /** The last one of each session, and those that were asked for. */
  const running = new Map<string, Promise<unknown>>();
  const requested = new Map<string, Promise<Compacted>>();
  /** When one failed last, epoch seconds. */
  const failed = new Map<string, number>();

  async function read(sessionId: string, runId: string) {
    const transcript = await parts.transcripts.read(sessionId);
    const history = await historyOf(stores, sessionId, runId, transcript);
    return { history, rows: transcript.rows.filter((row) => row.runId !== runId) };
  }

  const summaryOf = async (sessionId: string, history: readonly Message[]): Promise<string | null> =>
    history[0] && isSummaryRow(history[0]) ? ((await stores.contexts.summary(sessionId))?.text ?? null) : null;

  /** Summarises piece after piece; each is stored before the next is asked for. */
  async function summarise(session: SessionRow, runId: string, wish: Wish, signal: AbortSignal): Promise<Outcome> {
    const { session_id: sessionId, edit_number: editNumber } = session;
    const window = parts.windowOf(wish.model);
    const maxTokens = window === null ? SUMMARY_TOKENS : Math.min(SUMMARY_TOKENS, Math.ceil(window * SUMMARY_PART));
    const most = Math.min(window === null ? PIECE_TOKENS : window * PIECE_PART, wish.most ?? Number.MAX_VALUE);
    const { history, rows } = await read(sessionId, runId);
    const ids = rows.map(({ id }) => id);
    const pieces = planCompaction(history, ids, wish.parting, most);
    let before = await summaryOf(sessionId, history);
    let outcome: Outcome = pieces.length === 0 ? 'nothing' : 'failed';
    for (const { rows: piece, anchor } of pieces) {
      reached('compacting');
      const question = { ...summaryQuestion(before, piece, wish.focus, most), maxTokens, timeoutS: TIMEOUT_S };
      const answer = await parts.ask(wish.model, question, signal);
      const text = answer === null ? null : cleanSummary(answer, maxTokens * LETTERS_PER_TOKEN);
      if (text === null || signal.aborted) break;
      reached('summarised');
      const covers = digestOf(rows.slice(0, ids.indexOf(anchor) + 1));
      const summary = { anchor, covers, text, created_at: now() };
      const rest = history.slice(history.indexOf(piece.at(-1)!) + 1);
      const contextUsed = tokensOfRow(summaryRow(summary)) + tokensOfRows(rest);
      if ((await stores.contexts.summarise(sessionId, summary, { editNumber, contextUsed })) === 'stale') break;
      reached('summary-saved');
      outcome = 'compacted';
      before = text;
    }
    return outcome;
  }

  /** The same behind any other of the session, and within its time. */
  async function compact(session: SessionRow, runId: string, wish: Wish, signal: AbortSignal): Promise<Outcome> {
    const { session_id: sessionId } = session;
    const within = withTimeLimit(TIMEOUT_S, signal, closing.signal);
    const before = running.get(sessionId);
    const work = async (): Promise<Outcome> => {
      await Promise.race([before?.catch(() => {}), aborted(within)]);
      return within.aborted ? 'failed' : summarise(session, runId, wish, within);
    };
    const ended = work();
    running.set(sessionId, ended);
    try {
      const outcome = await ended;
      if (outcome === 'compacted') {
        failed.delete(sessionId);
        parts.onChange(sessionId, 'compacted');
      } else if (outcome === 'failed') noteFailure(sessionId);
      return outcome;
    } finally {
      if (running.get(sessionId) === ended) running.delete(sessionId);
    }
  }

  function noteFailure(sessionId: string): void {
    const at = now();
    for (const [id, since] of failed) if (at - since > COOLDOWN_S) failed.delete(id);
    failed.set(sessionId, at);
  }

  const isCooling = (sessionId: string): boolean => now() - (failed.get(sessionId) ?? -COOLDOWN_S) < COOLDOWN_S;

  /** The session, where nothing of it is open and nobody else has it. */
  async function idleSession(sessionId: string): Promise<SessionRow> {
    await parts.sessions.get(sessionId); // 404 first, and what a dead process left is resolved.
    const session = await stores.sessions.get(sessionId);
    if (!session) throw new AppError('session_not_found');
    const { open, revision } = session;
    const verdict = judgeEdit({ open, revision, expected: revision });
    if (verdict !== 'edit') throw await unlessElsewhere(verdict, sessionId, parts.leases);
    if (parts.registry.peek(sessionId)?.run) throw new AppError('session_busy');
    const holder = await parts.leases.elsewhere(sessionId);
    if (holder) throw notOwned(sessionId, holder);
    return session;
  }

  async function request(sessionId: string, focus: string | null): Promise<Compacted> {
    const session = await idleSession(sessionId);
    const { model } = session;
    const { history: before } = await read(sessionId, NO_RUN);
    const window = parts.windowOf(model);
    const keepTokens = window === null ? KEEP_TOKENS : window * KEEP_PART;
    const wish = { model, parting: { keepTokens, keepTurns: 1 }, most: null, focus };
    const outcome = await compact(session, NO_RUN, wish, closing.signal);
    const { history: after } = outcome === 'compacted' ? await read(sessionId, NO_RUN) : { history: before };
    return {
      session: await parts.sessions.get(sessionId),
      status: outcome === 'compacted' ? 'compressed' : 'aborted',
      before_messages: before.length,
      after_messages: after.length,
      before_tokens: tokensOfRows(before),
      after_tokens: tokensOfRows(after),
      removed: Math.max(0, before.length - after.length),
      summary: await summaryOf(sessionId, after),
      ...(outcome === 'compacted' ? {} : { message: WHY_NOT[outcome] }),
    };
  }

  return {
    async inTurn({ sessionId, runId, model }, { keepTokens, most, urgent }, signal) {
      if (!urgent && isCooling(sessionId)) return null;
      try {
        const session = await stores.sessions.get(sessionId);
        if (!session) return null;
        const wish = { model, parting: { keepTokens, keepTurns: Number.MAX_SAFE_INTEGER }, most, focus: null };
        if ((await compact(session, runId, wish, signal)) !== 'compacted') return null;
        return (await read(sessionId, runId)).history;
      } catch (error) {
        // Trouble of the storage or a bug: the turn goes on with what fits, and the log tells.
        log.error({ err: error, session_id: sessionId }, 'a conversation could not be compacted');
        return null;
      }
    },

    onRequest(sessionId, focus) {
      const same = requested.get(sessionId);
      if (same) return same;
      const asked = request(sessionId, focus).finally(() => requested.delete(sessionId));
      requested.set(sessionId, asked);
      return asked;
    },

    async close() {
      closing.abort();
      await Promise.allSettled([...running.values()]);
    },
  };
}

const WHY_NOT = {
  nothing: 'There is nothing to be summarised.',
  failed: 'The model of this session gave no summary. The conversation is as it was.',
} as const;

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
