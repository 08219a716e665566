/** What somebody who comes in the middle of a turn is shown of it. */
import type { FoldView } from '../core/fold.ts';
import type { LiveSession } from './live-session.ts';

export interface RunView extends FoldView {
  run_id: string;
  admission_id: string;
  generation: number;
  /** The prompt. */
  input: string;
  status: 'running' | 'waiting';
  /** The last event that is in this view. */
  last_seq: number;
}

/** What a run shows before its journal is open. */
const NOTHING_YET: FoldView = { text: '', reasoning: '', tools: [], parts: [], todos: [], notice: null };

/** The running turn as it has been shown so far; null when none runs. */
export function runViewOf(live: LiveSession): RunView | null {
  if (!live.run) return null;
  const { runId, admissionId, generation, input, log } = live.run;
  const status = live.requests.size > 0 ? 'waiting' : 'running';
  const view = log?.fold.view() ?? NOTHING_YET;
  return {
    run_id: runId,
    admission_id: admissionId,
    generation,
    input,
    status,
    ...view,
    last_seq: log?.published() ?? 0,
  };
}
