/** Two servers on one home: who runs what, what each knows of the other, and what is left when one is killed. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { type ChildServer, startChildServer } from '../support/child-server.ts';
import { testSeed } from '../support/random.ts';
import type { SseEvent, SseReader } from '../support/sse.ts';
import { listsOf, messagesAt, newSession, ownerRaces, promptsOf, startTwoServers } from '../support/two-servers.ts';
import { until } from '../support/until.ts';

const type = (wanted: string) => (event: SseEvent) => event.type === wanted;
const LONG = 'script:chunks=2000,delay=10,id=long';
const notOwned = (pid: number | undefined) => ({ status: 423, json: { code: 'session_not_owned', holder: { pid } } });

const ofRuns = (reader: SseReader): string[] =>
  reader.events.filter((event) => event.json.seq !== undefined).map((event) => `${event.id} ${event.data}`);

const changes = (reader: SseReader, sessionId: string) =>
  reader.events.filter((event) => event.type === 'sessions.changed' && event.json.payload.session_id === sessionId);

describe('two servers on one home', () => {
  it('[LE1][LE2] a session is run by one of them; the other says who, reads it, and runs others', async () => {
    const { provider, one, two } = await startTwoServers();
    const sessionId = await newSession(one);
    const session = `/api/sessions/${sessionId}`;
    const holder = notOwned(one.process.pid);
    const running = await one.call('POST', promptsOf(sessionId), { text: LONG, request_id: 'first' });
    const waiting = await one.call('POST', promptsOf(sessionId), { text: 'hi', request_id: 'second' });
    const reader = await one.stream(`${session}/events`);
    await until('it streams', async () => (await one.call('GET', session)).json.session.status === 'running');

    const refused = await two.call('POST', promptsOf(sessionId), { text: 'me too' });
    expect(refused).toMatchObject(holder);
    expect(refused.json.error).toContain(sessionId);
    expect(refused.json.error).toContain(String(one.process.pid));
    const prompt = `${promptsOf(sessionId)}/${waiting.json.admission.admission_id}`;
    for (const [method, address, body] of [
      ['GET', `${session}/events`],
      ['DELETE', prompt],
      ['POST', `${session}/interrupt`, {}],
      ['POST', `${session}/interrupt`, { clear_queue: true }],
      ['DELETE', session],
      ['DELETE', `${session}?stop=1`],
      ['POST', promptsOf(sessionId), { text: 'me too', mode: 'reject' }],
      ['POST', `${session}/rewind`, { turns: 1, revision: 0 }],
      ['POST', `${session}/clear`, { revision: 0 }],
      ['POST', `${session}/retry`, {}],
      ['GET', `${session}/requests`],
      ['POST', `${session}/requests/any`, { choice: 'once' }],
    ] as const) {
      expect(await two.call(method, address, body), `${method} ${address}`).toMatchObject(holder);
    }
    // On a stream of many it costs the others nothing.
    const many = await two.stream(`/api/events?session=${sessionId}`);
    expect((await many.next(type('session.reset'))).json.payload).toEqual({ reason: 'session_not_owned' });
    // The key of a prompt gives its receipt everywhere; to follow it one goes to its owner.
    const again = await two.call('POST', promptsOf(sessionId), { text: 'hi', request_id: 'second' });
    expect(again).toMatchObject({ status: 202, json: { run_id: waiting.json.run_id } });
    expect(
      await two.call('POST', `${promptsOf(sessionId)}?wait=1`, { text: 'hi', request_id: 'second' }),
    ).toMatchObject(holder);
    // Nothing of all that changed anything.
    const { admissions } = (await two.call('GET', promptsOf(sessionId))).json;
    expect(admissions.map((admission: { status: string }) => admission.status)).toEqual(['started', 'queued']);
    expect((await messagesAt(two, sessionId)).map((row) => row.role)).toEqual(['user']);
    const lists = await listsOf([one, two]);
    expect(lists[1]).toEqual(lists[0]);

    // What runs nothing and reads only what is settled needs no owner.
    expect((await two.call('PATCH', session, { title: 'Theirs' })).json.session.title).toBe('Theirs');
    expect((await two.call('POST', `${session}/fork`, {})).status).toBe(201);

    const other = await newSession(two);
    const answer = await two.call('POST', `${promptsOf(other)}?wait=1`, { text: 'hi' });
    expect(answer.json.message.content).toBe('You said: hi');
    expect((await one.call('DELETE', prompt)).json.admission.outcome).toBe('cancelled');
    expect((await reader.next((event) => event.json.payload?.outcome === 'cancelled')).json.run_id).toBe(
      waiting.json.run_id,
    );
    // What has ended has one receipt, wherever it is asked for.
    expect((await two.call('DELETE', prompt)).json.admission.outcome).toBe('cancelled');
    await one.call('POST', `${session}/interrupt`, { generation: running.json.admission.generation ?? undefined });
    // The ordinary way from one to the other: who has nothing to do holds nothing.
    const next = await until('it is given back', async () => {
      const answer = await two.call('POST', `${promptsOf(sessionId)}?wait=1`, { text: 'hi' });
      return answer.status === 200 && answer.json;
    });
    expect(next.message.content).toBe('You said: hi');
    expect(await messagesAt(one, sessionId)).toEqual(await messagesAt(two, sessionId));
    await provider.close();
  });

  it('[LE1] readers of the list hear of what the other one does, and a gone session is gone for both', async () => {
    const { provider, one, two } = await startTwoServers();
    const reader = await two.stream('/api/events');
    await reader.next(type('sessions.changed'));
    const sessionId = await newSession(one);
    const heard = (what: string, wanted: (payload: SseEvent['json']) => boolean) =>
      until(what, () => changes(reader, sessionId).some((event) => wanted(event.json.payload)));
    await heard('it is there', ({ reason }) => reason === 'created');
    await one.call('PATCH', `/api/sessions/${sessionId}`, { title: 'Ours' });
    await heard('it has a title', ({ session }) => session?.title === 'Ours');
    await one.call('POST', promptsOf(sessionId), { text: LONG });
    await heard('it runs', ({ session }) => session?.status === 'running');
    await one.call('POST', `/api/sessions/${sessionId}/interrupt`, {});
    await heard('it has ended', ({ session }) => session?.status === 'idle' && session.message_count > 0);
    const lists = await listsOf([one, two]);
    expect(lists[1]).toEqual(lists[0]);
    await until(
      'it can be deleted',
      async () => (await one.call('DELETE', `/api/sessions/${sessionId}`)).status === 204,
    );
    await heard('it is deleted', ({ reason }) => reason === 'deleted');
    expect((await two.call('GET', `/api/sessions/${sessionId}`)).status).toBe(404);
    // What this server did itself is told once.
    const own = await newSession(two);
    await one.call('PATCH', `/api/sessions/${own}`, { pinned: true });
    await until('it is pinned', () => changes(reader, own).some((event) => event.json.payload.session?.pinned));
    expect(changes(reader, own)).toHaveLength(2);
    await provider.close();
  });

  it('[EV1][EV2][ED1] a reader that stays here is given what ran there, when it has ended, byte for byte and once', async () => {
    const { provider, one, two } = await startTwoServers();
    const sessionId = await newSession(one);
    const events = `/api/sessions/${sessionId}/events`;
    const [there, here] = await Promise.all([one.stream(events), two.stream(events)]);
    await here.next(type('session.snapshot'));
    await there.next(type('session.snapshot'));
    const complete = (reader: SseReader, count: number) =>
      until('its end is there', () => reader.events.filter(type('message.complete')).length === count, 10_000);
    await one.call('POST', promptsOf(sessionId), { text: 'script:chunks=5,delay=2,id=a' });
    await complete(there, 1);
    await complete(here, 1);
    expect(ofRuns(here)).toEqual(ofRuns(there));
    // The other way round, and then at once a turn of its own: nobody sees the second before the first.
    await two.call('POST', `${promptsOf(sessionId)}?wait=1`, { text: 'script:chunks=5,delay=2,id=b' });
    await one.call('POST', `${promptsOf(sessionId)}?wait=1`, { text: 'script:chunks=5,delay=2,id=c' });
    await two.call('POST', `${promptsOf(sessionId)}?wait=1`, { text: 'script:chunks=5,delay=2,id=d' });
    await complete(there, 4);
    await complete(here, 4);
    expect(ofRuns(here)).toEqual(ofRuns(there));
    // A cursor of one is good at the other.
    const cursor = there.events.findLast((event) => event.id !== null)!.id!;
    const moved = await two.stream(events, { headers: { 'last-event-id': cursor } });
    await moved.next(type('session.info'));
    expect(moved.events.map((event) => event.type)).toEqual(['session.info']);
    // What is taken back there is told here.
    const { revision } = (await one.call('GET', `/api/sessions/${sessionId}`)).json.session;
    expect((await one.call('POST', `/api/sessions/${sessionId}/rewind`, { turns: 1, revision })).status).toBe(200);
    expect((await here.next(type('session.reset'))).json.payload).toEqual({ reason: 'edited' });
    await provider.close();
  });

  it('[LE1][AD5] a full queue is no reason to wait for who could not use it anyway', async () => {
    const { provider, one, two } = await startTwoServers('queue:\n  max: 1\n');
    const sessionId = await newSession(one);
    for (const text of [LONG, 'waits']) {
      await until(
        'it is accepted',
        async () => (await one.call('POST', promptsOf(sessionId), { text })).status === 202,
      );
    }
    const full = await one.call('POST', promptsOf(sessionId), { text: 'more' });
    expect(full).toMatchObject({ status: 429, json: { code: 'queue_full' } });
    expect(await two.call('POST', promptsOf(sessionId), { text: 'more' })).toMatchObject(notOwned(one.process.pid));
    await provider.close();
  });
});

describe('a turn of unknown fate, read at another server', () => {
  it('[LE1][LE3] is decided where it ran while that server lives, and then wherever it is asked for first', async () => {
    const { provider, home, one, two } = await startTwoServers();
    const sessionId = await newSession(one);
    const session = `/api/sessions/${sessionId}`;
    const { admission } = (await one.call('POST', promptsOf(sessionId), { text: LONG })).json;
    await until('it runs', async () => (await one.call('GET', session)).json.session.status === 'running');
    await one.call('POST', promptsOf(sessionId), { text: 'waits' });
    const db = new Database(path.join(home, 'state.db'), { timeout: 5_000 });
    db.prepare('UPDATE sessions SET runtime_generation = runtime_generation + 1').run();
    db.close();
    await one.call('POST', `${session}/interrupt`, {});
    const shown = async (server: ChildServer) => (await server.call('GET', session)).json.session;
    await until('its fate is unknown', async () => (await shown(two)).status === 'unknown');
    const decide = (server: ChildServer) =>
      server.call('POST', `${promptsOf(sessionId)}/${admission.admission_id}/resolve`, { outcome: 'interrupted' });
    const holder = notOwned(one.process.pid);
    expect(await decide(two)).toMatchObject(holder);
    expect(await two.call('POST', `${session}/interrupt`, { clear_queue: true })).toMatchObject(holder);
    expect((await shown(two)).queue_length).toBe(1);
    await one.kill();
    // One that starts, and one that is read, leave it alone.
    const three = await startChildServer({ home });
    for (const server of [three, two, three]) expect(await shown(server)).toMatchObject({ status: 'unknown' });
    expect((await two.call('POST', promptsOf(sessionId), { text: 'and this' })).status).toBe(202);
    expect((await decide(two)).status).toBe(200);
    await until('it is idle', async () => (await shown(three)).status === 'idle');
    const { admissions } = (await three.call('GET', promptsOf(sessionId))).json;
    expect(admissions.map((one: { outcome: string }) => one.outcome)).toEqual([
      'interrupted',
      'completed',
      'completed',
    ]);
    await provider.close();
  });

  it.each([
    ['before it ran', false],
    ['when its server had died', true],
  ] as const)(
    '[EV1][EV2][CL4] a reader that came %s is given all of it in order, its end once and last',
    async (_when, late) => {
      const { provider, home, one, two } = await startTwoServers();
      const sessionId = await newSession(one);
      const events = `/api/sessions/${sessionId}/events`;
      const early = late ? null : await two.stream(events);
      await early?.next(type('session.snapshot'));
      const there = await one.stream(events);
      const { admission } = (await one.call('POST', promptsOf(sessionId), { text: LONG })).json;
      await until('it has said something', () => there.events.filter(type('message.delta')).length > 5);
      const db = new Database(path.join(home, 'state.db'), { timeout: 5_000 });
      db.prepare('UPDATE sessions SET runtime_generation = runtime_generation + 1').run();
      db.close();
      await one.call('POST', `/api/sessions/${sessionId}/interrupt`, {});
      const status = async () => (await two.call('GET', `/api/sessions/${sessionId}`)).json.session.status;
      await until('its fate is unknown', async () => (await status()) === 'unknown');
      await one.kill();
      const reader = early ?? (await two.stream(events));
      await reader.next(type('session.snapshot'));
      const resolve = `${promptsOf(sessionId)}/${admission.admission_id}/resolve`;
      expect((await two.call('POST', resolve, { outcome: 'interrupted' })).status).toBe(200);
      const next = await two.call('POST', `${promptsOf(sessionId)}?wait=1`, { text: 'hi' });
      expect(next.status).toBe(200);
      await until('both ends are there', () => reader.events.filter(type('message.complete')).length >= 2);
      const whole = await two.stream(`${events}?cursor=0`);
      await until('all is read again', () => whole.events.filter(type('message.complete')).length === 2);
      expect(ofRuns(reader)).toEqual(ofRuns(whole));
      // The same that readers at its own server had been shown, as far as they were.
      expect(ofRuns(whole).slice(0, ofRuns(there).length)).toEqual(ofRuns(there));
      await provider.close();
    },
  );
});

describe('a server that was killed beside another one', () => {
  it('[LE3][RE2] leaves its sessions to the other at the next request, whichever session is asked for', async () => {
    const { provider, one, two } = await startTwoServers();
    const asked = await newSession(one);
    const unasked = await newSession(one);
    for (const sessionId of [asked, unasked]) {
      await one.call('POST', promptsOf(sessionId), { text: LONG });
      await one.call('POST', promptsOf(sessionId), { text: 'hi' });
    }
    const readers = await Promise.all([asked, unasked].map((id) => one.stream(`/api/sessions/${id}/events`)));
    await Promise.all(readers.map((reader) => reader.next(type('message.delta'))));
    await one.kill();
    // A dead turn is never shown as running.
    const { sessions } = (await two.call('GET', '/api/sessions')).json;
    for (const session of sessions) {
      if (session.status === 'running') expect((await running(two, session)).text).toBe('hi');
      else expect(['unknown', 'queued', 'idle']).toContain(session.status);
    }
    const rows = await messagesAt(two, asked);
    expect(rows.find((row) => row.status === 'error')).toMatchObject({ error: { cause: 'process_restart' } });
    const next = await two.call('POST', `${promptsOf(asked)}?wait=1`, { text: 'and now?' });
    expect(next.json.message.content).toBe('You said: and now?');
    // The list is all that is asked for here: the other session moves by itself.
    await until('the queue that nobody asked for has run', async () => {
      const list = (await two.call('GET', '/api/sessions')).json.sessions;
      return list.find((one: { session_id: string }) => one.session_id === unasked).status === 'idle';
    });
    const admissions = (await two.call('GET', promptsOf(unasked))).json.admissions;
    expect(admissions.map((one: { outcome: string }) => one.outcome)).toEqual(['interrupted', 'completed']);
    await provider.close();
  });

  it('[RE2] leaves turns that are shown as what they are, of unknown fate, until they can be resolved', async () => {
    const { provider, home, one, two } = await startTwoServers();
    const sessionId = await newSession(one);
    const reader = await one.stream(promptsOf(sessionId), { method: 'POST', body: { text: LONG } });
    await reader.next(type('message.delta'));
    const shown = async () => (await two.call('GET', '/api/sessions')).json.sessions[0];
    expect(await shown()).toMatchObject({ status: 'running', run: { run_id: reader.events[0]?.json.run_id } });
    const lock = new Database(path.join(home, 'state.db'), { timeout: 5000 });
    lock.exec('BEGIN IMMEDIATE');
    await one.kill();
    expect(await shown()).toMatchObject({ status: 'unknown', run: null });
    lock.exec('COMMIT');
    lock.close();
    await until('it is resolved', async () => (await shown()).status === 'idle');
    await provider.close();
  });

  it('[LE3] leaves them also when nobody asks for anything at all', async () => {
    const { provider, home, one, two } = await startTwoServers();
    const sessionId = await newSession(one);
    await one.call('POST', promptsOf(sessionId), { text: LONG });
    const waiting = await one.call('POST', promptsOf(sessionId), { text: 'hi' });
    const reader = await two.stream('/api/events');
    await one.kill();
    await until(
      'its queue has run',
      () => outcomeIn(home, waiting.json.admission.admission_id) === 'completed',
      20_000,
    );
    await until(
      'readers heard of it',
      () => changes(reader, sessionId).at(-1)?.json.payload.session?.status === 'idle',
    );
    await provider.close();
  });

  it('[LE3] is replaced by one that starts, and what it left runs once between the two that live', async () => {
    const { provider, home, one, two } = await startTwoServers();
    const sessionIds = await Promise.all(Array.from({ length: 5 }, () => newSession(one)));
    for (const sessionId of sessionIds) {
      await one.call('POST', promptsOf(sessionId), { text: LONG });
      await one.call('POST', promptsOf(sessionId), { text: `script:chunks=2,delay=1,id=${sessionId}` });
    }
    await one.kill();
    const asking = Promise.all(sessionIds.map((id) => two.call('GET', `/api/sessions/${id}`)));
    const three = await startChildServer({ home });
    await asking;
    await until('all have run', async () =>
      (await three.call('GET', '/api/sessions')).json.sessions.every(
        (one: { status: string }) => one.status === 'idle',
      ),
    );
    for (const id of sessionIds) {
      const asked = provider.requests.filter((request) => JSON.stringify(request.body.messages?.at(-1)).includes(id));
      expect(asked, id).toHaveLength(1);
      expect(await messagesAt(two, id)).toEqual(await messagesAt(three, id));
    }
    await provider.close();
  });

  it('[LE1] a server that is only stopped keeps its sessions, and goes on where it was', async () => {
    const { provider, one, two } = await startTwoServers();
    const sessionId = await newSession(one);
    const reader = await one.stream(promptsOf(sessionId), {
      method: 'POST',
      body: { text: 'script:chunks=60,delay=10,id=s' },
    });
    await reader.next(type('message.delta'));
    one.process.kill('SIGSTOP');
    await until('it is stopped', () => /^T/.test(stateOf(one.process.pid!)));
    expect(await two.call('POST', promptsOf(sessionId), { text: 'hi' })).toMatchObject(notOwned(one.process.pid));
    expect((await two.call('GET', `/api/sessions/${sessionId}`)).json.session.status).toBe('running');
    one.process.kill('SIGCONT');
    expect((await reader.next(type('message.complete'))).json.payload.outcome).toBe('completed');
    await provider.close();
  });
});

describe('races', () => {
  const first = testSeed();
  it.each([[first, { kills: false, locks: true }] as const, [first + 1, { kills: true, locks: false }] as const])(
    '[LE1][AD1][AD3][DB7] two servers and one session, a few rounds (seed %i, %o)',
    {
      timeout: 120_000,
    },
    async (seed, kind) => {
      await ownerRaces({ seed, rounds: 6, ...kind });
    },
  );
});

/** What a session runs right now, by the prompts that the server tells. */
async function running(server: Awaited<ReturnType<typeof startChildServer>>, session: { session_id: string }) {
  const { admissions } = (await server.call('GET', promptsOf(session.session_id))).json;
  return admissions.find((admission: { text: string }) => admission.text !== LONG);
}

/** How a prompt ended, as the file says: without asking any server. */
function outcomeIn(home: string, admissionId: string): string | null {
  const db = new Database(path.join(home, 'state.db'), { readonly: true, timeout: 2000 });
  const outcome = db.prepare('SELECT outcome FROM session_admissions WHERE admission_id = ?').pluck().get(admissionId);
  db.close();
  return outcome as string | null;
}

const stateOf = (pid: number): string => execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
