/**
 * What an operator watches, in the text form of Prometheus (OP1). Owns the names of the measures; those who know a number
 * say it here or are asked when it is read. No label holds anything of a person: no id, no address, no text.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Outcome } from '../core/terms.ts';

export interface Metrics {
  /** A turn ended. @param seconds since its claim */
  runEnded(outcome: Outcome | 'unknown', seconds: number): void;
  /** An event was handed to all its readers. @param seconds since its agent gave it */
  delivered(seconds: number): void;
  /** A write of a run met trouble, and is tried again. */
  storageTrouble(kind: string): void;
  /** A request was answered; `route` is its pattern, never its address. */
  answered(answer: { method: string; route: string; status: number; seconds: number }): void;
  /** A refusal was answered, by its code. */
  refused(code: string): void;
  /** All of it as text, and what kind of text that is. */
  read(): Promise<{ type: string; text: string }>;
}

/** What is counted elsewhere, and asked when somebody reads. */
export interface MetricsSources {
  version: string;
  counts(): { liveSessions: number; activeRuns: number; subscribers: number };
  isDraining(): boolean;
  /** Admissions that have not ended. Rejects when the state DB does not answer. */
  open(): Promise<{ queued: number; started: number; unknown: number }>;
}

/** From a millisecond, which is what a delivery takes, to ten seconds, at which a person gives up. */
const DELIVERY_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];
const RUN_BUCKETS = [0.5, 1, 2.5, 5, 10, 30, 60, 180, 600, 1800, 7200];

export function createMetrics(sources: MetricsSources): Metrics {
  const registry = new Registry();
  const registers = [registry];
  // The process, its memory and descriptors, and how late the event loop is.
  collectDefaultMetrics({ register: registry });

  const gauge = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name: `turnkeep_${name}`,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  };
  gauge('live_sessions', 'Sessions in memory.', () => sources.counts().liveSessions);
  gauge('active_runs', 'Turns that run.', () => sources.counts().activeRuns);
  gauge('subscribers', 'Open event streams, SSE and WebSocket.', () => sources.counts().subscribers);
  gauge('draining', '1 while the server stops.', () => Number(sources.isDraining()));
  new Gauge({ name: 'turnkeep_info', help: 'The version.', labelNames: ['version'], registers }).set(
    { version: sources.version },
    1,
  );
  new Gauge({
    name: 'turnkeep_open_prompts',
    help: 'Accepted prompts that have not ended; without a value while the state DB does not answer.',
    labelNames: ['status'],
    registers,
    async collect() {
      const open = await sources.open().catch(() => null);
      this.reset();
      for (const [status, count] of Object.entries(open ?? {})) this.set({ status }, count);
    },
  });

  const runs = new Histogram({
    name: 'turnkeep_run_seconds',
    help: 'Turns that ended, by how, with how long they took.',
    labelNames: ['outcome'],
    buckets: RUN_BUCKETS,
    registers,
  });
  const deliveries = new Histogram({
    name: 'turnkeep_delivery_seconds',
    help: 'From when an agent gave an event to when it was journaled and handed to all its readers.',
    buckets: DELIVERY_BUCKETS,
    registers,
  });
  const troubles = new Counter({
    name: 'turnkeep_storage_errors_total',
    help: 'Writes of turns that failed and were tried again, by kind of trouble.',
    labelNames: ['kind'],
    registers,
  });
  const answers = new Histogram({
    name: 'turnkeep_http_request_seconds',
    help: 'Requests that were answered; a stream counts when it ends.',
    labelNames: ['method', 'route', 'status'],
    buckets: REQUEST_BUCKETS,
    registers,
  });
  const refusals = new Counter({
    name: 'turnkeep_refusals_total',
    help: 'Refused requests, by code.',
    labelNames: ['code'],
    registers,
  });

  return {
    runEnded: (outcome, seconds) => runs.observe({ outcome }, seconds),
    delivered: (seconds) => deliveries.observe(seconds),
    storageTrouble: (kind) => troubles.inc({ kind }),
    answered: ({ method, route, status, seconds }) =>
      answers.observe({ method, route, status: String(status) }, seconds),
    refused: (code) => refusals.inc({ code }),
    read: async () => ({ type: registry.contentType, text: await registry.metrics() }),
  };
}
