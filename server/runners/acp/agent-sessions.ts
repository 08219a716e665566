/**
 * The agent's own session for a turn of ours. It is a cache of what the agent was told (AC3): used as long as our
 * transcript ends where the agent was told it to, and otherwise made anew and told the transcript.
 */
import { methods } from '@agentclientprotocol/sdk';
import type { AgentSessionRecord } from '../../../db/agent-session-store.ts';
import type { Message } from '../../core/terms.ts';
import type { AgentOffer } from './agent-target.ts';
import { type AgentConnection, type Answer, whyGone } from './connection.ts';
import { type Failed, nonsense, notOffered, startStalled } from './failure.ts';
import { type Offer, readOffer, toAgentOffer } from './offers.ts';
import { recordOf } from './raw.ts';

/** A session of the agent that its process has open. */
export interface LiveAgentSession {
  id: string;
  offer: Offer;
  /** What the agent takes by itself; null where that is not known. */
  own: Choice;
  /** What it has now; null where it is what the agent took by itself. */
  chosen: Choice;
  /** What it has cost so far; null where that is not known. */
  ledger: { cost: number | null };
  /** The last run that it was told of in this process: another server may have gone on with it since. */
  lastRun: string | null;
}

/** In the agent's words. */
interface Choice {
  model: string | null;
  mode: string | null;
}

export interface OpenedSession {
  session: LiveAgentSession;
  /** Rows of the transcript that the agent does not know. */
  untold: readonly Message[];
  /** Whether it was there before this turn. */
  isReused: boolean;
}

export interface OpenRequest {
  agent: string;
  connection: AgentConnection;
  /** What its process has open. */
  live: LiveAgentSession | null;
  /** What is known from before; null: nothing, or not to be trusted. */
  known: AgentSessionRecord | null;
  cwd: string;
  mcpServers: readonly object[];
  history: readonly Message[];
  timeoutS: number;
  /** What the agent offered with the last session that was new; null: it never did. */
  lastOffer: AgentOffer | null;
  offered(offer: AgentOffer): void;
}

const { new: NEW, load: LOAD, resume: RESUME } = methods.agent.session;

/** Opens the session for a turn, whose prompt is not in `history`. */
export async function openSession(request: OpenRequest): Promise<OpenedSession | Failed> {
  const { agent, connection, known, cwd, mcpServers, history, timeoutS } = request;
  const last = history.at(-1)?.run_id;
  if (known && known.agent === agent && known.cwd === cwd && known.seen_run === last) {
    const session = await takeUp(known, request);
    if (session && 'kind' in session) return session;
    // Of a turn that it never answered nobody knows whether it knows.
    const untold = known.answered ? [] : history.filter((row) => row.run_id === last);
    if (session) return { session, untold, isReused: true };
  }
  const answer = await connection.request(NEW, { cwd, mcpServers }, timeoutS);
  if (answer.kind !== 'answered') return problemOf(answer, request);
  const { sessionId } = recordOf(answer.result);
  if (typeof sessionId !== 'string' || sessionId === '') return nonsense(agent, NEW);
  const session = toLive(sessionId, answer.result, 0, null);
  const { offer } = session;
  if (offer.model || offer.mode) request.offered(toAgentOffer(offer));
  return { session, untold: history, isReused: false };
}

/** The session as its process has it open, or kept it; null: it does not, or another server has gone on with it since. */
async function takeUp(known: AgentSessionRecord, request: OpenRequest): Promise<LiveAgentSession | Failed | null> {
  const { live } = request;
  if (live?.id !== known.agent_session_id) return reopen(known, request);
  return live.lastRun === known.seen_run ? live : null;
}

/** Has the agent take up a session that it kept; null: it does not. What it repeats of it meanwhile reaches nobody. */
async function reopen(known: AgentSessionRecord, request: OpenRequest): Promise<LiveAgentSession | Failed | null> {
  const { connection, cwd, mcpServers, timeoutS } = request;
  const { resume, load } = connection.capabilities;
  if (!resume && !load) return null;
  const sessionId = known.agent_session_id;
  // One that knows it repeats the prompt that it was given; there are agents that take an unknown one for a new one.
  let isKnown = !load;
  connection.listen({
    agentSessionId: sessionId,
    update(update) {
      isKnown ||= recordOf(update).sessionUpdate === 'user_message_chunk';
    },
    answered() {},
    room: () => null,
    asked: async () => null,
  });
  const answer = await connection.request(load ? LOAD : RESUME, { sessionId, cwd, mcpServers }, timeoutS);
  connection.listen(null);
  if (answer.kind === 'gone' || answer.kind === 'late') return problemOf(answer, request);
  // Whatever it has against it: a new one is made.
  if (answer.kind === 'refused' || !isKnown) return null;
  return { ...toLive(sessionId, answer.result, null, request.lastOffer), lastRun: known.seen_run };
}

/** @param lastOffer for a session that was taken up again: it has what was chosen in it before */
function toLive(id: string, response: unknown, cost: number | null, lastOffer: AgentOffer | null): LiveAgentSession {
  const offer = readOffer(response);
  const [model, mode] = [offer.model?.current ?? null, offer.mode?.current ?? null];
  const own: Choice = { model: lastOffer?.currentModel ?? model, mode: lastOffer?.currentMode ?? mode };
  const chosen = { model: model === own.model ? null : model, mode: mode === own.mode ? null : mode };
  return { id, offer, own, chosen, ledger: { cost }, lastRun: null };
}

type Chooser = Pick<OpenRequest, 'agent' | 'connection' | 'timeoutS'>;

/**
 * Has the agent use a model or mode.
 * @param id in its own words; null: what it took by itself
 * @returns null when it does
 */
export async function choose(
  kind: 'model' | 'mode',
  id: string | null,
  session: LiveAgentSession,
  chooser: Chooser,
): Promise<Failed | null> {
  const { agent, connection, timeoutS } = chooser;
  const selector = session.offer[kind];
  if (session.chosen[kind] === id) return null;
  const wanted = id ?? session.own[kind];
  if (wanted === null) return null;
  if (!selector) return notOffered(agent, kind, wanted);
  const { method, params } = selector.request(wanted);
  const answer = await connection.request(method, { sessionId: session.id, ...params }, timeoutS);
  if (answer.kind === 'refused') return notOffered(agent, kind, wanted);
  if (answer.kind !== 'answered') return problemOf(answer, chooser);
  session.chosen[kind] = id;
  return null;
}

async function problemOf(answer: Exclude<Answer, { kind: 'answered' }>, chooser: Chooser): Promise<Failed> {
  const { agent, connection, timeoutS } = chooser;
  switch (answer.kind) {
    case 'gone':
      return whyGone(agent, connection, 'start');
    case 'late':
      return startStalled(agent, timeoutS, connection.noise());
    case 'refused':
      return connection.failureOf(answer);
  }
}
