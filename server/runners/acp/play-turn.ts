/**
 * One turn with one agent, on both sides: its process, its session, its prompt, what is said to it meanwhile, and its end.
 * Owns what is written down of how far the agent was told the transcript (AC3).
 */
import type { AgentSessionRecord, AgentSessionStore } from '../../../db/agent-session-store.ts';
import type { AgentFolders } from '../../../db/files/agent-folders.ts';
import type { Commands } from '../../workspace/commands.ts';
import { checkWorkspace, type Workspace } from '../../workspace/workspace.ts';
import type { Approvals } from '../approvals.ts';
import type { RunnerEnd, Turn } from '../runner.ts';
import { createAgentPrompts } from './agent-prompts.ts';
import { choose, type OpenedSession, openSession } from './agent-sessions.ts';
import type { AgentOffer, AgentTarget } from './agent-target.ts';
import type { Capabilities } from './capabilities.ts';
import * as failure from './failure.ts';
import { promptBlocks } from './prompt-blocks.ts';
import { transcriptText } from './transcript.ts';
import type { TurnEvents } from './turn-events.ts';
import type { WarmAgent, WarmAgents } from './warm-agents.ts';

export interface PlayParts {
  agents: WarmAgents;
  /** What agents were told. */
  store: AgentSessionStore;
  /** Where agents work in sessions without a workspace. */
  folders: AgentFolders;
  /** Opens a session's workspace by its absolute path. */
  openWorkspace(root: string): Workspace;
  approvals: Approvals;
  commands: Pick<Commands, 'run'>;
  /** The MCP servers that an agent is given, of those that it can reach. */
  mcpServers(agent: Capabilities['mcp']): readonly object[];
  limits: {
    /** Seconds: for each answer before the prompt, of silence in a turn, and for its end after a cancel. */
    start_timeout_s: number;
    stall_timeout_s: number;
    cancel_timeout_s: number;
  };
  /** What an agent offered when it last said so. */
  lastOffer(agent: string): AgentOffer | null;
  /** Told what an agent offers. */
  offered(agent: string, offer: AgentOffer): void;
  /** Epoch seconds. */
  now(): number;
  log: { warn(fields: object, message: string): void; debug(fields: object, message: string): void };
}

export interface Play {
  turn: Turn;
  /** Aborts when the turn is stopped, or nobody reads it any more. */
  stop: AbortSignal;
  events: TurnEvents;
  target: AgentTarget;
  /** In the agent's own words; null: what it takes by itself. */
  model: string | null;
  mode: string | null;
}

/** Plays a turn; resolves when the agent does nothing of it any more. */
export async function playTurn(play: Play, parts: PlayParts): Promise<RunnerEnd> {
  const { turn, stop, target } = play;
  const { sessionId } = turn;
  if (stop.aborted) return failure.INTERRUPTED;
  if (turn.workspace !== null && (await checkWorkspace(turn.workspace)) !== 'ok')
    return failure.noWorkspace(target.name);
  const workspace = turn.workspace === null ? null : parts.openWorkspace(turn.workspace);
  const cwd = turn.workspace ?? (await parts.folders.make(sessionId));
  const agent = await parts.agents.take(sessionId, { target, cwd, hasWorkspace: workspace !== null }, stop);
  if ('kind' in agent) return agent;
  try {
    const end = await playWith(agent, { cwd, workspace }, play, parts);
    if (end.kind === 'completed' || stop.aborted || !UNUSABLE.has(end.error.code)) return end;
    const { lastWords } = agent.connection;
    parts.log.warn(
      { session_id: sessionId, agent: target.name, error: end.error, said: lastWords() },
      'an agent failed',
    );
    await agent.end();
    return end;
  } finally {
    parts.agents.give(sessionId);
  }
}

/** An agent that failed so is not asked again. */
const UNUSABLE: ReadonlySet<string> = new Set(['agent_crashed', 'stalled']);

interface Place {
  cwd: string;
  workspace: Workspace | null;
}

async function playWith(agent: WarmAgent, place: Place, play: Play, parts: PlayParts): Promise<RunnerEnd> {
  const { turn, stop } = play;
  if (stop.aborted) return failure.INTERRUPTED;
  // Without it the agent is told the transcript again: that is no reason to fail a turn.
  const known = await parts.store.get(turn.sessionId).catch((error) => {
    parts.log.warn({ session_id: turn.sessionId, err: error }, 'what an agent was told could not be read');
    return null;
  });
  const opened = await open(agent, known, place.cwd, play, parts);
  if ('kind' in opened) return opened;
  if (stop.aborted) return failure.INTERRUPTED;
  const end = await tell(agent, opened, place, play, parts);
  if (end !== 'no_session') return end;
  // It was there when it was opened, or for the last turn: now the agent does not know it.
  const anew = await open(agent, null, place.cwd, play, parts);
  if ('kind' in anew) return anew;
  const second = await tell(agent, anew, place, play, parts);
  return second === 'no_session' ? failure.nonsense(play.target.name, 'session/prompt') : second;
}

/** The agent's session, with the model and mode that are wanted. */
async function open(
  agent: WarmAgent,
  known: AgentSessionRecord | null,
  cwd: string,
  play: Play,
  parts: PlayParts,
): Promise<OpenedSession | failure.Failed> {
  // Until its prompt is out there is nothing that could be cancelled: a stop ends the agent.
  const end = (): void => void agent.end();
  play.stop.addEventListener('abort', end, { once: true });
  try {
    return await openFor(agent, known, cwd, play, parts);
  } finally {
    play.stop.removeEventListener('abort', end);
  }
}

async function openFor(
  agent: WarmAgent,
  known: AgentSessionRecord | null,
  cwd: string,
  { turn, target, model, mode }: Play,
  parts: PlayParts,
): Promise<OpenedSession | failure.Failed> {
  const { connection } = agent;
  const chooser = { agent: target.name, connection, timeoutS: parts.limits.start_timeout_s };
  const opened = await openSession({
    ...chooser,
    live: agent.session,
    known,
    cwd,
    mcpServers: parts.mcpServers(connection.capabilities.mcp),
    history: turn.history,
    lastOffer: parts.lastOffer(target.name),
    offered: (offer) => parts.offered(target.name, offer),
  });
  if ('kind' in opened) return opened;
  agent.session = opened.session;
  const problem =
    (await choose('model', model, opened.session, chooser)) ?? (await choose('mode', mode, opened.session, chooser));
  return problem ?? opened;
}

/** The prompt, and what is said to the turn until nothing more is. */
async function tell(
  { connection }: WarmAgent,
  { session, untold, isReused }: OpenedSession,
  { cwd, workspace }: Place,
  { turn, stop, events, target }: Play,
  parts: PlayParts,
): Promise<RunnerEnd | 'no_session'> {
  const { approvals, commands, limits, now } = parts;
  const note = async (answered: boolean): Promise<void> => {
    const record = { agent: target.name, agent_session_id: session.id, cwd, seen_run: turn.runId, answered };
    await parts.store.put(turn.sessionId, record, now()).catch((error) => {
      parts.log.warn({ session_id: turn.sessionId, err: error }, 'what an agent was told could not be noted');
    });
  };
  const prompts = createAgentPrompts({
    agent: target.name,
    turn,
    stop,
    events,
    connection,
    session,
    cwd,
    workspace,
    approvals,
    commands,
    now,
    stallTimeoutS: limits.stall_timeout_s,
    cancelTimeoutS: limits.cancel_timeout_s,
  });
  try {
    const { image } = connection.capabilities;
    let said = { text: turn.input, attachments: turn.attachments };
    let transcript = untold.length > 0 ? transcriptText(untold) : null;
    await note(false);
    session.lastRun = turn.runId;
    for (;;) {
      const blocks = await promptBlocks({ turn, ...said, image, transcript });
      if (stop.aborted) return failure.INTERRUPTED;
      const ended = await prompts.prompt(blocks);
      if (ended.kind === 'no_session') return isReused ? 'no_session' : failure.nonsense(target.name, 'session/prompt');
      const more = ended.end.kind === 'completed' && !stop.aborted ? await turn.steer() : [];
      if (more.length === 0) {
        if (ended.answered) await note(true);
        return ended.end;
      }
      said = { text: more.map(({ text }) => text).join('\n\n'), attachments: more.flatMap((one) => one.attachments) };
      transcript = null;
    }
  } finally {
    await prompts.close();
  }
}
