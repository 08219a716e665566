/**
 * The connection to one agent: its process, the handshake, requests with a time limit, and who is told what the agent says
 * and asks meanwhile. What it says while nobody listens is dropped, and what it asks then is refused (AC6).
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  type ClientContext,
  client,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type Stream,
} from '@agentclientprotocol/sdk';
import { isSecretName, SHORTEST_SECRET } from '../../core/secret-names.ts';
import { timerMs } from '../../core/timer-ms.ts';
import type { ProgramEnd, Programs } from '../../workspace/programs.ts';
import { redactKeys } from '../model/redact.ts';
import type { AgentTarget } from './agent-target.ts';
import { type Capabilities, readCapabilities } from './capabilities.ts';
import type { ClientMethods } from './client-methods.ts';
import * as failure from './failure.ts';
import { createFrames } from './frames.ts';
import { recordOf } from './raw.ts';
import { notNow } from './refusals.ts';

/** Who is told what comes for a session of the agent. */
export interface Listener {
  agentSessionId: string;
  /** One update as the agent wrote it. */
  update(update: unknown): void;
  /** The agent has answered: what comes from now on is behind that. */
  answered(): void;
  /** Null, or what is waited for before more is read. */
  room(): Promise<void> | null;
  /** Does what the agent asks for; null: not now. */
  asked(work: (methods: ClientMethods) => Promise<unknown>): Promise<{ value: unknown } | null>;
}

/** `gone`: the agent has ended. `late`: no answer within the time limit. */
export type Answer = { kind: 'answered'; result: unknown } | failure.Refused | { kind: 'gone' } | { kind: 'late' };

export interface AgentConnection {
  capabilities: Capabilities;
  /** @param timeoutS seconds to wait for the answer; null: for ever */
  request(method: string, params: object, timeoutS: number | null): Promise<Answer>;
  notify(method: string, params: object): void;
  /** From now on this one is told, instead of the one before. */
  listen(listener: Listener | null): void;
  /** What an answer that is an error says, without what is known to be secret. */
  failureOf(answer: failure.Refused): failure.Failed;
  /** Lines that were no message. */
  noise(): number;
  isOpen(): boolean;
  /** Resolves when the agent says nothing any more. */
  ended: Promise<ProgramEnd>;
  /** The end of what it wrote on stderr, without what is known to be secret. For the log: it may hold anything else. */
  lastWords(): string;
  /** Ends all its processes and waits until they are gone. */
  close(): Promise<void>;
}

export interface ConnectParts {
  programs: Pick<Programs, 'start'>;
  target: AgentTarget;
  /** What is known to be secret, beside what stands in its environment. */
  secrets: readonly string[];
  /** All that it has of an environment. */
  env: Readonly<Record<string, string>>;
  /** An absolute path that exists. */
  folder: string;
  /** Whether it may ask for files and commands. */
  hasWorkspace: boolean;
  /** This server's, told to the agent. */
  version: string;
  startTimeoutS: number;
  /** Ends it before it has answered; later it does nothing. */
  stop: AbortSignal;
}

/** Bytes of one line: far more than anybody writes, and no more than can be held. */
const MOST_LINE_BYTES = 16 * 1024 * 1024;

/** How long the end of an agent is waited for that cannot be spoken to. */
const ENDING_MS = 1_000;

/** Starts an agent and greets it. Nothing of it is left when that fails. */
export async function connectAgent(parts: ConnectParts): Promise<AgentConnection | failure.Failed> {
  const { target, env, folder } = parts;
  const agent = target.name;
  let listener: Listener | null = null;
  let noise = 0;
  let send = async (_line: string): Promise<boolean> => false;
  const frames = createFrames({
    send: (line) => send(line),
    onUpdate(params) {
      const { sessionId, update } = recordOf(params);
      if (listener?.agentSessionId === sessionId) listener?.update(update);
    },
    onAnswer: () => listener?.answered(),
    onNoise: () => {
      noise += 1;
    },
  });
  const [program = '', ...args] = target.command;
  const started = await parts.programs.start({
    command: program,
    args,
    env,
    folder,
    maxLineBytes: MOST_LINE_BYTES,
    onLine: frames.receive,
    room: () => frames.room() ?? listener?.room() ?? null,
  });
  if (!started.ok) return failure.notStarted(agent, program, started.code);
  send = started.program.send;
  const { ended, isThere, lastWords, close } = started.program;
  void ended.then(frames.end);
  const protocol = connectProtocol(frames.stream, () => listener);

  const secrets = [...parts.secrets, ...Object.values(target.env), ...secretsIn(env)];
  const hide = (text: string): string => redactKeys(text, secrets);
  const connection: Omit<AgentConnection, 'capabilities'> = {
    request: (method, params, timeoutS) => request(protocol.agent, method, params, timeoutS),
    notify(method, params) {
      // A connection that has ended tells its turn so.
      protocol.agent.notify(method, params).catch(() => {});
    },
    listen(next) {
      listener = next;
    },
    failureOf: (answer) => failure.refused(agent, answer, hide),
    noise: () => noise,
    // One that was killed a moment ago may not have been heard of yet: a prompt that it never got would fail with it.
    isOpen: () => !protocol.signal.aborted && isThere(),
    ended,
    lastWords: () => hide(lastWords()),
    close,
  };
  const end = (): void => void close();
  parts.stop.addEventListener('abort', end, { once: true });
  if (parts.stop.aborted) end();
  const greeted = await greet(agent, connection, parts);
  parts.stop.removeEventListener('abort', end);
  if ('kind' in greeted) await close();
  return 'kind' in greeted ? greeted : { ...connection, capabilities: greeted };
}

/** Why a connection has ended. @param when the turn was, for the words */
export async function whyGone(
  agent: string,
  connection: Pick<AgentConnection, 'ended' | 'noise'>,
  when: 'start' | 'turn',
): Promise<failure.Failed> {
  // One that reads nothing any more may still be there.
  const end = await Promise.race([connection.ended, delay(ENDING_MS, { kind: 'no_output' } as const, { ref: false })]);
  if (end.kind === 'line_too_long') return failure.tooLong(agent, MOST_LINE_BYTES / 1024 / 1024);
  return failure.crashed(agent, when, end, connection.noise());
}

type Connected = Omit<AgentConnection, 'capabilities'>;

async function greet(
  agent: string,
  connection: Connected,
  parts: ConnectParts,
): Promise<Capabilities | failure.Failed> {
  const { version, hasWorkspace, startTimeoutS } = parts;
  const greeting = {
    protocolVersion: PROTOCOL_VERSION,
    clientInfo: { name: 'turnkeep', version },
    clientCapabilities: { fs: { readTextFile: hasWorkspace, writeTextFile: hasWorkspace }, terminal: hasWorkspace },
  };
  const answer = await connection.request(methods.agent.initialize, greeting, startTimeoutS);
  switch (answer.kind) {
    case 'gone':
      return whyGone(agent, connection, 'start');
    case 'late':
      return failure.startStalled(agent, startTimeoutS, connection.noise());
    case 'refused':
      return connection.failureOf(answer);
    case 'answered': {
      const { protocolVersion, agentCapabilities } = recordOf(answer.result);
      if (protocolVersion !== PROTOCOL_VERSION) return failure.wrongVersion(agent, protocolVersion, PROTOCOL_VERSION);
      return readCapabilities(agentCapabilities);
    }
  }
}

/** Binds what an agent may ask to whoever listens then. Parameters go on as they came. */
function connectProtocol(stream: Stream, listener: () => Listener | null) {
  type Handler = (asked: ClientMethods, params: unknown, cancelled: AbortSignal) => Promise<unknown>;
  const app = client({ name: 'turnkeep' });
  const on = (method: string, handler: Handler): void => {
    app.onRequest(
      method,
      (params: unknown) => params,
      async ({ params, signal }) => {
        const current = listener();
        const isTheirs = current?.agentSessionId === recordOf(params).sessionId;
        const done = isTheirs ? await current?.asked((asked) => handler(asked, params, signal)) : null;
        if (!done) throw notNow();
        return done.value;
      },
    );
  };
  const { session, fs, terminal } = methods.client;
  on(session.requestPermission, (asked, params, cancelled) => asked.requestPermission(params, cancelled));
  on(fs.readTextFile, (asked, params) => asked.readTextFile(params));
  on(fs.writeTextFile, (asked, params, cancelled) => asked.writeTextFile(params, cancelled));
  on(terminal.create, (asked, params, cancelled) => asked.createTerminal(params, cancelled));
  on(terminal.output, (asked, params) => asked.terminalOutput(params));
  on(terminal.waitForExit, (asked, params) => asked.waitForTerminalExit(params));
  on(terminal.kill, (asked, params) => asked.killTerminal(params));
  on(terminal.release, (asked, params) => asked.releaseTerminal(params));
  return app.connect(stream);
}

async function request(agent: ClientContext, method: string, params: object, timeoutS: number | null): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Answer>((resolve) => {
    if (timeoutS !== null) timer = setTimeout(() => resolve({ kind: 'late' }), timerMs(timeoutS));
  });
  const answered = agent.request<unknown, object>(method, params).then(
    (result): Answer => ({ kind: 'answered', result }),
    (error: unknown): Answer =>
      error instanceof RequestError
        ? { kind: 'refused', code: error.code, message: error.message, data: error.data }
        : { kind: 'gone' },
  );
  try {
    return await Promise.race([answered, late]);
  } finally {
    clearTimeout(timer);
  }
}

const secretsIn = (env: ConnectParts['env']): string[] =>
  Object.entries(env).flatMap(([name, value]) => (isSecretName(name) && value.length >= SHORTEST_SECRET ? value : []));
