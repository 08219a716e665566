/** The drain and the claims race, every step moved by hand: no order of events is left to chance. */
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { openDrainBench, SESSION } from '../support/drain-bench.ts';
import { until } from '../support/until.ts';

describe('the claims race', () => {
  it('[CL1][CL2] a head that is cancelled after its last check hands its claim to nobody', async () => {
    const { steps, drain, stop, checked, ran, verdicts, admit, statuses } = await openDrainBench();
    const head = await admit('head');
    await admit('successor');
    verdicts.set('successor', 'not_allowed');
    steps.hold('claim');
    drain.arm(SESSION);
    await steps.reached('claim');
    expect(checked).toEqual(['head']);
    await stop.cancel(SESSION, head.admission_id);
    steps.free('claim');
    await drain.ended(SESSION);
    expect(ran).toEqual([]);
    expect(checked).toEqual(['head', 'successor']);
    expect(await statuses()).toEqual(['head cancelled', 'successor queued']);
  });

  it('[CL1] a head that is cancelled before it is read again is not checked at all', async () => {
    const { steps, drain, stop, checked, ran, admit } = await openDrainBench();
    const head = await admit('head');
    await admit('successor');
    steps.hold('head');
    drain.arm(SESSION);
    await steps.reached('head');
    await stop.cancel(SESSION, head.admission_id);
    steps.free('head');
    await drain.ended(SESSION);
    expect(checked).toEqual(['successor']);
    expect(ran.map((one) => one.text)).toEqual(['successor']);
  });

  it('[CL2] a cancel never waits for a check that runs', async () => {
    const { steps, drain, stop, checked, admit, statuses } = await openDrainBench();
    const head = await admit('head');
    const second = await admit('second');
    steps.hold('check');
    drain.arm(SESSION);
    await steps.reached('check');
    // The check is held all the while.
    expect((await stop.cancel(SESSION, second.admission_id)).outcome).toBe('cancelled');
    expect((await stop.cancel(SESSION, head.admission_id)).outcome).toBe('cancelled');
    expect(checked).toEqual(['head']);
    steps.free('check');
    await drain.ended(SESSION);
    expect(await statuses()).toEqual(['head cancelled', 'second cancelled']);
  });

  it('[AD3] whatever arms a session, one task works on it and one prompt runs', async () => {
    const { steps, drain, ran, checked, admit } = await openDrainBench();
    for (const text of ['a', 'b']) await admit(text);
    steps.hold('turn');
    for (let n = 0; n < 5; n += 1) drain.arm(SESSION);
    await steps.reached('turn');
    for (let n = 0; n < 5; n += 1) drain.arm(SESSION);
    expect(ran.map((one) => one.text)).toEqual(['a']);
    steps.go('turn');
    await steps.reached('turn');
    expect(ran.map((one) => one.text)).toEqual(['a', 'b']);
    steps.free('turn');
    await drain.ended(SESSION);
    expect(checked).toEqual(['a', 'b']);
  });
});

describe('a refused check', () => {
  it('[CL2] pauses: the row stays, who waits is told, and nothing asks again by itself', async () => {
    const { drain, registry, checked, verdicts, admit, statuses, wait, logs } = await openDrainBench();
    const head = await admit('head');
    verdicts.set('head', 'not_allowed');
    const told = wait(head);
    drain.arm(SESSION);
    await drain.ended(SESSION);
    await told;
    expect(registry.peek(SESSION)?.paused).toBe('not_allowed');
    expect(await statuses()).toEqual(['head queued']);
    expect(checked).toEqual(['head']);
    expect(logs[0]?.fields).toMatchObject({ admission_id: head.admission_id, reason: 'not_allowed' });
  });

  it('[CL2] a later submit, cancel or resolve asks again, once each', async () => {
    const { drain, stop, checked, verdicts, ran, registry, admit } = await openDrainBench();
    const head = await admit('head');
    const second = await admit('second');
    verdicts.set('head', 'not_allowed');
    for (let times = 1; times <= 3; times += 1) {
      drain.arm(SESSION); // As a submit and a resolve do.
      await drain.ended(SESSION);
      expect(checked).toEqual(Array(times).fill('head'));
    }
    await stop.cancel(SESSION, second.admission_id);
    await drain.ended(SESSION);
    expect(checked).toHaveLength(4);
    // Cancelling the head itself lets the next one have its own check and run.
    await admit('third');
    await stop.cancel(SESSION, head.admission_id);
    await drain.ended(SESSION);
    expect(checked.slice(4)).toEqual(['third']);
    expect(ran.map((one) => one.text)).toEqual(['third']);
    expect(registry.peek(SESSION)?.paused).toBeNull();
  });

  it('[CL2] an arming before the head is read is answered by that read: one check', async () => {
    const { steps, drain, checked, verdicts, admit } = await openDrainBench();
    await admit('head');
    verdicts.set('head', 'not_allowed');
    steps.hold('recover');
    drain.arm(SESSION);
    await steps.reached('recover');
    for (let n = 0; n < 3; n += 1) drain.arm(SESSION);
    steps.free('recover');
    await drain.ended(SESSION);
    expect(checked).toEqual(['head']);
  });

  it('[CL2] armings while the check runs ask once more, not once each', async () => {
    const { steps, drain, checked, verdicts, admit } = await openDrainBench();
    await admit('head');
    verdicts.set('head', 'not_allowed');
    steps.hold('check');
    drain.arm(SESSION);
    await steps.reached('check');
    for (let n = 0; n < 3; n += 1) drain.arm(SESSION);
    steps.free('check');
    await drain.ended(SESSION);
    expect(checked).toEqual(['head', 'head']);
  });

  it('[CL4] a check that breaks is told as what it is, and keeps nobody waiting', async () => {
    const bench = await openDrainBench();
    const head = await bench.admit('head');
    bench.verdicts.get = () => {
      throw new Error('broken');
    };
    const told = bench.wait(head);
    bench.drain.arm(SESSION);
    await told;
    await bench.drain.ended(SESSION);
    expect(bench.logs[0]).toMatchObject({ level: 'error', fields: { session_id: SESSION } });
    expect(bench.registry.peek(SESSION)?.paused).toBe('internal');
    expect(await bench.statuses()).toEqual(['head queued']);
  });
});

describe('the lease around a claim', () => {
  it('[LE3] behind a turn of unknown fate nothing is begun, and a session that nobody has is not taken', async () => {
    const { file, stores, drain, checked, settledFor, admit, statuses } = await openDrainBench();
    const head = await admit('head');
    await admit('successor');
    await stores.admissions.claim(SESSION, head.admission_id, { epoch: 1, now: 3 });
    await stores.admissions.markUnknown(head.admission_id);
    const outside = new Database(file);
    outside.exec('DELETE FROM active_sessions');
    outside.close();
    drain.arm(SESSION);
    await drain.ended(SESSION);
    expect([checked, settledFor]).toEqual([[], []]);
    expect(await statuses()).toEqual(['head unknown', 'successor queued']);
    expect(await stores.leases.holder(SESSION)).toBeNull();
  });

  it('[CL2][LE1] what another program left is settled under the lease, before the head is checked', async () => {
    const { stores, steps, drain, settledFor, checked, admit } = await openDrainBench();
    await admit('head');
    steps.hold('beforeRun');
    drain.arm(SESSION);
    await steps.reached('beforeRun');
    expect(await stores.leases.holder(SESSION)).not.toBeNull();
    expect(checked).toEqual([]);
    steps.free('beforeRun');
    await drain.ended(SESSION);
    expect([checked, settledFor]).toEqual([['head'], [SESSION]]);
  });
});

describe('storage trouble', () => {
  it('[CL3] a claim is tried again in place, from 0.25 s doubling to 5 s, each time with a log line, until it succeeds', async () => {
    const { file, steps, drain, checked, ran, pauses, logs, admit, wait } = await openDrainBench();
    const head = await admit('head');
    let told = false;
    const waiting = wait(head).then(() => {
      told = true;
    });
    steps.hold('check');
    drain.arm(SESSION);
    await steps.reached('check');
    const outside = new Database(file);
    outside.exec('BEGIN IMMEDIATE');
    steps.free('check');
    await until('it was tried eight times', () => {
      if (pauses.length < 7) return false;
      steps.hold('pause');
      return true;
    });
    await steps.reached('pause');
    expect(told).toBe(false);
    expect(ran).toEqual([]);
    outside.exec('COMMIT');
    outside.close();
    steps.free('pause');
    await waiting;
    await drain.ended(SESSION);
    expect(pauses.slice(0, 7)).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
    expect(logs.filter((line) => line.fields.what === 'claim')).toHaveLength(pauses.length);
    expect(logs[0]?.fields).toMatchObject({ what: 'claim', kind: 'busy', retry_in_ms: 250 });
    // The same head, on the one check that it had.
    expect(checked).toEqual(['head']);
    expect(ran).toEqual([{ text: 'head', stopped: false }]);
  });

  it('[CL3] only a server that stops gives up; the row stays queued', async () => {
    const { file, steps, drain, pauses, admit, statuses, ran } = await openDrainBench();
    await admit('head');
    steps.hold('check');
    steps.hold('pause');
    drain.arm(SESSION);
    await steps.reached('check');
    const outside = new Database(file);
    outside.exec('BEGIN IMMEDIATE');
    steps.free('check');
    await steps.reached('pause');
    expect(pauses).toEqual([250]);
    outside.exec('COMMIT');
    outside.close();
    expect(await statuses()).toEqual(['head queued']);
    expect(ran).toEqual([]);
  });
});

describe('a stop', () => {
  const stopNow = { generation: null, clearQueue: false };

  it('[CL6] while the head is checked it is kept for the run of that head, and is not waited for', async () => {
    const { steps, drain, stop, ran, admit } = await openDrainBench();
    await admit('head');
    await admit('next');
    steps.hold('check');
    drain.arm(SESSION);
    await steps.reached('check');
    expect(await stop.interrupt(SESSION, stopNow)).toEqual({ status: 'interrupted', generation: 1 });
    steps.free('check');
    await drain.ended(SESSION);
    expect(ran).toEqual([
      { text: 'head', stopped: true },
      { text: 'next', stopped: false },
    ]);
  });

  it('[CL6] of a head that is cancelled it reaches nobody else', async () => {
    const { steps, drain, stop, ran, admit } = await openDrainBench();
    const head = await admit('head');
    await admit('next');
    steps.hold('check');
    drain.arm(SESSION);
    await steps.reached('check');
    await stop.interrupt(SESSION, stopNow);
    await stop.cancel(SESSION, head.admission_id);
    steps.free('check');
    await drain.ended(SESSION);
    expect(ran).toEqual([{ text: 'next', stopped: false }]);
  });

  it('[CL6] of a head that is refused it is forgotten: what a person lets go on later is not stopped', async () => {
    const { steps, drain, stop, ran, verdicts, admit } = await openDrainBench();
    await admit('head');
    verdicts.set('head', 'not_allowed');
    steps.hold('check');
    drain.arm(SESSION);
    await steps.reached('check');
    await stop.interrupt(SESSION, stopNow);
    steps.free('check');
    await drain.ended(SESSION);
    verdicts.clear();
    drain.arm(SESSION);
    await drain.ended(SESSION);
    expect(ran).toEqual([{ text: 'head', stopped: false }]);
  });

  it('[CL6] between claim and agent it reaches the run that was claimed, also by its generation', async () => {
    const { steps, drain, stop, admit, registry } = await openDrainBench();
    await admit('head');
    steps.hold('turn');
    drain.arm(SESSION);
    await steps.reached('turn');
    await expect(stop.interrupt(SESSION, { generation: 2, clearQueue: false })).rejects.toMatchObject({
      code: 'stale_generation',
    });
    expect(registry.peek(SESSION)?.run?.stop.signal.aborted).toBe(false);
    expect(await stop.interrupt(SESSION, { generation: 1, clearQueue: false })).toEqual({
      status: 'interrupted',
      generation: 1,
    });
    expect(registry.peek(SESSION)?.run?.stop.signal.aborted).toBe(true);
    steps.free('turn');
    await drain.ended(SESSION);
  });

  it('[CL5] with clear_queue it cancels the head that is checked, without waiting for the check', async () => {
    const { steps, drain, stop, ran, admit, statuses } = await openDrainBench();
    await admit('head');
    await admit('next');
    steps.hold('check');
    drain.arm(SESSION);
    await steps.reached('check');
    expect(await stop.interrupt(SESSION, { generation: null, clearQueue: true })).toEqual({
      status: 'idle',
      generation: 0,
    });
    steps.free('check');
    await drain.ended(SESSION);
    expect(ran).toEqual([]);
    expect(await statuses()).toEqual(['head cancelled', 'next cancelled']);
  });
});

describe('a cancel', () => {
  it('[CL5] whose clean-up fails has told everybody once; its exact repeat cleans up and gives the receipt', async () => {
    let isBroken = true;
    const bench = await openDrainBench({
      async release() {
        if (isBroken) throw Object.assign(new Error('no room'), { code: 'ENOSPC' });
      },
    });
    const { drain, stop, checked, verdicts, shown, released, admit, wait, statuses } = bench;
    const head = await admit('head');
    await admit('successor');
    verdicts.set('head', 'not_allowed');
    verdicts.set('successor', 'not_allowed');
    drain.arm(SESSION);
    await drain.ended(SESSION);
    checked.length = 0;
    const told = wait(head);
    await expect(stop.cancel(SESSION, head.admission_id)).rejects.toMatchObject({ code: 'ENOSPC' });
    await told;
    await drain.ended(SESSION);
    expect(shown).toHaveLength(1);
    isBroken = false;
    const receipts = [await stop.cancel(SESSION, head.admission_id), await stop.cancel(SESSION, head.admission_id)];
    expect(receipts.map((one) => one.outcome)).toEqual(['cancelled', 'cancelled']);
    await drain.ended(SESSION);
    expect(released).toEqual(Array(3).fill(head.admission_id));
    expect(shown).toHaveLength(1);
    // The successors of the paused head got one fresh drain, of the first call.
    expect(checked).toEqual(['successor']);
    expect(await statuses()).toEqual(['head cancelled', 'successor queued']);
  });
});
