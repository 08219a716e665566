/** Sessions over HTTP: create, list, read, change, delete, their messages, projects and the search. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

/** A server whose agent echoes and whose clock moves only when told. */
async function clockServer() {
  let time = 1_750_000_000;
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner, now: () => time } });
  return {
    server,
    pass(seconds: number) {
      time += seconds;
    },
  };
}

const echoServer = () => startTestServer({ overrides: { runner: createEchoRunner().runner } });

/** Waits until nothing runs or waits in the session: the end of a turn is told a moment before. */
const idle = (server: TestServer, id: string) =>
  until('the session is idle', async () => {
    const { session } = (await server.call('GET', `/api/sessions/${id}`)).json;
    return session.status === 'idle' ? session : null;
  });

// biome-ignore lint/suspicious/noExplicitAny: rows as the server says them.
const titles = (sessions: any[]): (string | null)[] => sessions.map((session) => session.title);

it('[HT11] a new session is what was asked for, and reads back the same', async () => {
  const { server } = await clockServer();
  const project = (await server.call('POST', '/api/projects', { name: 'P' })).json.project;
  const fields = { title: 'Mine', model: 'builtin', workspace: server.home, project_id: project.project_id };
  const created = await server.call('POST', '/api/sessions', fields);
  expect(created.status).toBe(201);
  const { session } = created.json;
  expect(session).toEqual({
    ...fields,
    session_id: expect.stringMatching(/^\d{8}_\d{6}_[0-9a-f]{6}$/),
    source: 'turnkeep',
    created_at: 1_750_000_000,
    updated_at: 1_750_000_000,
    last_message_at: null,
    last_activity_at: 1_750_000_000,
    message_count: 0,
    pinned: false,
    archived: false,
    draft: '',
    revision: 1,
    status: 'idle',
    run: null,
    queue_length: 0,
    usage: { input_tokens: 0, output_tokens: 0 },
    flags: [],
  });
  expect((await server.call('GET', `/api/sessions/${session.session_id}`)).json).toEqual({ session });
  expect((await server.call('GET', '/api/sessions')).json).toEqual({
    sessions: [session],
    next_cursor: null,
    total: 1,
  });
});

it('[HT11] null and a blank title mean none', async () => {
  const server = await startTestServer();
  for (const fields of [{}, { title: null, model: null, workspace: null, project_id: null }, { title: '  ' }]) {
    const { session } = (await server.call('POST', '/api/sessions', fields)).json;
    expect(session).toMatchObject({ title: null, model: null, workspace: null, project_id: null });
  }
});

it('[DB5] the same Idempotency-Key gives the same session, for the same fields only', async () => {
  const server = await startTestServer();
  const create = (fields: object, key: string) =>
    server.call('POST', '/api/sessions', fields, { 'idempotency-key': key });
  const first = await create({ title: 'x', model: 'builtin' }, 'a');
  const again = await create({ model: 'builtin', title: 'x' }, 'a');
  expect([first.status, again.status]).toEqual([201, 201]);
  expect(again.json.session.session_id).toBe(first.json.session.session_id);
  expect((await create({ title: 'x', model: null }, 'a')).json.code).toBe('idempotency_conflict');
  expect((await create({ title: 'x', model: 'builtin' }, 'b')).json.session.session_id).not.toBe(
    first.json.session.session_id,
  );
  const many = await Promise.all(Array.from({ length: 20 }, () => create({ title: 'once' }, 'c')));
  expect(new Set(many.map((answer) => answer.json.session.session_id)).size).toBe(1);
  expect((await server.call('GET', '/api/sessions')).json.total).toBe(3);
});

it('[DB2] the list has pinned sessions first, then the newest activity', async () => {
  const { server, pass } = await clockServer();
  const ids: Record<string, string> = {};
  for (const title of ['a', 'b', 'c', 'd']) {
    ids[title] = await server.session({ title });
    pass(1);
  }
  const list = async (query = '') => titles((await server.call('GET', `/api/sessions${query}`)).json.sessions);
  expect(await list()).toEqual(['d', 'c', 'b', 'a']);
  await server.ask(ids.b!, 'hello');
  await idle(server, ids.b!);
  expect(await list()).toEqual(['b', 'd', 'c', 'a']);
  await server.call('PATCH', `/api/sessions/${ids.a}`, { pinned: true });
  expect(await list()).toEqual(['a', 'b', 'd', 'c']);
  // A new name is no activity.
  pass(1);
  await server.call('PATCH', `/api/sessions/${ids.c}`, { title: 'c2' });
  expect(await list()).toEqual(['a', 'b', 'd', 'c2']);
  await server.call('PATCH', `/api/sessions/${ids.a}`, { pinned: false, archived: true });
  expect(await list()).toEqual(['b', 'd', 'c2']);
  expect(await list('?archived=1')).toEqual(['b', 'd', 'c2', 'a']);
  expect(await list('?archived=only')).toEqual(['a']);
});

it('[DB2] pages have no gap and no repeat, also when sessions come, move and go in between', async () => {
  const { server, pass } = await clockServer();
  const ids: string[] = [];
  for (let n = 0; n < 25; n += 1) {
    ids.push(await server.session({ title: `s${n}` }));
    // Some at the same moment: the id decides then.
    if (n % 3 === 0) pass(1);
  }
  await server.call('PATCH', `/api/sessions/${ids[3]}`, { pinned: true });
  await server.call('PATCH', `/api/sessions/${ids[20]}`, { pinned: true });

  const seen: string[] = [];
  const totals: number[] = [];
  let cursor: string | null = null;
  for (let page = 0; ; page += 1) {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`;
    const answer = (await server.call('GET', `/api/sessions?limit=4${query}`)).json;
    seen.push(...answer.sessions.map((session: { session_id: string }) => session.session_id));
    totals.push(answer.total);
    cursor = answer.next_cursor;
    if (cursor === null) break;
    expect(answer.sessions).toHaveLength(4);
    pass(1);
    if (page === 0) await server.session({ title: 'new' });
    // One that was seen already moves to the top.
    if (page === 1) await server.ask(seen[3]!, 'up');
    // One that was not seen yet goes.
    if (page === 2) await server.call('DELETE', `/api/sessions/${ids[0]}`);
  }
  expect(new Set(seen).size).toBe(seen.length);
  expect(new Set(seen)).toEqual(new Set(ids.slice(1)));
  expect(totals).toEqual([25, 26, 26, 25, 25, 25, 25].slice(0, totals.length));
  expect(seen.slice(0, 2).sort()).toEqual([ids[3]!, ids[20]!].sort());
});

it('[HT11] the list is filtered by words of the title, project, source and archive, and counts what it filters', async () => {
  const server = await startTestServer();
  const project = (await server.call('POST', '/api/projects', { name: 'P', color: '#00ff7f' })).json.project;
  await server.session({ title: 'Alpha beta', project_id: project.project_id });
  await server.session({ title: 'beta 100% gamma_x' });
  await server.session();
  const list = async (query: string) => {
    const { sessions, total } = (await server.call('GET', `/api/sessions?${query}`)).json;
    expect(total).toBe(sessions.length);
    return titles(sessions);
  };
  expect((await list('q=beta')).sort()).toEqual(['Alpha beta', 'beta 100% gamma_x']);
  expect(await list('q=BETA%20alpha')).toEqual(['Alpha beta']);
  expect(await list('q=100%25')).toEqual(['beta 100% gamma_x']);
  expect(await list('q=a_x')).toEqual(['beta 100% gamma_x']);
  expect(await list('q=%25')).toEqual(['beta 100% gamma_x']);
  expect(await list('q=nothing')).toEqual([]);
  expect(await list(`project_id=${project.project_id}`)).toEqual(['Alpha beta']);
  expect(await list('project_id=other')).toEqual([]);
  expect(await list('source=turnkeep')).toHaveLength(3);
  expect(await list('source=elsewhere')).toEqual([]);
  const page = (await server.call('GET', '/api/sessions?q=beta&limit=1')).json;
  expect([page.sessions.length, page.total]).toEqual([1, 2]);
  expect((await server.call('GET', `/api/sessions?q=beta&cursor=${page.next_cursor}`)).json.sessions).toHaveLength(1);
});

it('[HT11] messages come in pages, from the end, before and after a message', async () => {
  const server = await echoServer();
  const id = await server.session();
  for (let n = 0; n < 6; n += 1) await server.ask(id, `p${n}`);
  const page = async (query: string) => (await server.call('GET', `/api/sessions/${id}/messages?${query}`)).json;
  const all = await page('limit=1000');
  expect(all.messages.map((row: { content: string }) => row.content)).toEqual(
    [0, 1, 2, 3, 4, 5].flatMap((n) => [`p${n}`, `echo: p${n}`]),
  );
  expect(all.has_more).toBe(false);
  const { session } = (await server.call('GET', `/api/sessions/${id}`)).json;
  expect(session.message_count).toBe(12);
  expect(all.revision).toBe(session.revision);
  const ids: string[] = all.messages.map((row: { id: string }) => row.id);
  expect(new Set(ids).size).toBe(12);

  const idsOf = (answer: { messages: { id: string }[] }) => answer.messages.map((row) => row.id);
  const last = await page('limit=5');
  expect([idsOf(last), last.has_more]).toEqual([ids.slice(7), true]);
  const before = await page(`limit=5&before=${ids[7]}`);
  expect([idsOf(before), before.has_more]).toEqual([ids.slice(2, 7), true]);
  const first = await page(`limit=5&before=${ids[2]}`);
  expect([idsOf(first), first.has_more]).toEqual([ids.slice(0, 2), false]);
  expect(await page(`before=${ids[0]}`)).toMatchObject({ messages: [], has_more: false });

  const after = await page(`limit=5&after=${ids[4]}`);
  expect([idsOf(after), after.has_more]).toEqual([ids.slice(5, 10), true]);
  const rest = await page(`limit=5&after=${ids[9]}`);
  expect([idsOf(rest), rest.has_more]).toEqual([ids.slice(10), false]);
  expect(await page(`after=${ids[11]}`)).toMatchObject({ messages: [], has_more: false });
  const between = await page(`after=${ids[2]}&before=${ids[6]}`);
  expect([idsOf(between), between.has_more]).toEqual([ids.slice(3, 6), false]);

  const backwards: string[] = [];
  for (let query = 'limit=5'; ; query = `limit=5&before=${backwards[0]}`) {
    const one = await page(query);
    backwards.unshift(...idsOf(one));
    if (!one.has_more) break;
  }
  expect(backwards).toEqual(ids);

  const withMessages = async (n: string) => (await server.call('GET', `/api/sessions/${id}?messages=${n}`)).json;
  expect(idsOf(await withMessages('3'))).toEqual(ids.slice(9));
  expect(idsOf(await withMessages('all'))).toEqual(ids);
  expect(await withMessages('0')).not.toHaveProperty('messages');
  expect((await withMessages('3')).session.session_id).toBe(id);
});

it('[HT6] an unchanged session and its messages answer 304, and any visible change ends that', async () => {
  const scripted = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: scripted.runner } });
  const id = await server.session();
  const addresses = [`/api/sessions/${id}`, `/api/sessions/${id}?messages=5`, `/api/sessions/${id}/messages`];
  const etags = new Map<string, string>();
  const read = async (address: string) => {
    const known = etags.get(address);
    const answer = await server.call('GET', address, undefined, known ? { 'if-none-match': known } : {});
    if (answer.status === 200) etags.set(address, answer.headers.get('etag')!);
    return answer.status;
  };
  /** Each address has changed once, and only once. */
  const changed = async (what: string, which = addresses) => {
    for (const address of addresses) {
      expect([what, address, await read(address)]).toEqual([what, address, which.includes(address) ? 200 : 304]);
      expect([what, address, await read(address)]).toEqual([what, address, 304]);
    }
  };
  await changed('first');
  const { session } = (await server.call('GET', addresses[0]!)).json;
  for (const etag of etags.values()) expect(etag).toMatch(new RegExp(`^"${session.revision}\\.[\\w-]+"$`));
  const notModified = await server.call('GET', addresses[0]!, undefined, {
    'if-none-match': etags.get(addresses[0]!)!,
  });
  expect([notModified.text, notModified.headers.get('etag')]).toEqual(['', etags.get(addresses[0]!)]);
  for (const known of ['*', `"other", ${etags.get(addresses[0]!)}`, `W/${etags.get(addresses[0]!)}`]) {
    expect((await server.call('GET', addresses[0]!, undefined, { 'if-none-match': known })).status).toBe(304);
  }
  expect((await server.call('GET', addresses[0]!, undefined, { 'if-none-match': '"other"' })).status).toBe(200);

  await server.call('PATCH', `/api/sessions/${id}`, { title: 'new' });
  await changed('a title');
  await server.call('PATCH', `/api/sessions/${id}`, { draft: 'half a thought' });
  await changed('a draft');

  await server.prompt(id, 'first');
  const first = await scripted.turn(0);
  await changed('a turn began');
  await server.prompt(id, 'second');
  await changed('a prompt waits');
  void first.turn.ask({ kind: 'clarify', questions: [{ qid: 'q', question: '?' }] });
  await until(
    'the session waits',
    async () => (await server.call('GET', addresses[0]!)).json.session.status === 'waiting',
  );
  await changed('the agent asks');
  const [question] = (await server.call('GET', `/api/sessions/${id}/requests`)).json.requests;
  await server.call('POST', `/api/sessions/${id}/requests/${question.id}`, { answers: { q: 'yes' } });
  await changed('it is answered');
  first.text('done');
  first.complete();
  const second = await scripted.turn(1);
  await changed('the next turn began');
  second.complete();
  await idle(server, id);
  await changed('all turns ended');
});

it('[HT6][DB1] the revision grows with each visible change, and a draft moves none', async () => {
  const server = await echoServer();
  const id = await server.session();
  const revision = async () => (await server.call('GET', `/api/sessions/${id}`)).json.session.revision;
  const project = (await server.call('POST', '/api/projects', { name: 'P' })).json.project;
  let last = await revision();
  const patches: object[] = [
    { title: 'x' },
    { pinned: true },
    { archived: true },
    { model: 'builtin' },
    { workspace: server.home },
    { project_id: project.project_id },
    { title: null, pinned: false, archived: false, model: null, workspace: null, project_id: null },
  ];
  for (const patch of patches) {
    const { session } = (await server.call('PATCH', `/api/sessions/${id}`, patch)).json;
    expect(session).toMatchObject(patch);
    expect(session.revision).toBe(last + 1);
    last = session.revision;
    // The same again changes nothing.
    const again = (await server.call('PATCH', `/api/sessions/${id}`, patch)).json.session;
    expect([again.revision, again.updated_at]).toEqual([last, session.updated_at]);
  }
  const before = (await server.call('GET', `/api/sessions/${id}`)).json.session;
  const drafted = (await server.call('PATCH', `/api/sessions/${id}`, { draft: 'typing' })).json.session;
  expect(drafted).toEqual({ ...before, draft: 'typing' });
  expect((await server.call('PATCH', `/api/sessions/${id}`, {})).json.session).toEqual(drafted);
  await server.ask(id, 'hello');
  expect((await idle(server, id)).revision).toBeGreaterThan(last);
});

it('[HT6] If-Match changes only the revision that was seen', async () => {
  const server = await startTestServer();
  const id = await server.session();
  const patch = (title: string, match: string) =>
    server.call('PATCH', `/api/sessions/${id}`, { title }, { 'if-match': match });
  const read = await server.call('GET', `/api/sessions/${id}`);
  const first = await patch('one', read.headers.get('etag')!);
  expect(first.status).toBe(200);
  const late = await patch('two', read.headers.get('etag')!);
  expect([late.status, late.json.code]).toEqual([409, 'revision_conflict']);
  expect((await server.call('GET', `/api/sessions/${id}`)).json.session.title).toBe('one');
  expect((await patch('three', first.headers.get('etag')!)).status).toBe(200);
  expect((await patch('four', '"3"')).status).toBe(200);
  expect((await patch('five', '4')).status).toBe(200);
  expect((await patch('six', '*')).status).toBe(200);
  const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => patch(`at once ${n}`, '"6"')));
  expect(answers.map((answer) => answer.status).sort()).toEqual([200, ...Array(9).fill(409)]);
});

it('[HT11] a title comes from the first words, until a person gives one, which stays', async () => {
  const server = await echoServer();
  const derived = await server.session();
  await server.ask(derived, 'Where does the wind come from?');
  expect((await idle(server, derived)).title).toBe('Where does the wind come from?');
  await server.ask(derived, 'And the rain?');
  expect((await idle(server, derived)).title).toBe('Where does the wind come from?');

  const given = await server.session({ title: 'Weather' });
  await server.ask(given, 'Where does the wind come from?');
  expect((await idle(server, given)).title).toBe('Weather');
  await server.call('PATCH', `/api/sessions/${derived}`, { title: 'Wind' });
  await server.ask(derived, 'Again?');
  expect((await idle(server, derived)).title).toBe('Wind');
  // Taken back, it is derived again.
  await server.call('PATCH', `/api/sessions/${derived}`, { title: null });
  await server.ask(derived, 'A new beginning');
  expect((await idle(server, derived)).title).toBe('A new beginning');
});

/** Every file under the home whose name or folder has the id. */
const filesOf = async (server: TestServer, id: string): Promise<string[]> =>
  (await readdir(server.home, { recursive: true })).filter((file) => file.split(path.sep).join('/').includes(id));

it('[DB3] a deleted session is gone everywhere: rows, files, search, list', async () => {
  const server = await echoServer();
  const id = await server.session({ title: 'Doomed' });
  const { admission, message } = await server.ask(id, 'unforgettable words');
  await idle(server, id);
  expect(await filesOf(server, id)).not.toEqual([]);
  const stream = await server.stream(`/api/sessions/${id}/events`);
  const list = await server.stream('/api/events');

  const gone = await server.call('DELETE', `/api/sessions/${id}`);
  expect([gone.status, gone.text]).toEqual([204, '']);
  await stream.next((event) => event.type === 'session.deleted');
  await list.next((event) => event.type === 'sessions.changed' && event.json.payload.reason === 'deleted');
  expect(await filesOf(server, id)).toEqual([]);
  const calls: [string, string, unknown?][] = [
    ['GET', ''],
    ['GET', '?messages=all'],
    ['PATCH', '', { title: 'x' }],
    ['DELETE', ''],
    ['DELETE', '?stop=1'],
    ['GET', '/messages'],
    ['GET', `/messages?after=${message.id}`],
    ['POST', '/prompts', { text: 'x' }],
    ['POST', '/prompts?wait=1', { text: 'x' }],
    ['GET', '/prompts'],
    ['DELETE', `/prompts/${admission.admission_id}`],
    ['POST', `/prompts/${admission.admission_id}/resolve`, { outcome: 'interrupted' }],
    ['POST', '/interrupt', {}],
    ['GET', '/requests'],
    ['POST', '/requests/r', { choice: 'once' }],
    ['GET', '/events'],
  ];
  for (const [method, rest, body] of calls) {
    const answer = await server.call(method, `/api/sessions/${id}${rest}`, body);
    expect([method, rest, answer.status, answer.json.code]).toEqual([method, rest, 404, 'session_not_found']);
  }
  expect((await server.call('GET', '/api/sessions?archived=1')).json).toMatchObject({ sessions: [], total: 0 });
  expect((await server.call('GET', '/api/search?q=unforgettable')).json.hits).toEqual([]);
  expect(await filesOf(server, id)).toEqual([]);
});

it('[DB3] a session with a prompt that runs or waits is not deleted, unless it is stopped first', async () => {
  const scripted = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: scripted.runner } });
  const id = await server.session();
  await server.prompt(id, 'runs');
  const turn = await scripted.turn(0);
  const refused = await server.call('DELETE', `/api/sessions/${id}`);
  expect([refused.status, refused.json.code]).toEqual([409, 'session_live']);
  await server.prompt(id, 'waits');
  expect((await server.call('DELETE', `/api/sessions/${id}?stop=0`)).status).toBe(409);
  expect(turn.signal.aborted).toBe(false);
  expect((await server.call('GET', `/api/sessions/${id}/prompts?pending=1`)).json.admissions).toHaveLength(2);

  const waiting = server.call('POST', `/api/sessions/${id}/prompts?wait=1`, { text: 'waits too' });
  await until(
    'it waits',
    async () => (await server.call('GET', `/api/sessions/${id}`)).json.session.queue_length === 2,
  );
  const deleted = await server.call('DELETE', `/api/sessions/${id}?stop=1`);
  expect(deleted.status).toBe(204);
  expect(turn.signal.aborted).toBe(true);
  expect(scripted.turns).toHaveLength(1);
  // Whoever waited hears something, and nothing breaks.
  expect((await waiting).status).toBeLessThan(500);
  expect((await server.call('GET', `/api/sessions/${id}`)).status).toBe(404);
  expect(await filesOf(server, id)).toEqual([]);
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
});

it('[HT11] projects are made, changed and deleted, and their sessions stay', async () => {
  const server = await startTestServer();
  const made = await server.call('POST', '/api/projects', { name: 'One', color: '#0000FF' });
  expect(made.status).toBe(201);
  const { project } = made.json;
  expect(project).toEqual({ project_id: expect.stringMatching(/^[0-9a-f]{12}$/), name: 'One', color: '#0000FF' });
  const two = (await server.call('POST', '/api/projects', { name: 'Two' })).json.project;
  expect(two.color).toBeNull();
  const list = async () => (await server.call('GET', '/api/projects')).json.projects;
  expect(await list()).toEqual([project, two]);

  const patch = async (body: object) =>
    (await server.call('PATCH', `/api/projects/${project.project_id}`, body)).json.project;
  expect(await patch({ name: 'Uno' })).toEqual({ ...project, name: 'Uno' });
  expect(await patch({ color: null })).toEqual({ ...project, name: 'Uno', color: null });
  expect(await patch({})).toEqual({ ...project, name: 'Uno', color: null });

  const inside = await server.session({ project_id: project.project_id });
  const outside = await server.session({ project_id: two.project_id });
  const before = (await server.call('GET', `/api/sessions/${inside}`)).json.session;
  const events = await server.stream('/api/events');
  const deleted = await server.call('DELETE', `/api/projects/${project.project_id}`);
  expect([deleted.status, deleted.text]).toEqual([204, '']);
  await events.next(
    (event) => event.json.payload.session_id === inside && event.json.payload.session.project_id === null,
  );
  const after = (await server.call('GET', `/api/sessions/${inside}`)).json.session;
  expect([after.project_id, after.revision]).toEqual([null, before.revision + 1]);
  expect((await server.call('GET', `/api/sessions/${outside}`)).json.session.project_id).toBe(two.project_id);
  expect(await list()).toEqual([two]);
  for (const method of ['DELETE', 'PATCH']) {
    const answer = await server.call(
      method,
      `/api/projects/${project.project_id}`,
      method === 'PATCH' ? {} : undefined,
    );
    expect(answer.json.code).toBe('project_not_found');
  }
});

it('[HT11][DB4] the search gives snippets of what was said, best first, and nothing of other things', async () => {
  const server = await echoServer();
  const id = await server.session({ title: 'Zoo' });
  await server.ask(id, `${'filler '.repeat(60)}the pangolin sleeps ${'filler '.repeat(60)}`);
  await server.ask(id, 'unrelated');
  const other = await server.session();
  await server.ask(other, 'pangolin pangolin pangolin');
  const search = async (q: string) => (await server.call('GET', `/api/search?q=${encodeURIComponent(q)}`)).json.hits;
  const hits = await search('pangolin');
  expect(hits).toHaveLength(4);
  expect(hits[0].session_id).toBe(other);
  const mine = hits.filter((hit: { session_id: string }) => hit.session_id === id);
  const rows = await server.messages(id);
  for (const hit of mine) {
    expect(hit.title).toBe('Zoo');
    expect(hit.snippet).toContain('pangolin');
    expect(hit.snippet.length).toBeLessThan(300);
    expect(rows.find((row) => row.id === hit.message_id)).toMatchObject({ role: hit.role, timestamp: hit.timestamp });
  }
  expect(mine.map((hit: { role: string }) => hit.role).sort()).toEqual(['assistant', 'user']);
  expect(await search('pango')).toHaveLength(4);
  expect(await search('PANGOLIN sleeps')).toHaveLength(2);
  expect(await search('pangolin nowhere')).toEqual([]);
  expect(await search('')).toEqual([]);
  expect((await server.call('GET', '/api/search?q=pangolin&limit=1')).json.hits).toHaveLength(1);
});
