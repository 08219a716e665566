/** The decisions about prompts and leases, as tables. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AdmitFacts,
  type AdmitVerdict,
  headOf,
  judgeAdmission,
  judgeCancel,
  type OpenAdmission,
} from '../../server/core/admission-rules.ts';
import { judgeLease, type LeaseOwner } from '../../server/core/lease-rules.ts';

describe('a prompt', () => {
  const facts: AdmitFacts = { existing: null, digest: 'd', mode: 'queue', queued: 0, busy: false, maxQueued: 2 };
  const same = { existing: { digest: 'd' } };
  const other = { existing: { digest: 'another' } };

  const table: [part: Partial<AdmitFacts>, verdict: AdmitVerdict][] = [
    [{}, 'admit'],
    [{ busy: true }, 'admit'],
    [{ busy: true, queued: 1 }, 'admit'],
    [{ queued: 2 }, 'queue_full'],
    [{ queued: 3 }, 'queue_full'],
    [{ busy: true, queued: 2 }, 'queue_full'],
    [{ maxQueued: 0 }, 'queue_full'],
    [{ mode: 'steer', busy: true }, 'admit'],
    [{ mode: 'interrupt', busy: true }, 'admit'],
    [{ mode: 'interrupt', queued: 2 }, 'queue_full'],
    [{ mode: 'reject' }, 'admit'],
    [{ mode: 'reject', busy: true }, 'session_busy'],
    [{ mode: 'reject', queued: 1 }, 'session_busy'],
    [{ mode: 'reject', queued: 2, busy: true }, 'session_busy'],
    [{ mode: 'reject', maxQueued: 0 }, 'queue_full'],
    // What came before is told before anything else is looked at.
    [same, 'repeat'],
    [{ ...same, queued: 9, busy: true }, 'repeat'],
    [{ ...same, mode: 'reject', busy: true }, 'repeat'],
    [other, 'conflict'],
    [{ ...other, queued: 9 }, 'conflict'],
    [{ ...other, mode: 'reject', busy: true }, 'conflict'],
  ];

  it.each(table)('[AD2, AD5] with %j is judged %s', (part, verdict) => {
    expect(judgeAdmission({ ...facts, ...part })).toBe(verdict);
  });

  it('[CL5] is cancelled while it waits, and in no other state', () => {
    expect(judgeCancel('queued')).toBe('cancel');
    expect(judgeCancel('terminal')).toBe('repeat');
    expect(judgeCancel('started')).toBe('stale_generation');
    expect(judgeCancel('unknown')).toBe('unknown_execution');
  });
});

describe('the head of a queue', () => {
  const open = (text: string): OpenAdmission[] =>
    text
      .split(' ')
      .filter(Boolean)
      .map((one) => ({
        admission_id: one,
        sequence: Number(one.slice(1)),
        status: one.startsWith('q') ? 'queued' : one.startsWith('s') ? 'started' : 'unknown',
      }));

  it('[AD3, AD4, CL1] is the lowest that waits, unless one runs or is of unknown fate', () => {
    expect(headOf(open(''))).toEqual({ kind: 'empty' });
    expect(headOf(open('q1'))).toEqual({ kind: 'queued', admissionId: 'q1' });
    expect(headOf(open('q3 q1 q2'))).toEqual({ kind: 'queued', admissionId: 'q1' });
    expect(headOf(open('q10 q9'))).toEqual({ kind: 'queued', admissionId: 'q9' });
    expect(headOf(open('s1 q2'))).toEqual({ kind: 'blocked', by: 'started', admissionId: 's1' });
    expect(headOf(open('q1 s2'))).toEqual({ kind: 'blocked', by: 'started', admissionId: 's2' });
    expect(headOf(open('u1 q2'))).toEqual({ kind: 'blocked', by: 'unknown', admissionId: 'u1' });
    expect(headOf(open('s1 u2'))).toEqual({ kind: 'blocked', by: 'unknown', admissionId: 'u2' });
  });

  it('[AD4] is the same in whatever order the rows are given', () => {
    const rows = fc.uniqueArray(
      fc.record({
        sequence: fc.nat(50),
        status: fc.constantFrom('queued' as const, 'queued' as const, 'started' as const),
      }),
      { selector: (one) => one.sequence },
    );
    const property = fc.property(rows, (given) => {
      const list = given.map((one) => ({ ...one, admission_id: `a${one.sequence}` }));
      const head = headOf(list);
      expect(headOf(list.toReversed()).kind).toBe(head.kind);
      const waiting = list.filter((one) => one.status === 'queued').map((one) => one.sequence);
      if (list.some((one) => one.status === 'started')) expect(head.kind).toBe('blocked');
      else if (waiting.length === 0) expect(head.kind).toBe('empty');
      else expect(head).toEqual({ kind: 'queued', admissionId: `a${Math.min(...waiting)}` });
    });
    fc.assert(property);
  });
});

describe('a lease', () => {
  const owner = (pid: number, part: Partial<LeaseOwner> = {}): LeaseOwner => ({
    pid,
    start: `boot:${pid}`,
    liveSessionId: `live-${pid}`,
    epoch: 1,
    ...part,
  });
  const me = owner(1);
  const all = (): boolean => true;
  const none = (): boolean => false;
  const not =
    (...dead: number[]) =>
    (process: { pid: number }): boolean =>
      !dead.includes(process.pid);
  const granted = (part: object = {}) => ({ kind: 'granted', renew: false, prune: [], ...part });

  it('[LE1] that nobody holds is granted, one that a living process holds is not', () => {
    expect(judgeLease(me, null, [], null, all)).toEqual(granted());
    expect(judgeLease(me, owner(2), [], null, all)).toEqual({ kind: 'not_owned', holder: owner(2) });
    expect(judgeLease(me, owner(2, { start: null }), [], null, all)).toMatchObject({ kind: 'not_owned' });
  });

  it('[LE3] of a dead process, of a reused pid, or of a runtime of ours that is gone is granted anew', () => {
    expect(judgeLease(me, owner(2), [], null, none)).toEqual(granted());
    const reused = owner(1, { start: 'boot:earlier', liveSessionId: 'live-earlier' });
    expect(judgeLease(me, reused, [], null, none)).toEqual(granted());
    // The same pid with another start is another process, and lives as long as nobody proves the contrary.
    expect(judgeLease(me, reused, [], null, all)).toMatchObject({ kind: 'not_owned' });
    expect(judgeLease(me, owner(1, { liveSessionId: 'live-earlier' }), [], null, all)).toEqual(granted());
  });

  it('[LE4] of the same writer is renewed, without a look at the capacity or at who else lives', () => {
    expect(judgeLease(me, owner(1), [], null, none)).toEqual(granted({ renew: true }));
    expect(judgeLease(me, owner(1, { epoch: 9 }), [owner(2)], 1, all)).toEqual(granted({ renew: true }));
    const undated = owner(1, { start: null });
    expect(judgeLease(undated, undated, [], 0, all)).toEqual(granted({ renew: true }));
    expect(judgeLease(me, undated, [], null, all)).toMatchObject({ kind: 'not_owned' });
  });

  it('[LE7] is refused for capacity only after ownership, and the dead make room', () => {
    expect(judgeLease(me, null, [owner(2)], 1, all)).toEqual({ kind: 'capacity' });
    expect(judgeLease(me, null, [owner(2)], 2, all)).toEqual(granted());
    expect(judgeLease(me, null, [], 0, all)).toEqual({ kind: 'capacity' });
    expect(judgeLease(me, null, [owner(2), owner(3)], 2, not(3))).toEqual(granted({ prune: [owner(3)] }));
    expect(judgeLease(me, null, [owner(2), owner(3)], 1, not(3))).toEqual({ kind: 'capacity' });
    expect(judgeLease(me, owner(4), [owner(2)], 1, all)).toEqual({ kind: 'not_owned', holder: owner(4) });
    // A second session of ours takes a slot of its own.
    expect(judgeLease(me, null, [owner(1, { liveSessionId: 'second' })], 1, all)).toEqual({ kind: 'capacity' });
    expect(judgeLease(me, owner(4), [owner(2)], 1, not(4))).toEqual({ kind: 'capacity' });
  });
});
