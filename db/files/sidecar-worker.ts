/**
 * The thread that reads and merges long transcripts, so that no reader of a stream waits for it. It is started, told and
 * ended by `sidecar-thread`, and has nothing of its own but the job that it is at.
 */
import { parentPort } from 'node:worker_threads';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import { type MergeSource, mergeJob, readJob, type ToThread } from './sidecar-jobs.ts';
import { buffersOf, type PackedRows } from './sidecar-rows.ts';

const port = parentPort!;
let merging: { source: MergeSource; state: RawRow[] } | null = null;

/** Answers what a job makes, its bytes handed over; null when it fails, for whoever asked meets the error himself. */
function answer<Made>(job: () => Made, rowsOf: (made: Made) => PackedRows | null): void {
  let made: Made | null = null;
  try {
    made = job();
  } catch {}
  const rows = made === null ? null : rowsOf(made);
  port.postMessage(made, rows ? buffersOf(rows) : []);
}

port.on('message', (message: ToThread) => {
  switch (message.kind) {
    case 'read':
      return answer(
        () => readJob(message.file),
        (job) => (job.kind === 'found' ? job.sidecar.rows : null),
      );
    case 'merge':
      merging = { source: message.source, state: [] };
      return;
    case 'state':
      for (const row of message.rows) merging?.state.push(row);
      return;
    case 'go': {
      const { source, state } = merging!;
      merging = null;
      return answer(
        () => mergeJob(source, state, message.rules),
        (merged) => merged?.rows ?? null,
      );
    }
  }
});
