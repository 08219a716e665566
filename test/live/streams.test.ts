/** What a reader of a session is given: cursor, snapshot, reset, and the seam between catch-up and live. */

import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import type { SseEvent, SseReader } from '../support/sse.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const type = (wanted: string) => (event: SseEvent) => event.type === wanted;
const runEvents = (events: readonly SseEvent[]) => events.filter((event) => event.json.seq !== undefined);
const dataOf = (events: readonly SseEvent[]) => runEvents(events).map((event) => event.data);

const textOf = (reader: SseReader) =>
  reader.events
    .filter(type('message.delta'))
    .map((event) => event.json.payload.text)
    .join('');

/** A session with a finished turn of some deltas, and all events of it as one reader saw them live. */
async function finishedTurn(server: TestServer, prompt = 'hello') {
  const sessionId = await server.session();
  const reader = await server.stream(`/api/sessions/${sessionId}/prompts`, { method: 'POST', body: { text: prompt } });
  await reader.ended;
  return { sessionId, events: reader.events };
}

async function startWithScript() {
  const script = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: script.runner } });
  const sessionId = await server.session();
  return { script, server, sessionId, events: `/api/sessions/${sessionId}/events` };
}

const idsInOrder = (reader: SseReader) =>
  runEvents(reader.events).map((event) => `${event.json.run_id}:${event.json.seq}`);

describe('cursors', () => {
  it('[EV1][EV5] a reader with a cursor at any event gets exactly what follows it, byte for byte', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const { sessionId, events } = await finishedTurn(server);
    const all = dataOf(events);
    for (let at = 0; at <= all.length; at += 1) {
      const cursor = at === 0 ? `${events[0]!.json.run_id}:0` : events[at - 1]!.id!;
      const reader = await server.stream(`/api/sessions/${sessionId}/events?cursor=${cursor}`);
      await reader.next(type('session.info'));
      expect(dataOf(reader.events)).toEqual(all.slice(at));
      reader.drop();
    }
  });

  it('[EV1] a cursor in an earlier run is followed by the rest of it and by all later runs, in order', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const { sessionId, events } = await finishedTurn(server, 'one');
    const later = [];
    for (const prompt of ['two', 'three']) {
      const reader = await server.stream(`/api/sessions/${sessionId}/prompts`, {
        method: 'POST',
        body: { text: prompt },
      });
      await reader.ended;
      later.push(...reader.events);
    }
    const reader = await server.stream(`/api/sessions/${sessionId}/events`, {
      headers: { 'last-event-id': events[2]!.id! },
    });
    await reader.next(type('session.info'));
    expect(dataOf(reader.events)).toEqual(dataOf([...events.slice(3), ...later]));
    const fromStart = await server.stream(`/api/sessions/${sessionId}/events?cursor=0`);
    await fromStart.next(type('session.info'));
    expect(dataOf(fromStart.events)).toEqual(dataOf([...events, ...later]));
  });

  it('[EV1] Last-Event-ID beats the cursor in the address', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const { sessionId, events } = await finishedTurn(server);
    const reader = await server.stream(`/api/sessions/${sessionId}/events?cursor=${events[0]!.id}`, {
      headers: { 'last-event-id': events[3]!.id! },
    });
    await reader.next(type('session.info'));
    expect(dataOf(reader.events)).toEqual(dataOf(events.slice(4)));
  });

  it('[SU2] a cursor that cannot be honoured gets a reset with the reason, then a snapshot', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const { sessionId, events } = await finishedTurn(server);
    const other = await finishedTurn(server);
    const last = events.at(-1)!;
    const cases: [cursor: string, reason: string][] = [
      ['rubbish', 'malformed'],
      [`${'0'.repeat(32)}:1`, 'foreign'],
      [other.events[0]!.id!, 'foreign'],
      [`${last.json.run_id}:${last.json.seq + 1}`, 'ahead'],
      [`${last.json.run_id}:999999999`, 'ahead'],
      [`${last.json.run_id}:-1`, 'malformed'],
      [`${last.json.run_id}:99999999999999999999`, 'malformed'],
    ];
    for (const [cursor, reason] of cases) {
      const reader = await server.stream(`/api/sessions/${sessionId}/events?cursor=${cursor}`);
      const snapshot = await reader.next(type('session.snapshot'));
      expect(reader.events.map((event) => event.type)).toEqual(['session.reset', 'session.snapshot']);
      expect(reader.events[0]!.json.payload.reason).toBe(reason);
      expect(snapshot.id).toBe(last.id);
      reader.drop();
    }
  });

  it('[SU2] when journals are gone, old cursors get a reset, and the one at the end stays good', async () => {
    let offset = 0;
    const runner = createEchoRunner().runner;
    const server = await startTestServer({ overrides: { runner, now: () => Date.now() / 1000 + offset } });
    const sessionId = await server.session();
    const body = { text: 'hello', request_id: 'once' };
    const first = await server.stream(`/api/sessions/${sessionId}/prompts`, { method: 'POST', body });
    await first.ended;
    const { events } = first;
    await server.app.close();
    offset = 25 * 3600;
    const later = await startTestServer({
      home: server.home,
      overrides: { runner, now: () => Date.now() / 1000 + offset },
    });
    await until('the journal is removed', async () => {
      const reader = await later.stream(`/api/sessions/${sessionId}/events?cursor=${events[0]!.id}`);
      const first = await reader.next(() => true);
      reader.drop();
      return first.type === 'session.reset' && first.json.payload.reason === 'too_old';
    });
    const atEnd = await later.stream(`/api/sessions/${sessionId}/events?cursor=${events.at(-1)!.id}`);
    await atEnd.next(type('session.info'));
    expect(atEnd.events).toHaveLength(1);
    // And the prompt, asked for again with its key, still has its end: as a stream, and waited for.
    const again = await later.stream(`/api/sessions/${sessionId}/prompts`, { method: 'POST', body });
    await again.ended;
    const ends = again.events.filter(type('message.complete'));
    expect(ends).toHaveLength(1);
    const { admission_id, message_id } = events.at(-1)!.json.payload;
    const end = { admission_id, message_id, outcome: 'completed', status: 'complete', text: 'echo: hello' };
    expect(ends[0]!.json.payload).toMatchObject(end);
    const waited = await later.call('POST', `/api/sessions/${sessionId}/prompts?wait=1`, body);
    expect(waited).toMatchObject({ status: 200, json: { message: { id: message_id, content: 'echo: hello' } } });
    expect(await later.messages(sessionId)).toHaveLength(2);
  });

  it('[SU2] a session that never ran has the cursor 0', async () => {
    const { server, script, sessionId, events } = await startWithScript();
    const fresh = await server.stream(events);
    expect((await fresh.next(type('session.snapshot'))).id).toBe('0');
    const atZero = await server.stream(`${events}?cursor=0`);
    await atZero.next(type('session.info'));
    await server.prompt(sessionId, 'x');
    (await script.turn(0)).complete();
    await atZero.next(type('message.complete'));
    expect(runEvents(atZero.events)[0]!.type).toBe('run.start');
  });
});

describe('snapshots', () => {
  it('[SU3] a snapshot in mid-turn and the events after it are the whole turn, each character once', async () => {
    const { server, script, sessionId, events } = await startWithScript();
    await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    turn.say({ type: 'message.start', payload: {} }, { type: 'reasoning.delta', payload: { text: 'hm' } });
    const pieces = ['a', 'bc', 'def', 'ghij', 'klmno'];
    const readers: { reader: SseReader; before: string }[] = [];
    for (const piece of pieces) {
      const reader = await server.stream(events);
      const snapshot = await reader.next(type('session.snapshot'));
      readers.push({ reader, before: snapshot.json.payload.run?.text ?? '' });
      turn.text(piece);
    }
    turn.complete();
    for (const { reader, before } of readers) {
      const complete = await reader.next(type('message.complete'));
      const deltas = reader.events.filter(type('message.delta')).map((event) => event.json.payload.text);
      expect(before + deltas.join('')).toBe(pieces.join(''));
      const snapshot = reader.events[0]!;
      const seqs = runEvents(reader.events).map((event) => event.json.seq);
      const from = snapshot.json.payload.run?.last_seq ?? 0;
      expect(seqs).toEqual(Array.from({ length: complete.json.seq - from }, (_, index) => from + index + 1));
    }
  });

  it('[SU3] a snapshot shows text, reasoning and tools of the running turn in order, and its queue', async () => {
    const { server, script, sessionId, events } = await startWithScript();
    await server.prompt(sessionId, 'first');
    const turn = await script.turn(0);
    turn.say(
      { type: 'message.start', payload: {} },
      { type: 'reasoning.delta', payload: { text: 'think' } },
      { type: 'message.delta', payload: { text: 'Let me look. ' } },
      { type: 'tool.start', payload: { tool_id: 't1', name: 'look', args: { at: 1 }, preview: 'at 1' } },
    );
    const queued = await server.prompt(sessionId, 'second');
    const seen = await until('the tool is in a snapshot', async () => {
      const reader = await server.stream(events);
      const snapshot = await reader.next(type('session.snapshot'));
      reader.drop();
      return snapshot.json.payload.run?.tools.length === 1 ? snapshot.json.payload : null;
    });
    expect(seen.run.parts).toEqual([
      { type: 'reasoning', text: 'think' },
      { type: 'text', text: 'Let me look. ' },
      { type: 'tool', tool_id: 't1' },
    ]);
    expect(seen.run.tools[0]).toEqual({ tool_id: 't1', name: 'look', args: { at: 1 }, preview: 'at 1' });
    expect(seen.queue.map((one: { admission_id: string }) => one.admission_id)).toEqual([
      queued.admission.admission_id,
    ]);
    expect(seen.session).toMatchObject({ status: 'running', queue_length: 1 });
    turn.complete();
    (await script.turn(1)).complete();
  });

  it('[SU3] while a turn runs GET messages shows its prompt only; the rows appear with its end', async () => {
    const { server, script, sessionId, events } = await startWithScript();
    const reader = await server.stream(events);
    await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    turn.say(
      { type: 'message.start', payload: {} },
      { type: 'tool.start', payload: { tool_id: 't1', name: 'look', args: {}, preview: '' } },
      { type: 'tool.complete', payload: { tool_id: 't1', name: 'look', result: 'ok', is_error: false, duration_s: 0 } },
      { type: 'message.delta', payload: { text: 'done' } },
    );
    await reader.next(type('message.delta'));
    expect((await server.messages(sessionId)).map((row) => row.role)).toEqual(['user']);
    turn.complete();
    await reader.next(type('message.complete'));
    // EV3: the reply was committed before this was shown.
    expect((await server.messages(sessionId)).map((row) => row.role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
    ]);
  });
});

describe('queued prompts and their readers', () => {
  it('[EV1] the cursor of a queued prompt lies behind the run before it', async () => {
    const { server, script, sessionId, events } = await startWithScript();
    await server.prompt(sessionId, 'first');
    const first = await script.turn(0);
    const second = await server.prompt(sessionId, 'second');
    const reader = await server.stream(`${events}?cursor=${second.cursor}`);
    first.text('not for this reader');
    first.complete();
    (await script.turn(1)).text('for this reader');
    script.turns[1]!.complete();
    await reader.next(type('message.complete'));
    expect(new Set(runEvents(reader.events).map((event) => event.json.run_id))).toEqual(new Set([second.run_id]));
    expect(idsInOrder(reader)[0]).toBe(`${second.run_id}:1`);
  });

  it('[CL5][EV2] a cancelled queued prompt completes exactly once for every kind of reader', async () => {
    const { server, script, sessionId, events } = await startWithScript();
    await server.prompt(sessionId, 'first');
    const first = await script.turn(0);
    const body = { text: 'second', request_id: 'r2' };
    const post = await server.stream(`/api/sessions/${sessionId}/prompts`, { method: 'POST', body });
    const waited = server.call('POST', `/api/sessions/${sessionId}/prompts?wait=1`, body);
    const watcher = await server.stream(events);
    await watcher.next(type('session.snapshot'));
    const queued = (await server.call('GET', `/api/sessions/${sessionId}/prompts?pending=1`)).json.admissions.at(-1);
    const behind = await server.stream(`${events}?cursor=${queued.run_id}:0`);
    await behind.next(type('session.info'));
    const address = `/api/sessions/${sessionId}/prompts/${queued.admission_id}`;
    expect((await server.call('DELETE', address)).json.admission).toMatchObject({
      status: 'terminal',
      outcome: 'cancelled',
    });
    expect((await server.call('DELETE', address)).json.admission.outcome).toBe('cancelled');
    await post.ended;
    expect(post.events.map((event) => event.type)).toEqual(['message.complete']);
    expect(post.events[0]).toMatchObject({
      id: null,
      json: {
        run_id: queued.run_id,
        admission_id: queued.admission_id,
        payload: { outcome: 'cancelled', status: 'interrupted', text: '', admission_id: queued.admission_id },
      },
    });
    expect(await waited).toMatchObject({ status: 200, json: { message: null, admission: { outcome: 'cancelled' } } });
    await behind.next(type('session.snapshot'));
    expect(behind.events.find(type('session.reset'))?.json.payload.reason).toBe('cancelled');
    first.complete();
    await watcher.next((event) => event.type === 'message.complete' && event.json.payload.outcome === 'completed');
    const completions = watcher.events.filter(type('message.complete'));
    expect(completions.map((event) => event.json.payload.outcome)).toEqual(['cancelled', 'completed']);
  });

  it('[HT7][EV2] the stream of a POST is the run from its first event to its end, whenever it is asked for', async () => {
    const { server, script, sessionId } = await startWithScript();
    const address = `/api/sessions/${sessionId}/prompts`;
    const body = { text: 'go', request_id: 'r1' };
    const early = await server.stream(address, { method: 'POST', body });
    const turn = await script.turn(0);
    turn.text('one ');
    await early.next(type('message.delta'));
    const middle = await server.stream(address, { method: 'POST', body });
    turn.text('two');
    turn.complete();
    await early.ended;
    await middle.ended;
    const late = await server.stream(address, { method: 'POST', body });
    await late.ended;
    expect(early.events.map((event) => event.type)).toEqual([
      'run.start',
      'message.delta',
      'message.delta',
      'message.complete',
    ]);
    expect(dataOf(middle.events)).toEqual(dataOf(early.events));
    expect(dataOf(late.events)).toEqual(dataOf(early.events));
  });
});

describe('order and durability', () => {
  it('[JO1][JO2][JO3] what a reader is shown is in the journal already, gapless, the terminal line last', async () => {
    const { server, script, sessionId, events } = await startWithScript();
    const reader = await server.stream(events);
    await reader.next(type('session.snapshot'));
    const accepted = await server.prompt(sessionId, 'go');
    const file = path.join(server.home, 'sessions/_run_journal', sessionId, `${accepted.run_id}.jsonl`);
    const lines = async () => (await readFile(file, 'utf8')).trim().split('\n');
    const turn = await script.turn(0);
    for (const [index, text] of ['x', 'y', 'z'].entries()) {
      turn.text(text);
      await reader.next((event) => event.type === 'message.delta' && event.json.payload.text === text);
      expect(await lines()).toHaveLength(index + 2);
    }
    turn.complete();
    await reader.next(type('message.complete'));
    const records = (await lines()).map((line) => JSON.parse(line));
    expect(records.map((record) => record.seq)).toEqual([1, 2, 3, 4, 5]);
    expect(records.map((record) => record.terminal)).toEqual([false, false, false, false, true]);
    expect(records.at(-1)).toMatchObject({ version: 2, type: 'message.complete', terminal_state: 'completed' });
  });

  it('[EV1] attaching to a second session does not detach from the first, and nobody gets a foreign event', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const [one, two, three] = [await server.session(), await server.session(), await server.session()];
    const both = await server.stream(`/api/events?session=${one}&session=${two}`);
    await both.next((event) => event.type === 'session.snapshot' && event.json.session_id === two);
    await both.next((event) => event.type === 'session.snapshot' && event.json.session_id === one);
    for (const sessionId of [one, two, three]) await server.prompt(sessionId, sessionId);
    for (const index of [0, 1, 2]) {
      const turn = await script.turn(index);
      turn.text(`in ${turn.turn.sessionId}`);
      turn.complete();
    }
    for (const sessionId of [one, two]) {
      await both.next((event) => event.type === 'message.complete' && event.json.session_id === sessionId);
    }
    const owners = new Set(runEvents(both.events).map((event) => event.json.session_id));
    expect(owners).toEqual(new Set([one, two]));
    for (const event of runEvents(both.events)) {
      expect(event.id).toBe(`${event.json.session_id}@${event.json.run_id}:${event.json.seq}`);
    }
    expect(both.events[0]!.json).toMatchObject({
      type: 'sessions.changed',
      payload: { session_id: null, reason: 'connected' },
    });
    await both.next((event) => event.type === 'sessions.changed' && event.json.payload.session_id === three);
  });

  it('[EV1] on the stream of many sessions each continues from its own cursor', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const a = await finishedTurn(server);
    const b = await finishedTurn(server);
    const query = `session=${a.sessionId}@${a.events[1]!.id}&session=${b.sessionId}@${b.events[3]!.id}`;
    const reader = await server.stream(`/api/events?${query}`, {
      headers: { 'last-event-id': `${a.sessionId}@${a.events[2]!.id}` },
    });
    for (const { sessionId } of [a, b]) {
      await reader.next((event) => event.type === 'session.info' && event.json.session_id === sessionId);
    }
    const of = (sessionId: string) => dataOf(reader.events.filter((event) => event.json.session_id === sessionId));
    expect(of(a.sessionId)).toEqual(dataOf(a.events.slice(3)));
    expect(of(b.sessionId)).toEqual(dataOf(b.events.slice(4)));
  });

  it('[SU1] a stuck reader delays nobody, is closed alone past its bound, and resumes without a loss', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({
      overrides: { runner: script.runner },
      config: 'live: {backlog_events: 16, backlog_bytes: 65536, send_deadline_s: 600}',
    });
    const sessionId = await server.session();
    const address = `/api/sessions/${sessionId}/events`;
    const healthy = await server.stream(address);
    const stuck = await server.stream(address);
    await stuck.next(type('session.snapshot'));
    stuck.pause();
    await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    const big = 'x'.repeat(20_000);
    // Tool results are never merged, so they fill a backlog that nobody empties.
    for (let index = 0; index < 400; index += 1) {
      const tool_id = `t${index}`;
      turn.say(
        { type: 'tool.start', payload: { tool_id, name: 'big', args: {}, preview: '' } },
        { type: 'tool.complete', payload: { tool_id, name: 'big', result: big, is_error: false, duration_s: 0 } },
      );
    }
    turn.complete();
    const complete = await healthy.next(type('message.complete'));
    expect(complete.json.payload.outcome).toBe('completed');
    stuck.resume();
    await stuck.ended;
    const last = stuck.events.findLast((event) => event.id !== null)!;
    expect(last.json.seq ?? 0).toBeLessThan(complete.json.seq);
    const resumed = await server.stream(address, { headers: { 'last-event-id': last.id! } });
    await resumed.next(type('message.complete'));
    const got = [...runEvents(stuck.events), ...runEvents(resumed.events)].map((event) => event.json.seq);
    expect(got).toEqual(Array.from({ length: complete.json.seq }, (_, index) => index + 1));
  });

  it('[SU1] deltas of a reader that lags are merged, and its text is still exact', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({
      overrides: { runner: script.runner },
      config: 'live: {backlog_bytes: 100000000}',
    });
    const sessionId = await server.session();
    const slow = await server.stream(`/api/sessions/${sessionId}/events`);
    const healthy = await server.stream(`/api/sessions/${sessionId}/events`);
    await slow.next(type('session.snapshot'));
    slow.pause();
    await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    const pieces = Array.from({ length: 1600 }, (_, index) => `${index}:${'y'.repeat(8000)} `);
    for (const piece of pieces.slice(0, 1500)) turn.text(piece);
    const half = pieces.slice(0, 1500).join('').length;
    await until('the other reader has the first half', () => textOf(healthy).length === half);
    slow.resume();
    for (const piece of pieces.slice(1500)) turn.text(piece);
    turn.complete();
    await slow.next(type('message.complete'));
    expect(textOf(slow) === pieces.join('')).toBe(true);
    expect(slow.events.filter(type('message.delta')).length).toBeLessThan(pieces.length);
    for (const event of runEvents(slow.events)) expect(event.id).toBe(`${event.json.run_id}:${event.json.seq}`);
  });

  it('[SU1] every stream has heartbeats, the first line tells how soon to come back, and no proxy may hold it', async () => {
    const server = await startTestServer({ overrides: { heartbeatS: 0.02 } });
    const sessionId = await server.session();
    for (const address of [`/api/sessions/${sessionId}/events`, '/api/events']) {
      const reader = await server.stream(address);
      await until('a heartbeat has come', () => reader.text().includes('event: heartbeat\ndata: {"type":"heartbeat"'));
      expect(reader.text().startsWith('retry: 1000\n\n')).toBe(true);
      expect(reader.headers).toMatchObject({
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
      });
      reader.drop();
    }
    await until('no reader is left', async () => (await server.call('GET', '/health')).json.live_sessions === 0);
  });
});
