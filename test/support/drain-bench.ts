/**
 * A drain over a real state DB, moved by hand: every step that it takes outside of itself is a point of `steps`, its
 * check answers what the test says, its turns end at once, and its pauses end when the test says.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { openStateDb } from '../../db/client.ts';
import { createSqliteStores } from '../../db/sqlite-stores.ts';
import type { Stores } from '../../db/stores.ts';
import { createCompletions } from '../../server/authority/completions.ts';
import { createDoubts } from '../../server/authority/doubts.ts';
import { createDrain, type Drain } from '../../server/authority/drain.ts';
import { createPersist } from '../../server/authority/persist.ts';
import { createStop, type Stop } from '../../server/authority/stop.ts';
import type { Admission } from '../../server/core/terms.ts';
import { createLeases } from '../../server/lease/leases.ts';
import type { LiveEvent } from '../../server/live/live-event.ts';
import type { LiveRun } from '../../server/live/live-session.ts';
import { createLiveRegistry, type LiveRegistry } from '../../server/live/registry.ts';
import { newStateFile, stateDbOptions } from './state-db.ts';
import { createSteps, type Steps } from './steps.ts';

export const SESSION = '20260303_130002_aaaaaa';

export interface DrainBench {
  file: string;
  stores: Stores;
  steps: Steps;
  drain: Drain;
  stop: Stop;
  registry: LiveRegistry;
  /** Sessions in which it was settled what other programs had left. */
  settledFor: string[];
  /** Texts that were checked, in order. */
  checked: string[];
  /** Texts that ran, in order, and whether their run had been stopped before it began. */
  ran: { text: string; stopped: boolean }[];
  /** Pauses between tries, in milliseconds, as they were asked for. */
  pauses: number[];
  logs: { level: 'error' | 'warn'; fields: Record<string, unknown>; message: string }[];
  /** Each call of the clean-up behind a cancellation. */
  released: string[];
  /** What the check answers for a text; 'ok' unless set. */
  verdicts: Map<string, string>;
  /** Ends of cancelled prompts that a reader of the session was shown. */
  shown: LiveEvent[];
  admit(text: string): Promise<Admission>;
  statuses(): Promise<string[]>;
  /** Waits for the end of an admission, as a request with `wait=1` does. */
  wait(admission: Admission): Promise<void>;
}

export async function openDrainBench(
  part: { release?(admission: Admission): Promise<void> } = {},
): Promise<DrainBench> {
  const file = await newStateFile();
  const state = await openStateDb(stateDbOptions(file, { patienceMs: 0 }));
  const real = createSqliteStores(state, () => true);
  onTestFinished(() => real.close());
  const steps = createSteps();
  const { claim, get } = real.admissions;
  const stores: Stores = {
    ...real,
    admissions: {
      ...real.admissions,
      async claim(...args) {
        await steps.pass('claim');
        return claim(...args);
      },
      async get(...args) {
        await steps.pass('head');
        return get(...args);
      },
    },
  };
  const registry = createLiveRegistry({ newRuntimeId: () => 'aabbccdd', now: () => 1, heartbeatS: 1_000 });
  let id = 0;
  const newId = (): string => {
    id += 1;
    return id.toString(16).padStart(32, '0');
  };
  const leases = createLeases({
    store: real.leases,
    process: { pid: 1, start: 'a' },
    epoch: 1,
    cap: null,
    now: () => 1,
    newId,
  });
  const completions = createCompletions();
  const logs: DrainBench['logs'] = [];
  const log = {
    error: (fields: object, message: string) => void logs.push({ level: 'error', fields: { ...fields }, message }),
    warn: (fields: object, message: string) => void logs.push({ level: 'warn', fields: { ...fields }, message }),
  };
  const pauses: number[] = [];
  const giveUp = new AbortController();
  const persist = createPersist({
    async sleep(ms) {
      pauses.push(ms);
      await nextTurn();
      await steps.pass('pause');
    },
    stop: giveUp.signal,
    log,
  });
  const settledFor: string[] = [];
  const checked: string[] = [];
  const ran: DrainBench['ran'] = [];
  const verdicts = new Map<string, string>();
  const shown: LiveEvent[] = [];
  const drain = createDrain({
    stores,
    registry,
    leases,
    recover: () => steps.pass('recover'),
    async beforeRun(sessionId) {
      await steps.pass('beforeRun');
      settledFor.push(sessionId);
    },
    async check({ text }) {
      checked.push(text);
      await steps.pass('check');
      const reason = verdicts.get(text) ?? 'ok';
      return reason === 'ok' ? 'ok' : { reason };
    },
    async runTurn(live, run: LiveRun, fence, admission) {
      ran.push({ text: admission.text, stopped: run.stop.signal.aborted });
      await steps.pass('turn');
      const end = { error: null, message_id: null, last_seq: 1, rows: [], usage: null };
      await persist('settle', () => real.admissions.settle({ ...end, fence, outcome: 'completed', now: 9 }));
      live.run = null;
      completions.settle(admission.admission_id);
    },
    persist,
    epoch: 1,
    now: () => 5,
    onPaused: () => completions.wakeAll(),
    log,
  });
  const released: string[] = [];
  const stop = createStop({
    stores,
    registry,
    drain,
    completions,
    doubts: createDoubts({ persist, log }),
    resolveUnknown: async () => ({ kind: 'not_found' }),
    async release(admission) {
      released.push(admission.admission_id);
      await part.release?.(admission);
    },
    within: async (event) => {
      await event;
      return true;
    },
    now: () => 7,
    onChange: () => {},
  });
  await real.sessions.create({
    session_id: SESSION,
    title: null,
    model: null,
    workspace: null,
    project_id: null,
    source: 'web',
    now: 1,
    create_key: null,
    create_digest: null,
  });
  // A reader keeps the live session in memory, and sees what is published.
  const live = registry.open(SESSION);
  const publish = live.publishUnrun;
  live.publishUnrun = (admission, outcome) => {
    shown.push({ type: 'message.complete', json: JSON.stringify(admission) } as LiveEvent);
    publish(admission, outcome);
  };
  registry.hold(SESSION);
  onTestFinished(async () => {
    drain.stopClaiming();
    giveUp.abort();
    for (const point of ['claim', 'head', 'recover', 'beforeRun', 'check', 'turn', 'pause']) steps.free(point);
    await drain.idle();
  });
  return {
    file,
    stores: real,
    steps,
    drain,
    stop,
    registry,
    settledFor,
    checked,
    ran,
    pauses,
    logs,
    released,
    verdicts,
    shown,
    async admit(text) {
      const outcome = await real.admissions.admit(
        {
          admission_id: newId(),
          request_id: text,
          principal_id: 'owner',
          session_id: SESSION,
          run_id: newId(),
          text,
          attachments: [],
          mode: 'queue',
          digest: text,
          now: 2,
        },
        { maxQueued: 100, lease: leases.request(live) },
      );
      if (outcome.kind !== 'admitted') throw new Error(outcome.kind);
      return outcome.admission;
    },
    statuses: async () =>
      (await real.admissions.list(SESSION, { pending: false, limit: 100 })).map(
        (one) => `${one.text} ${one.outcome ?? one.status}`,
      ),
    wait: (admission) => completions.wait(admission.admission_id, new AbortController().signal),
  };
}
