/** Rewind, clear, retry and fork through the server: what is taken back stays away, and nothing else changes. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { filesOf } from '../support/child-server.ts';
import { createScriptedRunner, type PlayedTurn } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

/** A server whose agent echoes; with a word `tool` in the prompt it calls two tools first. */
async function echoServer(home?: string) {
  const script = createScriptedRunner((turn) => {
    if (turn.turn.input.includes('tool')) callTools(turn);
    turn.say({ type: 'message.start', payload: {} });
    turn.text(`echo: ${turn.turn.input}`);
    turn.complete();
  });
  const server = await startTestServer({ ...(home && { home }), overrides: { runner: script.runner } });
  return { server, script };
}

function callTools(turn: PlayedTurn): void {
  turn.say({ type: 'message.start', payload: {} });
  for (const tool_id of ['t1', 't2']) {
    turn.say({ type: 'tool.start', payload: { tool_id, name: 'look', args: {}, preview: '' } });
  }
  for (const tool_id of ['t1', 't2']) {
    turn.say({
      type: 'tool.complete',
      payload: { tool_id, name: 'look', result: `seen by ${tool_id}`, is_error: false, duration_s: 0 },
    });
  }
}

const get = async (server: TestServer, id: string) => (await server.call('GET', `/api/sessions/${id}`)).json.session;

const contents = async (server: TestServer, id: string): Promise<string[]> =>
  (await server.messages(id)).map((row) => row.content);

/** Rewinds at the present revision. */
async function rewind(server: TestServer, id: string, to: object) {
  const { revision } = await get(server, id);
  return server.call('POST', `/api/sessions/${id}/rewind`, { ...to, revision });
}

/** All message rows of a session in the state DB, whether active or not. */
function storedRows(home: string, id: string): { message_id: string; active: number }[] {
  const db = new Database(path.join(home, 'state.db'), { readonly: true });
  const rows = db.prepare('SELECT message_id, active FROM messages WHERE session_id = ? ORDER BY id').all(id);
  db.close();
  return rows as { message_id: string; active: number }[];
}

describe('rewind', () => {
  it('[ED1] keeps a message and takes back what follows, in every store and after a restart', async () => {
    const { server } = await echoServer();
    const id = await server.session({ title: 'Trees' });
    for (const text of ['oak', 'ash', 'elm']) await server.ask(id, text);
    const all: Message[] = await server.messages(id);
    const before = await get(server, id);
    const answer = await rewind(server, id, { to_message: all[1]!.id });
    expect(answer.status).toBe(200);
    expect(answer.json.removed).toBe(4);
    expect(answer.json.session).toMatchObject({
      title: 'Trees',
      message_count: 2,
      last_message_at: all[1]!.timestamp,
      revision: before.revision + 1,
      usage: { input_tokens: before.usage.input_tokens },
    });
    expect(answer.json.session).toEqual(await get(server, id));
    expect(answer.headers.get('etag')).toBe((await server.call('GET', `/api/sessions/${id}`)).headers.get('etag'));
    expect(await server.messages(id)).toEqual(all.slice(0, 2));
    expect((await server.call('GET', '/api/search?q=elm')).json.hits).toEqual([]);
    expect((await server.call('GET', '/api/search?q=oak')).json.hits).toHaveLength(2);
    // Nothing is destroyed.
    expect(storedRows(server.home, id)).toEqual(all.map((row, at) => ({ message_id: row.id, active: at < 2 ? 1 : 0 })));
    await server.close();
    const files = await filesOf(server.home);
    const { server: next, script } = await echoServer(server.home);
    expect(await next.messages(id)).toEqual(all.slice(0, 2));
    expect(await filesOf(server.home)).toEqual(files);
    // The agent is not told what was taken back.
    await next.ask(id, 'yew');
    expect(script.turns[0]!.turn.history.map((row) => row.content)).toEqual(['oak', 'echo: oak']);
    expect(await contents(next, id)).toEqual(['oak', 'echo: oak', 'yew', 'echo: yew']);
  });

  it('[ED1] takes back the last turns, each from its prompt', async () => {
    const { server } = await echoServer();
    const id = await server.session();
    for (const text of ['one', 'use a tool', 'three']) await server.ask(id, text);
    expect(await server.messages(id)).toHaveLength(2 + 5 + 2);
    expect((await rewind(server, id, { turns: 2 })).json.removed).toBe(7);
    expect(await contents(server, id)).toEqual(['one', 'echo: one']);
    expect((await rewind(server, id, { turns: 1 })).json.removed).toBe(2);
    expect(await get(server, id)).toMatchObject({ message_count: 0, last_message_at: null, status: 'idle' });
  });

  it('[ED6] never splits a call from its results', async () => {
    const { server } = await echoServer();
    for (const kept of [1, 2, 3]) {
      const id = await server.session();
      await server.ask(id, 'use a tool');
      const rows: Message[] = await server.messages(id);
      expect(rows.map((row) => row.role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
      expect((await rewind(server, id, { to_message: rows[kept]!.id })).json.removed).toBe(1);
      expect(await server.messages(id)).toEqual(rows.slice(0, 4));
    }
  });

  it('[ED2] to the last message changes nothing, not even the revision', async () => {
    const { server } = await echoServer();
    const id = await server.session();
    await server.ask(id, 'one');
    const rows = await server.messages(id);
    const before = await get(server, id);
    const files = await filesOf(server.home);
    expect((await rewind(server, id, { to_message: rows[1].id })).json).toEqual({ session: before, removed: 0 });
    expect(await get(server, id)).toEqual(before);
    expect(await filesOf(server.home)).toEqual(files);
  });

  it('[ED2][HT6] needs the revision, in its body or as If-Match, and says the present one when it is another', async () => {
    const { server } = await echoServer();
    const id = await server.session();
    for (const text of ['one', 'two']) await server.ask(id, text);
    const { revision } = await get(server, id);
    const post = (body: object, headers?: Record<string, string>) =>
      server.call('POST', `/api/sessions/${id}/rewind`, body, headers);
    expect((await post({ turns: 1 })).json).toMatchObject({ code: 'bad_request', error: /revision/ });
    const stale = await post({ turns: 1, revision: revision - 1 });
    expect([stale.status, stale.json.code, stale.json.revision]).toEqual([409, 'revision_conflict', revision]);
    expect((await post({ turns: 1 }, { 'if-match': `"${revision + 1}"` })).json.code).toBe('revision_conflict');
    expect((await post({ turns: 1, revision }, { 'if-match': '"1"' })).json.code).toBe('bad_request');
    expect(await server.messages(id)).toHaveLength(4);
    expect((await post({ turns: 1 }, { 'if-match': `"${revision}"` })).status).toBe(200);
    expect(await server.messages(id)).toHaveLength(2);
  });

  it('[ED2] of what is not there is refused', async () => {
    const { server } = await echoServer();
    const id = await server.session();
    await server.ask(id, 'one');
    const code = async (to: object) => (await rewind(server, id, to)).json.code;
    expect(await code({ to_message: 'nobody' })).toBe('unknown_message');
    expect(await code({ turns: 2 })).toBe('unacceptable');
    for (const wrong of [{}, { turns: 0 }, { turns: '1' }, { turns: 1, to_message: 'x' }, { to_message: '' }]) {
      expect(await code(wrong)).toBe('bad_request');
    }
    expect((await server.call('POST', '/api/sessions/nobody/rewind', { turns: 1, revision: 1 })).status).toBe(404);
    expect(await server.messages(id)).toHaveLength(2);
  });

  it('[ED1] is told to everybody who looks on', async () => {
    const { server } = await echoServer();
    const id = await server.session();
    await server.ask(id, 'one');
    const one = await server.stream(`/api/sessions/${id}/events`);
    await one.next((event) => event.type === 'session.snapshot');
    const list = await server.stream('/api/events');
    await list.next((event) => event.type === 'sessions.changed');
    await rewind(server, id, { turns: 1 });
    const info = await one.next((event) => event.type === 'session.info');
    expect(info.json.payload.session).toMatchObject({ message_count: 0 });
    const changed = await list.next((event) => event.json.payload.reason === 'edited');
    expect(changed.json.payload).toMatchObject({ session_id: id, session: { message_count: 0 } });
  });
});

describe('edits and turns', () => {
  it('[ED2] an edit is refused while a turn waits, runs, or is of unknown fate', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const id = await server.session();
    await server.prompt(id, 'one');
    const turn = await script.turn(0);
    const edits = async () => {
      const { revision } = await get(server, id);
      const post = (what: string, body: object) => server.call('POST', `/api/sessions/${id}/${what}`, body);
      const answers = [
        await post('rewind', { turns: 1, revision }),
        await post('clear', { revision }),
        await post('retry', {}),
      ];
      return answers.map(({ status, json }) => `${status} ${json.code}`);
    };
    expect(await edits()).toEqual(Array(3).fill('409 session_busy'));
    await server.prompt(id, 'two');
    turn.text('kept');
    turn.complete();
    await script.turn(1);
    expect(await edits()).toEqual(Array(3).fill('409 session_busy'));
    const db = new Database(path.join(server.home, 'state.db'), { timeout: 5000 });
    db.prepare("UPDATE session_admissions SET status = 'unknown' WHERE status = 'started'").run();
    db.close();
    expect(await edits()).toEqual(Array(3).fill('409 unknown_execution'));
    expect(await contents(server, id)).toEqual(['one', 'kept', 'two']);
  });

  it('[ED1][ED2] edits at once: one of them wins, and nothing that it took back is written by a turn behind it', async () => {
    const { server } = await echoServer();
    const id = await server.session();
    for (const text of ['one', 'two', 'three']) await server.ask(id, text);
    const { revision } = await get(server, id);
    const edits = Array.from({ length: 6 }, (_, n) =>
      server.call('POST', `/api/sessions/${id}/rewind`, { turns: (n % 3) + 1, revision }),
    );
    const prompt = server.ask(id, 'four');
    const answers = await Promise.all(edits);
    await prompt;
    const won = answers.filter((answer) => answer.status === 200);
    expect(won.length).toBeLessThanOrEqual(1);
    expect(new Set(answers.map((answer) => answer.status))).not.toContain(500);
    const kept = 6 - (won[0]?.json.removed ?? 0);
    const whole = ['one', 'echo: one', 'two', 'echo: two', 'three', 'echo: three'];
    expect(await contents(server, id)).toEqual([...whole.slice(0, kept), 'four', 'echo: four']);
    expect((await get(server, id)).message_count).toBe(kept + 2);
  });
});

describe('clear', () => {
  it('[ED1] takes back everything; the session stays, and goes on', async () => {
    const { server, script } = await echoServer();
    const id = await server.session({ title: 'Trees' });
    await server.ask(id, 'oak');
    await server.call('PATCH', `/api/sessions/${id}`, { draft: 'half a thought', pinned: true });
    const { revision } = await get(server, id);
    expect((await server.call('POST', `/api/sessions/${id}/clear`, {})).json.code).toBe('bad_request');
    expect((await server.call('POST', `/api/sessions/${id}/clear`, { revision: 1 })).json).toMatchObject({
      code: 'revision_conflict',
      revision,
    });
    const { status, json } = await server.call('POST', `/api/sessions/${id}/clear`, { revision });
    expect(status).toBe(200);
    const stays = { title: 'Trees', draft: 'half a thought', pinned: true, message_count: 0, last_message_at: null };
    expect(json.session).toMatchObject({ ...stays, revision: revision + 1 });
    expect(await server.messages(id)).toEqual([]);
    // Again there is nothing to take back.
    const again = await server.call('POST', `/api/sessions/${id}/clear`, { revision: revision + 1 });
    expect(again.json.session).toEqual(json.session);
    await server.ask(id, 'ash');
    expect(script.turns[1]!.turn.history).toEqual([]);
    expect(await contents(server, id)).toEqual(['ash', 'echo: ash']);
  });
});

describe('retry', () => {
  it('[ED3] takes back the last prompt and asks it again', async () => {
    const { server, script } = await echoServer();
    const id = await server.session();
    for (const text of ['one', 'use a tool']) await server.ask(id, text);
    const before: Message[] = await server.messages(id);
    const { status, json } = await server.call('POST', `/api/sessions/${id}/retry`, {});
    expect(status).toBe(202);
    expect(json).toMatchObject({ admission: { text: 'use a tool' }, cursor: `${json.run_id}:0` });
    await until('it has ended', async () => (await get(server, id)).status === 'idle');
    const after: Message[] = await server.messages(id);
    expect(after.slice(0, 2)).toEqual(before.slice(0, 2));
    expect(after.map((row) => row.content)).toEqual(before.map((row) => row.content));
    expect(after.slice(2).map((row) => row.run_id)).toEqual(Array(5).fill(json.run_id));
    expect(script.turns).toHaveLength(3);
    expect(script.turns[2]!.turn.history.map((row) => row.content)).toEqual(['one', 'echo: one']);
    expect((await get(server, id)).message_count).toBe(7);
  });

  it('[ED3][AD2] a repeat gives the same receipt and takes back nothing more, also later and at once', async () => {
    const { server, script } = await echoServer();
    const id = await server.session();
    for (const text of ['one', 'two']) await server.ask(id, text);
    const retry = (body: object = {}, headers?: Record<string, string>) =>
      server.call('POST', `/api/sessions/${id}/retry`, body, headers);
    const answers = await Promise.all(
      [1, 2, 3].map((n) => (n % 2 ? retry({ request_id: 'r' }) : retry({}, { 'idempotency-key': 'r' }))),
    );
    expect(answers.map((answer) => answer.status)).toEqual([202, 202, 202]);
    expect(new Set(answers.map((answer) => answer.json.run_id)).size).toBe(1);
    await until('it has ended', async () => (await get(server, id)).status === 'idle');
    await server.ask(id, 'three');
    const rows = await server.messages(id);
    const late = await retry({ request_id: 'r' });
    expect([late.status, late.json.admission.outcome]).toEqual([202, 'completed']);
    expect(late.json.run_id).toBe(answers[0]!.json.run_id);
    await rewind(server, id, { turns: 3 });
    expect((await retry({ request_id: 'r' })).json.run_id).toBe(late.json.run_id);
    expect(rows.map((row) => row.content)).toEqual(['one', 'echo: one', 'two', 'echo: two', 'three', 'echo: three']);
    expect(script.turns).toHaveLength(4);
    // A key is a prompt's or a retry's.
    expect((await server.call('POST', `/api/sessions/${id}/prompts`, { text: 'two', request_id: 'r' })).json.code).toBe(
      'admission_conflict',
    );
    await server.prompt(id, 'four', { request_id: 'p' });
    expect((await retry({ request_id: 'p' })).json.code).toBe('admission_conflict');
    expect((await retry({ request_id: 'a' }, { 'idempotency-key': 'b' })).json.code).toBe('bad_request');
  });

  it('[ED3] without a prompt it is refused', async () => {
    const { server } = await echoServer();
    const id = await server.session();
    expect((await server.call('POST', `/api/sessions/${id}/retry`, {})).json.code).toBe('unacceptable');
    expect((await server.call('POST', '/api/sessions/nobody/retry')).status).toBe(404);
  });

  it('[ED3][HT7] is answered in the three forms of a prompt', async () => {
    const { server } = await echoServer();
    const id = await server.session();
    await server.ask(id, 'one');
    const waited = await server.call('POST', `/api/sessions/${id}/retry?wait=1`, {});
    expect([waited.status, waited.json.message.content]).toEqual([200, 'echo: one']);
    const streamed = await fetch(`${server.url}/api/sessions/${id}/retry`, {
      method: 'POST',
      headers: { accept: 'text/event-stream' },
    });
    const text = await streamed.text();
    expect(text).toContain('event: run.start');
    expect(text).toContain('event: message.complete');
    expect(await contents(server, id)).toEqual(['one', 'echo: one']);
  });
});

describe('a prompt in the place of another', () => {
  const send = (server: TestServer, id: string, body: object) =>
    server.call('POST', `/api/sessions/${id}/prompts`, body);

  it('[ED3] takes back the prompt that it replaces with all that came after it, and is asked', async () => {
    const { server, script } = await echoServer();
    const id = await server.session();
    for (const text of ['one', 'two', 'three']) await server.ask(id, text);
    const [, , two] = await server.messages(id);
    const { status, json } = await send(server, id, { text: 'two, better', replaces: two.id });
    expect([status, json.admission.text]).toEqual([202, 'two, better']);
    await until('it has ended', async () => (await get(server, id)).status === 'idle');
    expect(await contents(server, id)).toEqual(['one', 'echo: one', 'two, better', 'echo: two, better']);
    expect(script.turns[3]!.turn.history.map((row) => row.content)).toEqual(['one', 'echo: one']);
    // Nothing of what was taken back is destroyed.
    expect(storedRows(server.home, id).filter((row) => row.active === 0)).toHaveLength(4);
  });

  it('[ED3][AD2] sent again, also at once and later, it is the same prompt; with another text a conflict', async () => {
    const { server, script } = await echoServer();
    const id = await server.session();
    for (const text of ['one', 'two']) await server.ask(id, text);
    const [, , two] = await server.messages(id);
    const body = { text: 'better', replaces: two.id, request_id: 'k' };
    const answers = await Promise.all([send(server, id, body), send(server, id, body), send(server, id, body)]);
    expect(answers.map((answer) => answer.status)).toEqual([202, 202, 202]);
    expect(new Set(answers.map((answer) => answer.json.run_id)).size).toBe(1);
    await until('it has ended', async () => (await get(server, id)).status === 'idle');
    await server.ask(id, 'three');
    expect((await send(server, id, body)).json.run_id).toBe(answers[0]!.json.run_id);
    expect((await send(server, id, { ...body, text: 'worse' })).json.code).toBe('admission_conflict');
    expect(script.turns).toHaveLength(4);
    expect(await server.messages(id)).toHaveLength(6);
  });

  it('[ED3] what is no prompt of the session cannot be replaced, and nothing changes', async () => {
    const { server } = await echoServer();
    const id = await server.session();
    await server.ask(id, 'one');
    const rows = await server.messages(id);
    for (const replaces of [rows[1].id, 'gone']) {
      const refused = await send(server, id, { text: 'better', replaces });
      expect([refused.status, refused.json.code]).toEqual([422, 'unknown_message']);
    }
    expect((await send(server, id, { text: ' ', replaces: rows[0].id })).json.code).toBe('empty_prompt');
    expect(await server.messages(id)).toEqual(rows);
  });
});

describe('fork', () => {
  const fork = (server: TestServer, id: string, body: object = {}) =>
    server.call('POST', `/api/sessions/${id}/fork`, body);

  it('[ED4][ED6] copies what is displayed, up to a message with its tool block, and then goes its own way', async () => {
    const { server, script } = await echoServer();
    const id = await server.session({ title: 'Trees', workspace: server.home });
    for (const text of ['one', 'use a tool', 'three']) await server.ask(id, text);
    const rows: Message[] = await server.messages(id);
    const parent = await get(server, id);
    const answer = await fork(server, id, { at_message: rows[3]!.id });
    expect(answer.status).toBe(201);
    const { session } = answer.json;
    expect(session).toMatchObject({
      title: 'Trees (fork)',
      workspace: server.home,
      message_count: 6,
      last_message_at: rows[5]!.timestamp,
      status: 'idle',
      usage: { input_tokens: 0 },
    });
    const forked: string = session.session_id;
    expect(await server.messages(forked)).toEqual(rows.slice(0, 6));
    const whole = (await fork(server, id, { title: 'All of it' })).json.session;
    expect(await server.messages(whole.session_id)).toEqual(rows);
    expect(whole.title).toBe('All of it');
    // What becomes of the copy is nothing to the original, and the other way round.
    await server.ask(forked, 'four');
    expect(script.turns.at(-1)!.turn.history).toEqual(rows.slice(0, 6));
    await rewind(server, forked, { to_message: rows[0]!.id });
    expect(await server.messages(id)).toEqual(rows);
    expect(await get(server, id)).toEqual(parent);
    await rewind(server, id, { turns: 3 });
    expect(await server.messages(whole.session_id)).toEqual(rows);
    const again = (await fork(server, whole.session_id)).json.session;
    expect(again.title).toBe('All of it (fork)');
    expect(await server.messages(again.session_id)).toEqual(rows);
    const db = new Database(path.join(server.home, 'state.db'), { readonly: true });
    const parents = db.prepare('SELECT parent_session_id FROM sessions WHERE id = ?').pluck();
    expect([forked, again.session_id].map((one) => parents.get(one))).toEqual([id, whole.session_id]);
    db.close();
  });

  it('[ED4] copies the settled turns of a session that runs', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const id = await server.session();
    await server.prompt(id, 'one');
    const turn = await script.turn(0);
    turn.text('done');
    turn.complete();
    await until('it has ended', async () => (await get(server, id)).status === 'idle');
    const { run_id } = await server.prompt(id, 'two');
    (await script.turn(1)).text('half');
    const forked = (await fork(server, id)).json.session;
    expect(await contents(server, forked.session_id)).toEqual(['one', 'done']);
    expect((await fork(server, id, { at_message: `${run_id}.0` })).json.code).toBe('unknown_message');
    expect((await get(server, id)).status).toBe('running');
  });

  it('[ED4] of nothing is empty; a wrong message is refused; a title may be anything that a title is', async () => {
    const { server } = await echoServer();
    const id = await server.session();
    const empty = (await fork(server, id)).json.session;
    expect(empty).toMatchObject({ title: null, message_count: 0 });
    expect(await server.messages(empty.session_id)).toEqual([]);
    await server.ask(empty.session_id, 'hello');
    expect((await get(server, empty.session_id)).title).toBe('hello');
    expect((await fork(server, id, { at_message: 'nobody' })).json.code).toBe('unknown_message');
    expect((await fork(server, id, { at: 'x' })).json.code).toBe('bad_request');
    expect((await fork(server, 'nobody')).status).toBe(404);
    await server.call('PATCH', `/api/sessions/${id}`, { title: '\u{1F600}'.repeat(250) });
    const long = (await fork(server, id)).json.session.title;
    expect(long).toMatch(/ \(fork\)$/);
    expect(long.length).toBeLessThanOrEqual(500);
    expect(long.isWellFormed()).toBe(true);
  });

  it('[ED4][DB3] a fork that never ran is deleted with its files', async () => {
    const { server } = await echoServer();
    const id = await server.session();
    await server.ask(id, 'one');
    const { session_id } = (await fork(server, id)).json.session;
    expect((await filesOf(server.home)).has(`${session_id}.json`)).toBe(true);
    expect((await server.call('DELETE', `/api/sessions/${session_id}`)).status).toBe(204);
    expect((await filesOf(server.home)).has(`${session_id}.json`)).toBe(false);
    expect(await contents(server, id)).toEqual(['one', 'echo: one']);
  });
});
