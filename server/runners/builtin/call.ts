/**
 * Tool calls of the built-in agent: what one is, and how calls of one message become events. Owns the waiting, not the
 * tools.
 */
import { wellFormed, wellFormedJson } from '../../core/text.ts';
import { waitForAbort } from '../abort-wait.ts';
import type { RunnerEvent, Turn } from '../runner.ts';
import { createSideEvents } from '../side-events.ts';
import type { BuiltinServices } from './services.ts';

/** What one turn's answer is made with. */
export interface Scene {
  turn: Turn;
  signal: AbortSignal;
  services: BuiltinServices;
}

export interface Outcome {
  /** What the tool gave: the body of its card. */
  result: string;
  is_error: boolean;
  /** Markdown for the person, said after the call. */
  say: string;
  /** What it changed in a file, as a unified diff. */
  diff?: string;
  /** The person said no to it. */
  denied?: true;
  /** Seconds that it took, if it knows better than whoever waits for it. */
  duration_s?: number;
}

/** What a call tells while it runs, and under which id. */
export interface Telling {
  id: string;
  tell(event: RunnerEvent): void;
}

export interface Call {
  name: string;
  args: Record<string, unknown>;
  /** One short line. */
  preview: string;
  run(signal: AbortSignal, telling: Telling): Promise<Outcome>;
}

/** Longest result (characters). */
const MAX_RESULT = 64 * 1024;

/** An outcome of a tool that did its work. */
export const succeeded = (result: string, say = result): Outcome => ({ result, is_error: false, say });
/** An outcome of a tool that could not. */
export const refused = (result: string, say = result): Outcome => ({ result, is_error: true, say });

/** The head of a tool card. */
export function previewOf(text: string): string {
  const line = text.slice(0, 400).replace(/\s+/g, ' ').trim();
  return wellFormed(line.length > 80 ? `${line.slice(0, 79)}…` : line);
}

/**
 * Makes calls side by side: all starts first, then each end as it comes. When the turn is aborted it stops waiting.
 * @returns the outcomes in the order of the calls; null when aborted
 */
export async function* makeCalls(calls: Call[], scene: Scene): AsyncGenerator<RunnerEvent, Outcome[] | null, void> {
  const { services, signal } = scene;
  const outcomes: Outcome[] = [];
  const running = new Map<number, Promise<number>>();
  const ids = calls.map(() => services.newToolId());
  const times: number[] = [];
  for (const [index, { name, args, preview }] of calls.entries()) {
    const payload = { tool_id: ids[index]!, name, args: wellFormedJson(args), preview: previewOf(preview) };
    yield { type: 'tool.start', payload };
  }
  const meanwhile = createSideEvents();
  for (const [index, call] of calls.entries()) {
    const started = services.now();
    const ran = outcomeOf(call, signal, { id: ids[index]!, tell: meanwhile.tell }).then((outcome) => {
      outcomes[index] = outcome;
      times[index] = outcome.duration_s ?? Math.max(0, services.now() - started);
      return index;
    });
    running.set(index, ran);
  }
  const abort = waitForAbort(signal);
  try {
    while (running.size > 0) {
      const index = await Promise.race([abort.happened, meanwhile.some(), ...running.values()]);
      if (signal.aborted) return null;
      // What a call has put out stands before its end.
      yield* meanwhile.take();
      if (index === null) continue;
      running.delete(index);
      const { result, is_error, diff, denied } = outcomes[index]!;
      yield {
        type: 'tool.complete',
        payload: {
          tool_id: ids[index]!,
          name: calls[index]!.name,
          result: bounded(result),
          is_error,
          duration_s: Math.round(times[index]! * 1000) / 1000,
          ...(diff === undefined ? {} : { diff }),
          ...(denied ? { denied } : {}),
        },
      };
    }
    return outcomes;
  } finally {
    abort.release();
  }
}

/** A tool that throws is a tool that failed: the turn goes on and says so, without the inside of the error. */
async function outcomeOf(call: Call, signal: AbortSignal, telling: Telling): Promise<Outcome> {
  try {
    return await call.run(signal, telling);
  } catch {
    return refused('The tool failed.', `That did not work: the server could not do \`${call.name}\` just now.`);
  }
}

function bounded(result: string): string {
  return wellFormed(result.length > MAX_RESULT ? `${result.slice(0, MAX_RESULT)}\n[The rest is cut.]` : result);
}
