/**
 * The worker thread for long transcripts: started when it is first needed, one job at a time, ended when it was idle for a
 * while. It keeps no process alive that has nothing else to do. A thread that fails costs time and no answer: whoever
 * asked does the work himself.
 */
import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import type { MergeSource, ReadJob, SidecarFile, ToThread } from './sidecar-jobs.ts';
import type { Merged, MergeRules } from './sidecar-merge.ts';

export interface SidecarThread {
  /**
   * Null when there is no thread that could, or it met an error: who does it here meets it again.
   * @param begun called when the thread is at it
   */
  read(file: SidecarFile, begun?: () => void): Promise<ReadJob | null>;
  /**
   * @param state rows of the state DB, piece by piece
   * @returns null when there is no thread that could, or the file has changed since it was read
   * @throws what `state` throws
   */
  merge(source: MergeSource, state: AsyncIterable<RawRow[]>, rules: MergeRules): Promise<Merged | null>;
}

export interface SidecarThreadParts {
  /** The thread failed; its job is done here. */
  onFailure(error: unknown): void;
  /** How long an idle thread is kept, in milliseconds. */
  idleMs?: number;
  /** The compiled worker; where there is none, as beside sources that were never compiled, there is no thread. */
  script?: URL;
}

/** After so many failures in a row no thread is tried again. */
const MAX_FAILURES = 3;

/** Says that the thread cannot be had; why was said to `onFailure`. */
class ThreadLost extends Error {
  override name = 'ThreadLost';
}

export function createSidecarThread(parts: SidecarThreadParts): SidecarThread {
  const { onFailure, idleMs = 30_000, script = new URL('./sidecar-worker.js', import.meta.url) } = parts;
  let worker: Worker | null = null;
  let idle: NodeJS.Timeout | null = null;
  let failures = 0;
  /** The answer that is waited for. */
  let waiting: { resolve(answer: unknown): void; reject(error: Error): void } | null = null;
  let queue: Promise<unknown> = Promise.resolve();

  const isPossible = (): boolean => failures < MAX_FAILURES && (worker !== null || existsSync(script));

  function start(): Worker {
    const started = new Worker(script);
    started.unref();
    const lose = (error: unknown): void => {
      if (worker !== started) return; // Ended by us, or lost already.
      worker = null;
      failures += 1;
      onFailure(error);
      waiting?.reject(new ThreadLost());
    };
    started.on('message', (answer) => {
      if (worker !== started) return;
      failures = 0;
      waiting?.resolve(answer);
    });
    started.on('error', lose);
    started.on('messageerror', (error) => {
      lose(error);
      void started.terminate();
    });
    started.on('exit', (code) => lose(new Error(`the thread for long transcripts ended with code ${code}`)));
    return started;
  }

  /** Runs one job when its turn comes. The process is kept alive meanwhile. */
  function run<Answer>(talk: (tell: (message: ToThread) => void) => Promise<void>): Promise<Answer | null> {
    const job = async (): Promise<Answer | null> => {
      if (!isPossible()) return null;
      if (idle) clearTimeout(idle);
      worker ??= start();
      const mine = worker;
      mine.ref();
      try {
        const answer = new Promise<unknown>((resolve, reject) => {
          waiting = { resolve, reject };
        });
        answer.catch(() => {}); // Seen below, unless the talk itself fails.
        await talk((message) => mine.postMessage(message));
        return (await answer) as Answer;
      } catch (error) {
        if (error instanceof ThreadLost) return null;
        throw error;
      } finally {
        waiting = null;
        mine.unref();
        idle = setTimeout(end, idleMs);
        idle.unref();
      }
    };
    const turn = queue.then(job);
    queue = turn.catch(() => {});
    return turn;
  }

  function end(): void {
    const ended = worker;
    worker = null;
    void ended?.terminate();
  }

  return {
    read: (file, begun) =>
      run(async (tell) => {
        tell({ kind: 'read', file });
        begun?.();
      }),
    merge: (source, state, rules) =>
      run(async (tell) => {
        tell({ kind: 'merge', source });
        for await (const rows of state) tell({ kind: 'state', rows });
        tell({ kind: 'go', rules });
      }),
  };
}
