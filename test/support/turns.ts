/** Turns for tests of runners: making one, running it to its end, and its rows as the server would keep them. */
import { createFold } from '../../server/core/fold.ts';
import type { Message } from '../../server/core/terms.ts';
import type { Runner, RunnerEnd, RunnerEvent, Turn } from '../../server/runners/runner.ts';

export const RUN_ID = '0123456789abcdef0123456789abcdef';

/** A turn with everything that a test does not care about. Nobody answers its questions. */
export function makeTurn(part: Partial<Turn> = {}): Turn {
  return {
    sessionId: '20260303_130002_abcdef',
    runId: RUN_ID,
    input: 'hello',
    attachments: [],
    attachment: async () => null,
    model: '',
    workspace: null,
    history: [],
    ask: async () => ({ kind: 'timeout' }),
    steer: async () => [],
    ...part,
  };
}

export interface Ran {
  events: RunnerEvent[];
  end: RunnerEnd;
  /** All deltas of the text together. */
  text: string;
}

/** Runs a turn to its end. `onEvent` sees each event before the runner goes on. */
export async function runTurn(
  runner: Runner,
  turn: Partial<Turn>,
  signal: AbortSignal = new AbortController().signal,
  onEvent: (event: RunnerEvent) => void = () => {},
): Promise<Ran> {
  const run = runner.run(makeTurn(turn), signal);
  const events: RunnerEvent[] = [];
  for (;;) {
    const step = await run.next();
    if (step.done) return { events, end: step.value, text: textOf(events) };
    events.push(step.value);
    onEvent(step.value);
  }
}

/** The text of a run. */
export function textOf(events: readonly RunnerEvent[]): string {
  return events.map((event) => (event.type === 'message.delta' ? event.payload.text : '')).join('');
}

/** The rows that a run leaves in the transcript, its prompt first. */
export function rowsOf(input: string, ran: Ran, runId: string, at: number): Message[] {
  const fold = createFold(runId);
  const start = { admission_id: 'a', input, generation: 1, timestamp: at, model: 'builtin' };
  fold.apply({ type: 'run.start', payload: start }, at);
  for (const event of ran.events) fold.apply(event, at);
  fold.end(ran.end.kind === 'completed' ? { kind: 'complete' } : { kind: 'error', error: ran.end.error }, at);
  return [...fold.rows()];
}
