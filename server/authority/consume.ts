/** Letting an agent work: its events go to the log until it ends or is stopped. */
import { createTextJoiner, wellFormedJson } from '../core/text.ts';
import type { RunLog } from '../live/run-log.ts';
import type { Runner, RunnerEnd, RunnerEvent, Turn } from '../runners/runner.ts';
import { type AgentEnd, STOPPED } from './verdict.ts';

/**
 * Runs an agent to its end. Late events of a stopped agent are not read any more, and nobody waits for it.
 * @throws what the agent threw against its contract; what the log throws when it can write no more
 */
export async function consume(runner: Runner, turn: Turn, signal: AbortSignal, runLog: RunLog): Promise<AgentEnd> {
  let stop: () => void = () => {};
  const onAbort = () => stop();
  signal.addEventListener('abort', onAbort);
  const feed = createFeed(runLog);
  const events = runner.run(turn, signal);
  try {
    for (;;) {
      if (signal.aborted) return STOPPED;
      const next = events.next();
      // The abandoned promise of a stopped agent must not become an unhandled rejection.
      next.catch(() => {});
      const step = await new Promise<IteratorResult<RunnerEvent, RunnerEnd> | typeof STOPPED>((resolve, reject) => {
        stop = () => resolve(STOPPED);
        next.then(resolve, reject);
      });
      if (step === STOPPED || signal.aborted) return STOPPED;
      if (step.done) return checkedEnd(step.value);
      feed.event(checkedEvent(step.value));
      await runLog.room();
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    feed.end();
    events.return({ kind: 'completed' }).catch(() => {});
  }
}

/** Hands an agent's events to the log: text well-formed, halves of characters joined. */
function createFeed(runLog: RunLog) {
  const joiners = { 'message.delta': createTextJoiner(), 'reasoning.delta': createTextJoiner() };
  const flush = (): void => {
    for (const type of ['message.delta', 'reasoning.delta'] as const) {
      const text = joiners[type].end();
      if (text) runLog.append({ type, payload: { text } });
    }
  };
  return {
    event(event: RunnerEvent): void {
      if (event.type === 'message.delta' || event.type === 'reasoning.delta') {
        const text = joiners[event.type].push(event.payload.text);
        if (text) runLog.append({ type: event.type, payload: { text } });
        return;
      }
      flush();
      runLog.append(wellFormedJson(event));
    },
    end: flush,
  };
}

const TEXT_EVENTS = new Set<string>(['message.delta', 'reasoning.delta']);
const OTHER_EVENTS = new Set<string>([
  'message.start',
  'tool.start',
  'tool.output',
  'tool.complete',
  'todo.updated',
  'usage',
  'status',
]);

/** An event as the port allows it: a runner that is wrong must not be able to hurt more than its own turn. */
function checkedEvent(event: RunnerEvent): RunnerEvent {
  const { type, payload } = event ?? {};
  const isText = TEXT_EVENTS.has(type) && typeof (payload as { text?: unknown })?.text === 'string';
  const isOther = OTHER_EVENTS.has(type) && payload !== null && typeof payload === 'object';
  if (!isText && !isOther) throw new TypeError(`a runner yielded what is no event: ${JSON.stringify(type)}`);
  if (event.type === 'tool.complete' && typeof event.payload.result !== 'string') {
    throw new TypeError('a runner gave a tool result that is no text');
  }
  if (event.type === 'tool.complete' && !['string', 'undefined'].includes(typeof event.payload.diff)) {
    throw new TypeError('a runner gave a diff that is no text');
  }
  if (event.type === 'tool.output' && typeof event.payload.text !== 'string') {
    throw new TypeError('a runner gave an output of a tool that is no text');
  }
  return event;
}

function checkedEnd(end: RunnerEnd): RunnerEnd {
  if (end?.kind === 'completed') return end;
  if (end?.kind === 'failed' && typeof end.error?.message === 'string') return end;
  throw new TypeError('a runner ended without saying how');
}
