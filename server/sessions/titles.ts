/**
 * Titles by a model: after the first turns of a conversation its own model is asked for a better title than the first
 * words (RU13). Behind the turns: a request of it gives way to the next turn of its session and to the end of the server,
 * and what goes wrong leaves the title that there is. A title that a person set is never touched.
 */
import type { SessionRow, Stores } from '../../db/stores.ts';
import { cleanTitle } from '../core/title.ts';

/** A turn that was completed. */
export interface TitledTurn {
  sessionId: string;
  /** Of its claim: 1 is the first turn of the session. */
  generation: number;
  /** The prompt, and what was answered. */
  input: string;
  reply: string;
}

export interface Titles {
  /** A turn begins: a request of this session that is under way is given up, to be made up for later. */
  turnStarts(sessionId: string): void;
  /** A turn was completed and everything of it is stored. Returns at once. */
  turnCompleted(turn: TitledTurn): void;
  /** Gives up what is under way; resolves when nothing of it will touch the stores any more. */
  close(): Promise<void>;
}

export interface TitlesParts {
  sessions: Pick<Stores['sessions'], 'get' | 'patch'>;
  /** Asks the model of a session; null when it has none (the built-in agent) or did not answer. */
  ask(model: string | null, question: { system: string; text: string }, signal: AbortSignal): Promise<string | null>;
  onChange(sessionId: string, reason: string): void;
  /** Epoch seconds. */
  now(): number;
  log: { warn(fields: object, message: string): void };
}

/** A title that could not be had is asked for again with the next turns, but not for ever. */
const FIRST_TURNS = 3;
/** So much of the prompt and of the answer says what they are about. */
const EXCERPT = 1500;

const SYSTEM =
  'Write a title for the conversation that you are shown: at most six words, in the language of the person, without quotes. ' +
  'Answer with the title alone.';

export function createTitles(parts: TitlesParts): Titles {
  const running = new Map<string, { stop: AbortController; ended: Promise<void> }>();
  /** Sessions whose request had to give way, until their turn is over. */
  const owed = new Set<string>();
  let closed = false;

  async function give(turn: TitledTurn, signal: AbortSignal): Promise<void> {
    const { sessionId, input, reply } = turn;
    const session = await parts.sessions.get(sessionId);
    if (!session || !mayTitle(session)) return;
    const text = `The person wrote:\n${excerpt(input)}\n\nThe answer was:\n${excerpt(reply)}`;
    const answer = await parts.ask(session.model, { system: SYSTEM, text }, signal);
    const title = answer === null ? null : cleanTitle(answer);
    if (title === null || signal.aborted) return;
    await store(sessionId, title);
  }

  /** Conditional on the revision that was looked at: a title that a person sets in between wins. */
  async function store(sessionId: string, title: string): Promise<void> {
    for (;;) {
      const session = await parts.sessions.get(sessionId);
      if (!session || !mayTitle(session)) return;
      const options = { now: parts.now(), revision: session.revision };
      const outcome = await parts.sessions.patch(sessionId, { title, title_source: 'llm' }, options);
      if (outcome.kind === 'patched') parts.onChange(sessionId, 'titled');
      if (outcome.kind !== 'revision_conflict') return;
    }
  }

  return {
    turnStarts(sessionId) {
      const request = running.get(sessionId);
      if (!request) return;
      owed.add(sessionId);
      request.stop.abort();
    },

    turnCompleted(turn) {
      const { sessionId } = turn;
      const isOwed = owed.delete(sessionId);
      if (closed || running.has(sessionId) || (turn.generation > FIRST_TURNS && !isOwed)) return;
      const stop = new AbortController();
      const ended = give(turn, stop.signal)
        .catch((error) => parts.log.warn({ err: error, session_id: sessionId }, 'no title could be given'))
        .finally(() => running.delete(sessionId));
      running.set(sessionId, { stop, ended });
    },

    async close() {
      closed = true;
      for (const { stop } of running.values()) stop.abort();
      await Promise.all([...running.values()].map(({ ended }) => ended));
    },
  };
}

const mayTitle = ({ title_source: source }: SessionRow): boolean => source === null || source === 'derived';

const excerpt = (text: string): string => (text.length <= EXCERPT ? text : `${text.slice(0, EXCERPT).toWellFormed()}…`);
