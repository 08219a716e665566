/** Contract of the admission store, second half: claims, and every way in which a prompt ends. */
import { expect, it } from 'vitest';
import type { Fence } from '../../db/stores.ts';
import type { Message } from '../../server/core/terms.ts';
import { newAdmission, type OpenStores, OTHER, openBench, reply, runId, SESSION, settlement } from './stores-bench.ts';

const BY = { epoch: 3, now: 2_600 };

export function claimContract(open: OpenStores): void {
  it('[CL1] a claim starts the checked head: generation, epoch, the row of the prompt', async () => {
    const { stores, session, admit } = await openBench(open);
    await session();
    await admit(1, { attachments: ['x1'] });
    const claim = await stores.admissions.claim(SESSION, 'admission-1', BY);
    const fence: Fence = {
      session_id: SESSION,
      admission_id: 'admission-1',
      run_id: runId(1),
      epoch: 3,
      generation: 1,
    };
    expect(claim).toMatchObject({ kind: 'claimed', fence });
    const admission = await stores.admissions.get(SESSION, 'admission-1');
    expect(claim).toEqual({ kind: 'claimed', fence, admission });
    expect(admission).toMatchObject({ status: 'started', epoch: 3, generation: 1, started_at: 2_600, outcome: null });
    expect(await stores.sessions.get(SESSION)).toMatchObject({
      generation: 1,
      message_count: 1,
      last_message_at: 2_600,
      updated_at: 2_600,
      open: [{ status: 'started', epoch: 3, started_at: 2_600 }],
    });
    const prompt: Message = {
      id: `${runId(1)}.0`,
      role: 'user',
      content: 'prompt 1',
      timestamp: 2_600,
      run_id: runId(1),
      attachments: ['x1'],
    };
    expect(await stores.messages.list(SESSION)).toEqual([prompt]);
  });

  it('[CL1] a claim of anything but the head takes nothing', async () => {
    const { stores, session, admit, everything } = await openBench(open);
    await session();
    await session(OTHER);
    expect(await stores.admissions.claim(SESSION, 'admission-1', BY)).toEqual({ kind: 'moved' });
    for (const n of [1, 2]) await admit(n);
    await admit(3, { session_id: OTHER });
    const before = await everything();
    for (const notTheHead of ['admission-2', 'admission-3', 'nobody', '']) {
      expect(await stores.admissions.claim(SESSION, notTheHead, BY)).toEqual({ kind: 'moved' });
    }
    expect(await stores.admissions.claim('20260303_130002_cccccc', 'admission-1', BY)).toEqual({ kind: 'moved' });
    expect(await everything()).toEqual(before);
    await stores.admissions.cancel(SESSION, 'admission-1', 2_500);
    expect(await stores.admissions.claim(SESSION, 'admission-1', BY)).toEqual({ kind: 'moved' });
    expect((await stores.admissions.claim(SESSION, 'admission-2', BY)).kind).toBe('claimed');
  });

  it('[AD3] one prompt of a session is started: the next claim is blocked, also behind an unknown one', async () => {
    const { stores, session, admit, run, everything } = await openBench(open);
    await session();
    await session(OTHER);
    await run(1);
    await admit(2);
    const before = await everything();
    expect(await stores.admissions.claim(SESSION, 'admission-2', BY)).toEqual({ kind: 'blocked' });
    expect(await stores.admissions.claim(SESSION, 'admission-1', BY)).toEqual({ kind: 'blocked' });
    expect(await everything()).toEqual(before);
    await stores.admissions.markUnknown('admission-1');
    expect(await stores.admissions.claim(SESSION, 'admission-2', BY)).toEqual({ kind: 'blocked' });
    await admit(3, { session_id: OTHER });
    expect((await stores.admissions.claim(OTHER, 'admission-3', BY)).kind).toBe('claimed');
  });

  it('[AD3] of ten claims at once one wins', async () => {
    const { stores, session, admit } = await openBench(open);
    await session();
    await admit(1);
    const claims = await Promise.all(
      Array.from({ length: 10 }, () => stores.admissions.claim(SESSION, 'admission-1', BY)),
    );
    expect(claims.map((claim) => claim.kind).sort()).toEqual([...Array(9).fill('blocked'), 'claimed']);
    expect(await stores.messages.list(SESSION)).toHaveLength(1);
  });

  it('[AD4, CL2] prompts are claimed in the order of acceptance, each by a claim of its own', async () => {
    const { stores, session, admit } = await openBench(open);
    await session();
    await session(OTHER);
    for (const n of [1, 2, 3]) {
      await admit(n);
      await admit(n + 10, { session_id: OTHER });
    }
    const order: (number | string)[] = [];
    for (let head = (await stores.sessions.get(SESSION))?.open[0]; head; ) {
      const claim = await stores.admissions.claim(SESSION, head.admission_id, BY);
      if (claim.kind !== 'claimed') throw new Error(claim.kind);
      order.push(claim.admission.text, claim.fence.generation);
      expect(await stores.admissions.settle(settlement(claim.fence))).toBe('settled');
      // The check of this one is good for nobody else.
      expect((await stores.admissions.claim(SESSION, head.admission_id, BY)).kind).toBe('moved');
      head = (await stores.sessions.get(SESSION))?.open[0];
    }
    expect(order).toEqual(['prompt 1', 1, 'prompt 2', 2, 'prompt 3', 3]);
    const claimed = async (generation: number) =>
      (await stores.admissions.claimedSince(SESSION, generation, 100)).map((one) => one.admission_id);
    expect(await claimed(0)).toEqual(['admission-1', 'admission-2', 'admission-3']);
    expect(await claimed(2)).toEqual(['admission-3']);
    expect(await claimed(3)).toEqual([]);
    expect((await stores.admissions.lastClaimed(SESSION))?.admission_id).toBe('admission-3');
    expect(await stores.admissions.lastClaimed(OTHER)).toBeNull();
  });

  it('[CL4, EV3] a settle ends the run, its rows and the counts of the session in one step', async () => {
    const { stores, session, run } = await openBench(open);
    await session();
    const fence = await run(1);
    const call = { id: 't1', type: 'function' as const, function: { name: 'read_file', arguments: '{"path":"a"}' } };
    const asking = reply(1, 1, { content: '', reasoning: 'hm', tool_calls: [call], model: 'm' });
    const result = reply(1, 2, { role: 'tool', content: 'x', tool_call_id: 't1', name: 'read_file', duration_s: 0.5 });
    expect(await stores.admissions.appendRows(fence, [asking, result])).toBe('appended');
    expect(await stores.admissions.appendRows(fence, [])).toBe('appended');
    const error = { code: 'stalled' as const, message: 'It stalled.', retryable: true, retry_after: 3 };
    const last = reply(1, 3, { status: 'error', error, usage: { input_tokens: 5, output_tokens: 6 } });
    const end = settlement(fence, {
      outcome: 'failed',
      error,
      message_id: last.id,
      rows: [{ ...asking, recovered: true }, result, last],
      usage: {
        input_tokens: 10,
        output_tokens: 20,
        cached_tokens: 7,
        reasoning_tokens: 3,
        cost_usd: 0.5,
        context_used: 30,
        context_length: 100,
      },
      flag: 'recovered',
    });
    expect(await stores.admissions.settle(end)).toBe('settled');
    const rows = await stores.messages.list(SESSION);
    expect(rows.slice(1)).toEqual([{ ...asking, recovered: true }, result, last]);
    expect(await stores.admissions.get(SESSION, 'admission-1')).toMatchObject({
      status: 'terminal',
      outcome: 'failed',
      error,
      message_id: last.id,
      last_seq: 7,
      ended_at: 4_000,
    });
    expect(await stores.sessions.get(SESSION)).toMatchObject({
      message_count: 4,
      input_tokens: 10,
      output_tokens: 20,
      cached_tokens: 7,
      reasoning_tokens: 3,
      cost_usd: 0.5,
      context_used: 30,
      context_length: 100,
      last_message_at: last.timestamp,
      updated_at: 4_000,
      flags: ['recovered'],
      open: [],
    });
  });

  it('[CL4] usage and flags of several runs add up; a run without them leaves them', async () => {
    const { stores, session, finish } = await openBench(open);
    await session();
    await finish(1, {}, { usage: { input_tokens: 1, output_tokens: 2, context_used: 9 }, flag: 'recovered' });
    await finish(2, {}, { usage: null, rows: [] });
    await finish(3, {}, { usage: { input_tokens: 10, output_tokens: 20, cost_usd: 0.25 }, flag: 'recovered' });
    await finish(4, {}, { usage: { input_tokens: 0, output_tokens: 0, cost_usd: 0.5, context_used: 4 } });
    expect(await stores.sessions.get(SESSION)).toMatchObject({
      input_tokens: 11,
      output_tokens: 22,
      cost_usd: 0.75,
      context_used: 4,
      context_length: null,
      flags: ['recovered'],
      message_count: 7,
    });
  });

  it('[CL4] a late or fenced settle changes nothing, whichever part of its claim is not the one', async () => {
    const { stores, session, run, everything } = await openBench(open);
    await session();
    await session(OTHER);
    const fence = await run(1);
    const wrong: Partial<Fence>[] = [
      { epoch: 2 },
      { generation: 0 },
      { generation: 2 },
      { admission_id: 'nobody' },
      { session_id: OTHER },
    ];
    const before = await everything();
    for (const part of wrong) {
      const bad = { ...fence, ...part };
      expect(await stores.admissions.settle(settlement(bad, { rows: [reply(1, 1)], flag: 'x' }))).toBe('fenced');
      expect(await stores.admissions.appendRows(bad, [reply(1, 1)])).toBe('fenced');
    }
    expect(await everything()).toEqual(before);
    expect(await stores.admissions.settle(settlement(fence))).toBe('settled');
    const after = await everything();
    const late = settlement(fence, { outcome: 'failed', rows: [reply(1, 1)], now: 9_000 });
    expect(await stores.admissions.settle(late)).toBe('fenced');
    expect(await stores.admissions.appendRows(fence, [reply(1, 1)])).toBe('fenced');
    expect(await everything()).toEqual(after);
  });

  it('[CL4] a row left unknown takes no settle; only a person ends it, once', async () => {
    const { stores, session, admit, run, everything } = await openBench(open);
    await session();
    const fence = await run(1);
    await admit(2);
    expect(await stores.admissions.resolve(SESSION, 'admission-1', 5_000)).toMatchObject({ kind: 'not_unknown' });
    await stores.admissions.markUnknown('admission-1');
    await stores.admissions.markUnknown('admission-2'); // Only a started row can be of unknown fate.
    await stores.admissions.markUnknown('nobody');
    expect((await stores.sessions.get(SESSION))?.open.map((row) => row.status)).toEqual(['unknown', 'queued']);
    const before = await everything();
    expect(await stores.admissions.settle(settlement(fence))).toBe('fenced');
    expect(await stores.admissions.appendRows(fence, [reply(1, 1)])).toBe('fenced');
    expect(await stores.admissions.resolve(SESSION, 'nobody', 5_000)).toEqual({ kind: 'not_found' });
    expect(await stores.admissions.resolve(OTHER, 'admission-1', 5_000)).toEqual({ kind: 'not_found' });
    expect(await everything()).toEqual(before);
    const resolved = await stores.admissions.resolve(SESSION, 'admission-1', 5_000);
    expect(resolved).toMatchObject({
      kind: 'resolved',
      admission: { status: 'terminal', outcome: 'interrupted', ended_at: 5_000 },
    });
    expect(await stores.admissions.resolve(SESSION, 'admission-1', 6_000)).toEqual({
      ...resolved,
      kind: 'not_unknown',
    });
    expect((await stores.admissions.claim(SESSION, 'admission-2', BY)).kind).toBe('claimed');
  });

  it('[CL4, EV4] the end of a row of unknown fate takes what its turn had shown into the transcript in one step', async () => {
    const { stores, session, admit, run, everything } = await openBench(open);
    await session();
    const fence = await run(1);
    const first = reply(1, 1);
    expect(await stores.admissions.appendRows(fence, [first])).toBe('appended');
    await stores.admissions.markUnknown('admission-1');
    await admit(2);
    const error = { code: 'interrupted' as const, message: 'It was not known.', retryable: true };
    const last = reply(1, 2, { role: 'tool', content: 'x', tool_call_id: 't1', name: 'read_file' });
    const end = {
      error,
      message_id: first.id,
      last_seq: 9,
      rows: [{ ...first, recovered: true }, last],
      usage: { input_tokens: 1, output_tokens: 2 },
      flag: 'recovered',
    };
    expect(await stores.admissions.resolve(SESSION, 'admission-1', 5_000, end)).toMatchObject({
      kind: 'resolved',
      admission: { outcome: 'interrupted', error, message_id: first.id, last_seq: 9, ended_at: 5_000 },
    });
    expect((await stores.messages.list(SESSION)).slice(1)).toEqual([{ ...first, recovered: true }, last]);
    expect(await stores.sessions.get(SESSION)).toMatchObject({
      message_count: 3,
      input_tokens: 1,
      output_tokens: 2,
      flags: ['recovered'],
      open: [{ admission_id: 'admission-2', status: 'queued' }],
    });
    // Once: what comes again changes nothing.
    const before = await everything();
    const again = { ...end, rows: [reply(1, 3)] };
    expect(await stores.admissions.resolve(SESSION, 'admission-1', 6_000, again)).toMatchObject({
      kind: 'not_unknown',
    });
    expect(await everything()).toEqual(before);
  });

  it('[CL5] a prompt cancelled while it waits ends once; a later cancel gives the same receipt', async () => {
    const { stores, session, admit, everything } = await openBench(open);
    await session();
    await session(OTHER);
    await admit(1);
    expect(await stores.admissions.cancel(SESSION, 'nobody', 5_000)).toEqual({ kind: 'not_found' });
    expect(await stores.admissions.cancel(OTHER, 'admission-1', 5_000)).toEqual({ kind: 'not_found' });
    const both = await Promise.all([5_000, 5_001].map((now) => stores.admissions.cancel(SESSION, 'admission-1', now)));
    const admission = await stores.admissions.get(SESSION, 'admission-1');
    expect(admission).toMatchObject({ status: 'terminal', outcome: 'cancelled', ended_at: 5_000, generation: null });
    expect(both).toEqual([
      { kind: 'cancelled', admission },
      { kind: 'repeat', admission },
    ]);
    const before = await everything();
    expect((await stores.admissions.cancel(SESSION, 'admission-1', 6_000)).kind).toBe('repeat');
    expect((await stores.admissions.claim(SESSION, 'admission-1', BY)).kind).toBe('moved');
    expect(await everything()).toEqual(before);
    expect(await stores.messages.list(SESSION)).toEqual([]);
  });

  it('[CL5] a running prompt and one of unknown fate are not cancelled', async () => {
    const { stores, session, run, everything } = await openBench(open);
    await session();
    await run(1);
    const before = await everything();
    expect(await stores.admissions.cancel(SESSION, 'admission-1', 5_000)).toMatchObject({
      kind: 'stale_generation',
      admission: { status: 'started' },
    });
    expect(await everything()).toEqual(before);
    await stores.admissions.markUnknown('admission-1');
    expect(await stores.admissions.cancel(SESSION, 'admission-1', 5_000)).toMatchObject({
      kind: 'unknown_execution',
      admission: { status: 'unknown' },
    });
  });

  it('[JO1] runs whose journal has had its time are named oldest first, each until it is pruned', async () => {
    const { stores, session, admit, run, finish } = await openBench(open);
    await session();
    await session(OTHER);
    await finish(1, {}, { now: 5_000 });
    await finish(2, { session_id: OTHER }, { now: 4_500 });
    await finish(3, {}, { now: 6_000 });
    await admit(4, { session_id: OTHER });
    await stores.admissions.cancel(OTHER, 'admission-4', 4_400); // It never had a journal.
    await run(5, newAdmission(5));
    const old = async (time: number, limit = 10) =>
      (await stores.admissions.withJournalBefore(time, limit)).map((one) => one.admission_id);
    expect(await old(4_500)).toEqual([]);
    expect(await old(6_000)).toEqual(['admission-2', 'admission-1']);
    expect(await old(9_999)).toEqual(['admission-2', 'admission-1', 'admission-3']);
    expect(await old(9_999, 1)).toEqual(['admission-2']);
    expect(await stores.admissions.withJournalBefore(4_501, 1)).toEqual([
      { session_id: OTHER, run_id: runId(2), admission_id: 'admission-2' },
    ]);
    await stores.admissions.journalPruned('admission-2');
    expect(await old(9_999)).toEqual(['admission-1', 'admission-3']);
    expect(await stores.admissions.get(OTHER, 'admission-2')).toMatchObject({ journal_pruned: true, last_seq: 7 });
  });
}
