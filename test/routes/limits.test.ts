/** Limits: prompts in a minute, room on the disk, and new work while there is too much. */
import { describe, expect, it } from 'vitest';
import { createIntake } from '../../server/limits/intake.ts';
import { createLoad } from '../../server/limits/load.ts';
import { createPromptRate } from '../../server/limits/prompt-rate.ts';
import { connectGateway } from '../support/gateway.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { smallDisk, whyNoSmallDisk } from '../support/small-disk.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { attachmentsOf, upload } from '../support/uploads.ts';

const TOKEN = 'a-token-of-tests';
const BEARER = { authorization: `Bearer ${TOKEN}` };
const NO_ROOM = 'limits: {min_free_mb: 1000000000}';

const prompts = (id: string): string => `/api/sessions/${id}/prompts`;

const accepted = async (server: TestServer, id: string): Promise<string[]> =>
  (await server.call('GET', prompts(id), undefined, BEARER)).json.admissions.map(({ text }: { text: string }) => text);

describe('prompts in a minute', () => {
  /** A server with a token that allows three, a clock that moves when told, and a session with a turn that runs. */
  async function limited() {
    let time = 1_750_000_000;
    const scripted = createScriptedRunner();
    const server = await startTestServer({
      env: { TURNKEEP_TOKEN: TOKEN },
      config: 'limits: {prompts_per_minute: 3}',
      overrides: { runner: scripted.runner, now: () => time },
    });
    const id = (await server.call('POST', '/api/sessions', {}, BEARER)).json.session.session_id;
    const send = (text: string, more: object = {}, headers: Record<string, string> = BEARER) =>
      server.call('POST', prompts(id), { text, ...more }, headers);
    expect((await send('one', { request_id: 'first' })).status).toBe(202);
    await scripted.turn(0);
    return {
      server,
      id,
      send,
      pass(seconds: number) {
        time += seconds;
      },
    };
  }

  it('[LI1] are counted for each credential; one more is refused, stores nothing, and may come when its time has', async () => {
    const { server, id, send, pass } = await limited();
    pass(20);
    expect((await send('two')).status).toBe(202);
    expect((await send('said to it', { mode: 'steer' })).status).toBe(202);
    const before = await accepted(server, id);
    for (const more of [{}, { mode: 'steer' }, { mode: 'interrupt' }, { request_id: 'new' }]) {
      const refused = await send('one too many', more);
      expect([refused.status, refused.json.code, refused.json.retry_after]).toEqual([429, 'too_many_prompts', 40]);
      expect(refused.headers.get('retry-after')).toBe('40');
    }
    expect((await server.call('POST', `/api/sessions/${id}/retry`, {}, BEARER)).json.code).toBe('too_many_prompts');
    expect(await accepted(server, id)).toEqual(before);
    const { secret } = (await server.call('POST', '/api/auth/tokens', { name: 'phone' }, BEARER)).json;
    expect((await send('of another', {}, { authorization: `Bearer ${secret}` })).status).toBe(202);
    pass(39);
    expect((await send('too early')).status).toBe(429);
    pass(1);
    expect((await send('in time')).status).toBe(202);
    expect((await send('the next one is not')).status).toBe(429);
  });

  it('[LI1][AD2] do not count a repeat, which has its receipt also when no other prompt may come', async () => {
    const { send } = await limited();
    for (let n = 0; n < 5; n += 1) expect((await send('one', { request_id: 'first' })).status).toBe(202);
    for (const text of ['two', 'three']) expect((await send(text)).status).toBe(202);
    expect((await send('four')).status).toBe(429);
    expect((await send('one', { request_id: 'first' })).status).toBe(202);
    expect((await send('another', { request_id: 'first' })).json.code).toBe('admission_conflict');
  });

  it('[LI1] are those over the gateway too', async () => {
    const { server, id, send } = await limited();
    const client = await connectGateway(server.url, { token: TOKEN });
    const { session_id } = await client.call('session.resume', { session_id: id });
    await client.call('prompt.submit', { session_id, text: 'two' });
    await client.call('session.steer', { session_id, text: 'three' });
    for (const method of ['prompt.submit', 'session.steer', 'session.redirect']) {
      const { error } = await client.request(method, { session_id, text: 'four' });
      expect([method, error?.code, error?.data]).toEqual([method, 4292, expect.objectContaining({ retry_after: 60 })]);
    }
    expect((await send('four')).json.code).toBe('too_many_prompts');
    expect(await accepted(server, id)).toEqual(['one', 'two', 'three']);
    await client.close();
  });

  it('[LI1] of who is at the machine of a server without a credential are not counted', async () => {
    const server = await startTestServer({
      config: 'limits: {prompts_per_minute: 1}',
      overrides: { runner: createEchoRunner().runner },
    });
    const id = await server.session();
    for (const text of ['one', 'two', 'three']) await server.ask(id, text);
  });

  it('[LI1] take a bounded amount of memory, and a clock that is set back locks nobody out', () => {
    const rate = createPromptRate(2);
    for (let n = 0; n < 5_000; n += 1) expect(rate.take(`token:${n}`, 1000)).toBe(0);
    // Long forgotten: as if it had sent none.
    expect([rate.take('token:0', 1000), rate.take('token:0', 1000), rate.take('token:0', 1000)]).toEqual([0, 0, 60]);
    expect(rate.take('token:0', 1000 - 86_400)).toBe(0);
  });
});

describe('room on the disk', () => {
  /** A server with a session that was used, which has no room by now. */
  async function withoutRoom() {
    const before = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const id = await before.session({ title: 'Kept' });
    await before.call('POST', `${prompts(id)}?wait=1`, { text: 'one', request_id: 'first' });
    const file = (await upload(before, id, 'a.txt', 'text')).json.attachment.id;
    const document = (await before.call('GET', `/api/sessions/${id}/export`)).json;
    await before.close();
    const overrides = { runner: createEchoRunner().runner };
    const server = await startTestServer({ home: before.home, config: NO_ROOM, overrides });
    return { server, id, file, document };
  }

  it('[LI2] is wanted for prompts, uploads, imports and copies; nothing of them is stored', async () => {
    const { server, id, document } = await withoutRoom();
    const rows = await server.messages(id);
    const answers = [
      await server.call('POST', prompts(id), { text: 'x' }),
      await server.call('POST', prompts(id), { text: 'x', mode: 'steer' }),
      await server.call('POST', `${prompts(id)}?wait=1`, { text: 'x' }),
      await server.call('POST', prompts(id), { text: 'x' }, { accept: 'text/event-stream' }),
      await server.call('POST', `/api/sessions/${id}/retry`, {}),
      await server.call('POST', `/api/sessions/${id}/fork`, {}),
      await server.call('POST', '/api/sessions/import', document),
      await upload(server, id, 'b.txt', 'text'),
    ];
    for (const { status, json, headers } of answers) {
      expect([status, json.code, headers.get('retry-after')]).toEqual([507, 'disk_nearly_full', '60']);
      expect(json.error).toContain('limits.min_free_mb');
    }
    const client = await connectGateway(server.url);
    const { session_id } = await client.call('session.resume', { session_id: id });
    const said: [string, object][] = [
      ['prompt.submit', { session_id, text: 'x' }],
      ['session.branch', { session_id }],
      ['session.create', { messages: [{ role: 'user', text: 'x' }] }],
    ];
    for (const [method, params] of said) {
      expect([method, (await client.request(method, params)).error?.code]).toEqual([method, 5071]);
    }
    await client.close();
    expect(await server.messages(id)).toEqual(rows);
    expect(await accepted(server, id)).toEqual(['one']);
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(1);
    expect((await server.call('GET', attachmentsOf(id))).json.attachments).toHaveLength(1);
  });

  it('[LI2][AD2] is not wanted for reads, repeats, edits that take away, and deletions', async () => {
    const { server, id, file } = await withoutRoom();
    expect((await server.call('POST', prompts(id), { text: 'one', request_id: 'first' })).status).toBe(202);
    expect((await server.call('GET', `${attachmentsOf(id)}/${file}`)).text).toBe('text');
    const { revision } = (await server.call('GET', `/api/sessions/${id}`)).json.session;
    expect((await server.call('POST', `/api/sessions/${id}/rewind`, { turns: 1, revision })).json.removed).toBe(2);
    expect((await server.call('DELETE', `/api/sessions/${id}`)).status).toBe(204);
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(0);
  });

  it('[LI2] is asked for once a second at the most; a disk that cannot be asked stops nobody', async () => {
    let asked = 0;
    let clock = 0;
    let free: () => Promise<number> = async () => 99;
    const intake = createIntake({
      rate: createPromptRate(1),
      load: { isTooHigh: () => false },
      minFreeBytes: 100,
      freeBytes: () => {
        asked += 1;
        return free();
      },
      isRepeat: async () => false,
      now: () => 0,
      monotonic: () => clock,
    });
    for (let n = 0; n < 10; n += 1) await expect(intake.room()).rejects.toMatchObject({ code: 'disk_nearly_full' });
    expect(asked).toBe(1);
    free = async () => 100;
    clock = 1_001;
    await intake.room();
    free = async () => {
      throw new Error('there is no such folder');
    };
    clock = 3_000;
    await intake.room();
    expect(asked).toBe(3);
  });

  const reason = whyNoSmallDisk();
  it.skipIf(reason !== null)('[LI2][RE7] is missed before a real disk is full, and found again', async () => {
    const disk = smallDisk(16);
    const config = 'limits: {min_free_mb: 4}';
    const server = await startTestServer({ home: disk.home, config, overrides: { runner: createEchoRunner().runner } });
    const id = await server.session();
    await server.ask(id, 'one');
    disk.fill(3_000_000);
    const said = async (text: string) => (await server.call('POST', `${prompts(id)}?wait=1`, { text })).status;
    await until('it is refused', async () => (await said('two')) === 507);
    // What runs has the rest of the disk: there is room for a change of the session.
    expect((await server.call('PATCH', `/api/sessions/${id}`, { title: 'still here' })).status).toBe(200);
    disk.free();
    await until('it is taken', async () => (await said('three')) === 200);
  });
});

describe('too much to do', () => {
  it('[LI3] refuses new work and new streams; health, reads and stops go on, and then everything', async () => {
    const scripted = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: scripted.runner, mostInFlight: 1 } });
    const id = await server.session();
    const stream = await server.stream(`/api/sessions/${id}/events`);
    const client = await connectGateway(server.url);
    const { session_id } = await client.call('session.resume', { session_id: id });
    // One request that is answered when its turn has ended.
    const waiting = server.call('POST', `${prompts(id)}?wait=1`, { text: 'one' });
    const turn = await scripted.turn(0);
    const refused = [
      await server.call('POST', '/api/sessions', {}),
      await server.call('POST', prompts(id), { text: 'two' }),
      await server.call('PATCH', `/api/sessions/${id}`, { title: 'x' }),
      await server.call('GET', '/api/events'),
      await server.call('GET', `/api/sessions/${id}/events`),
    ];
    for (const { status, json, headers } of refused) {
      expect([status, json.code, headers.get('retry-after')]).toEqual([503, 'overloaded', '5']);
    }
    expect((await client.request('prompt.submit', { session_id, text: 'two' })).error?.code).toBe(5036);
    await expect(connectGateway(server.url)).rejects.toThrow('503');
    expect((await server.call('GET', '/health')).json.status).toBe('ok');
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(1);
    turn.text('it goes on');
    await stream.next(({ type }) => type === 'message.delta');
    expect((await server.call('POST', `/api/sessions/${id}/interrupt`, {})).json.status).toBe('interrupted');
    expect((await waiting).status).toBe(200);
    await until('there is room', async () => (await server.call('POST', '/api/sessions', {})).status === 201);
    await client.close();
  });

  it('[LI3] is no request that was answered, refused or left', async () => {
    const scripted = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: scripted.runner, mostInFlight: 1 } });
    const id = await server.session();
    expect((await server.call('POST', '/api/sessions', { model: 'no/such' })).status).toBe(422);
    expect((await server.call('GET', '/api/nothing')).status).toBe(404);
    const leave = new AbortController();
    const left = fetch(`${server.url}${prompts(id)}?wait=1`, {
      method: 'POST',
      signal: leave.signal,
      headers: { 'content-type': 'application/json' },
      body: '{"text":"one"}',
    });
    await scripted.turn(0);
    expect((await server.call('POST', '/api/sessions', {})).status).toBe(503);
    leave.abort();
    await expect(left).rejects.toThrow();
    await until('it has left', async () => (await server.call('POST', '/api/sessions', {})).status === 201);
  });

  it('[LI3] is an event loop that is late for three seconds on end, and no single long step', () => {
    let late = 0;
    let second: () => void = () => {};
    const load = createLoad({
      mostInFlight: 10,
      loop: { lateness: () => late, stop: () => {} },
      everySecond(look) {
        second = look;
        return () => {};
      },
    });
    const after = (ms: number): boolean => {
      late = ms;
      second();
      return load.isTooHigh();
    };
    expect([9_000, 3, 1_500, 1_500, 999].map(after)).toEqual([false, false, false, false, false]);
    expect([1_001, 1_001, 1_001, 5_000].map(after)).toEqual([false, false, true, true]);
    expect(after(0)).toBe(false);
  });
});
