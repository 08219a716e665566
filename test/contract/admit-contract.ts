/** Contract of the admission store, first half: what is accepted and what is refused. */
import { expect, it } from 'vitest';
import type { AdmitOutcome, NewAdmission } from '../../db/stores.ts';
import {
  lease,
  newAdmission,
  type OpenStores,
  OTHER,
  openBench,
  owner,
  runId,
  SESSION,
  settlement,
} from './stores-bench.ts';

export function admitContract(open: OpenStores): void {
  it('[AD1] an admitted prompt is a queued row with everything that was said', async () => {
    const { stores, holder, session, admit } = await openBench(open);
    await session();
    const admission = await admit(1, { attachments: ['x1', 'x2'], mode: 'interrupt', text: 'a "b"\n\u{1F600}' });
    expect(admission).toEqual({
      admission_id: 'admission-1',
      request_id: 'request-1',
      principal_id: 'owner',
      session_id: SESSION,
      run_id: runId(1),
      sequence: 1,
      text: 'a "b"\n\u{1F600}',
      attachments: ['x1', 'x2'],
      mode: 'interrupt',
      digest: 'digest-1',
      status: 'queued',
      outcome: null,
      epoch: null,
      generation: null,
      created_at: 2_001,
      started_at: null,
      ended_at: null,
      last_seq: null,
      message_id: null,
      error: null,
      journal_pruned: false,
    });
    expect(await stores.admissions.get(SESSION, 'admission-1')).toEqual(admission);
    expect(await stores.admissions.byRun(SESSION, runId(1))).toEqual(admission);
    const row = await stores.sessions.get(SESSION);
    expect(row?.open).toEqual([
      {
        admission_id: 'admission-1',
        run_id: runId(1),
        sequence: 1,
        status: 'queued',
        started_at: null,
        epoch: null,
      },
    ]);
    expect(row).toMatchObject({ message_count: 0, updated_at: 2_001, last_message_at: null });
    expect(holder(SESSION)).toEqual(owner());
  });

  it('[AD2] the same key and digest give the same receipt whatever its state, and past every refusal', async () => {
    const { stores, dead, session, everything } = await openBench(open);
    await session();
    const again = (part: Partial<NewAdmission> = {}) =>
      stores.admissions.admit(
        // A repeat comes with ids of its own, a later time, and here into a full queue that somebody else owns.
        newAdmission(1, { admission_id: 'later', run_id: runId(99), now: 9_999, mode: 'reject', ...part }),
        { maxQueued: 0, lease: lease(owner(200), { cap: 0 }) },
      );
    const first = await stores.admissions.admit(newAdmission(1), { maxQueued: 1, lease: lease() });
    if (first.kind !== 'admitted') throw new Error(first.kind);

    const repeatIsStill = async (): Promise<void> => {
      const admission = await stores.admissions.get(SESSION, 'admission-1');
      const before = await everything();
      expect(await again()).toEqual({ kind: 'repeat', admission });
      expect(await everything()).toEqual(before);
    };
    expect(dead.size).toBe(0);
    await repeatIsStill();
    const claimed = await stores.admissions.claim(SESSION, 'admission-1', { epoch: 1, now: 2_100 });
    expect(claimed.kind).toBe('claimed');
    await repeatIsStill();
    await stores.admissions.markUnknown('admission-1');
    await repeatIsStill();
    await stores.admissions.resolve(SESSION, 'admission-1', 2_200);
    await repeatIsStill();
  });

  it('[AD2] a repeat of a completed and of a cancelled prompt gives that receipt', async () => {
    const { stores, session, admit, finish } = await openBench(open);
    await session();
    await finish(1);
    await admit(2);
    await stores.admissions.cancel(SESSION, 'admission-2', 2_300);
    const limits = { maxQueued: 9, lease: lease() };
    expect(await stores.admissions.admit(newAdmission(1), limits)).toMatchObject({
      kind: 'repeat',
      admission: { status: 'terminal', outcome: 'completed', last_seq: 7 },
    });
    expect(await stores.admissions.admit(newAdmission(2), limits)).toMatchObject({
      kind: 'repeat',
      admission: { status: 'terminal', outcome: 'cancelled' },
    });
  });

  it('[AD2] another digest under the same key is a conflict and changes nothing', async () => {
    const { stores, session, admit, everything } = await openBench(open);
    await session();
    await admit(1);
    const before = await everything();
    const other = newAdmission(2, { request_id: 'request-1', digest: 'digest-of-something-else' });
    expect(await stores.admissions.admit(other, { maxQueued: 9, lease: lease() })).toEqual({ kind: 'conflict' });
    expect(await everything()).toEqual(before);
  });

  it('[AD2] a key belongs to its principal and its session', async () => {
    const { session, admit } = await openBench(open);
    await session();
    await session(OTHER);
    await admit(1);
    await admit(2, { request_id: 'request-1', session_id: OTHER });
    await admit(3, { request_id: 'request-1', principal_id: 'guest' });
  });

  it('[AD2] the same prompt sent twenty times at once is one row with twenty receipts', async () => {
    const { stores, session } = await openBench(open);
    await session();
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        stores.admissions.admit(newAdmission(1, { admission_id: `a${n}`, run_id: runId(n) }), {
          maxQueued: 9,
          lease: lease(),
        }),
      ),
    );
    expect(outcomes.filter((outcome) => outcome.kind === 'admitted')).toHaveLength(1);
    const receipts = outcomes.map((outcome) =>
      'admission' in outcome ? outcome.admission.admission_id : outcome.kind,
    );
    expect(new Set(receipts).size).toBe(1);
    expect(await stores.admissions.list(SESSION, { pending: false, limit: 100 })).toHaveLength(1);
  });

  it('[AD5] a full queue refuses and forgets nothing; the running prompt does not count', async () => {
    const { stores, session, everything } = await openBench(open);
    await session();
    const admit = async (n: number): Promise<AdmitOutcome['kind']> =>
      (await stores.admissions.admit(newAdmission(n), { maxQueued: 2, lease: lease() })).kind;
    expect([await admit(1), await admit(2)]).toEqual(['admitted', 'admitted']);
    const before = await everything();
    expect(await admit(3)).toBe('queue_full');
    expect(await everything()).toEqual(before);
    await stores.admissions.claim(SESSION, 'admission-1', { epoch: 1, now: 2_100 });
    expect([await admit(3), await admit(4)]).toEqual(['admitted', 'queue_full']);
    const kept = await stores.admissions.list(SESSION, { pending: true, limit: 100 });
    expect(kept.map((one) => [one.admission_id, one.status])).toEqual([
      ['admission-1', 'started'],
      ['admission-2', 'queued'],
      ['admission-3', 'queued'],
    ]);
  });

  it('[AD5] a prompt that will not wait is refused while another waits, runs or is of unknown fate', async () => {
    const { stores, session, everything } = await openBench(open);
    await session();
    const refuse = async (n: number) =>
      stores.admissions.admit(newAdmission(n, { mode: 'reject' }), { maxQueued: 9, lease: lease() });
    expect((await refuse(1)).kind).toBe('admitted');
    expect(await refuse(2)).toEqual({ kind: 'session_busy' });
    const claim = await stores.admissions.claim(SESSION, 'admission-1', { epoch: 1, now: 2_100 });
    if (claim.kind !== 'claimed') throw new Error(claim.kind);
    const before = await everything();
    expect(await refuse(2)).toEqual({ kind: 'session_busy' });
    expect(await everything()).toEqual(before);
    await stores.admissions.markUnknown('admission-1');
    expect(await refuse(2)).toEqual({ kind: 'session_busy' });
    await stores.admissions.resolve(SESSION, 'admission-1', 2_200);
    expect((await refuse(2)).kind).toBe('admitted');
  });

  it('[AD1, DB3] a prompt for a session that is not there, or is deleted, is not found', async () => {
    const { stores, holder, session } = await openBench(open);
    const admit = () => stores.admissions.admit(newAdmission(1), { maxQueued: 9, lease: lease() });
    expect(await admit()).toEqual({ kind: 'not_found' });
    await session();
    await stores.sessions.remove(SESSION, 1_100);
    expect(await admit()).toEqual({ kind: 'not_found' });
    expect(holder(SESSION)).toBeNull();
  });

  it('[LE1, LE7] a prompt takes the lease in the same step, or is refused and inserts nothing', async () => {
    const { stores, session, everything, admit } = await openBench(open);
    await session();
    await session(OTHER);
    await admit(1);
    const before = await everything();
    const theirs = { maxQueued: 9, lease: lease(owner(200)) };
    expect(await stores.admissions.admit(newAdmission(2), theirs)).toEqual({ kind: 'not_owned', holder: owner() });
    const capped = { maxQueued: 9, lease: lease(owner(100, { liveSessionId: 'second' }), { cap: 1 }) };
    expect(await stores.admissions.admit(newAdmission(3, { session_id: OTHER }), capped)).toEqual({ kind: 'capacity' });
    expect(await everything()).toEqual(before);
  });

  it('[AD4] lists give the newest in order of acceptance, or all that have not ended', async () => {
    const { stores, session, admit, run } = await openBench(open);
    await session();
    await session(OTHER);
    const fence = await run(1);
    await admit(2, { session_id: OTHER });
    for (const n of [3, 4, 5]) await admit(n);
    await stores.admissions.settle(settlement(fence));
    await stores.admissions.cancel(SESSION, 'admission-4', 4_100);
    const list = async (pending: boolean, limit: number) =>
      (await stores.admissions.list(SESSION, { pending, limit })).map((one) => one.admission_id);
    expect(await list(false, 10)).toEqual(['admission-1', 'admission-3', 'admission-4', 'admission-5']);
    expect(await list(false, 2)).toEqual(['admission-4', 'admission-5']);
    expect(await list(true, 10)).toEqual(['admission-3', 'admission-5']);
    expect(await list(true, 1)).toEqual(['admission-3', 'admission-5']);
    expect(await stores.sessions.withOpenAdmissions().then((ids) => ids.sort())).toEqual([SESSION, OTHER]);
    expect(await stores.admissions.get(OTHER, 'admission-3')).toBeNull();
    expect(await stores.admissions.get(SESSION, 'nobody')).toBeNull();
    expect(await stores.admissions.byRun(OTHER, runId(3))).toBeNull();
    expect(await stores.admissions.byRun(SESSION, runId(77))).toBeNull();
  });
}
