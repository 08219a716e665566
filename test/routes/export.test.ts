/** Export and import: what a person keeps of a session is all of it, and comes back the same. */
import { describe, expect, it } from 'vitest';
import { writeDocument } from '../../server/core/session-document.ts';
import type { Message } from '../../server/core/terms.ts';
import { attachment, fileName } from '../../server/sessions/export-words.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { type Answer, startTestServer, type TestServer } from '../support/test-server.ts';

const NASTY = `</p><script>alert(1)</script><img src=x onerror="alert(2)"> & ' \u{1F600} \`\`\`\` end`;

/** A server whose agent thinks, calls a tool, answers with what it was given, and counts tokens. */
async function fullServer(): Promise<TestServer> {
  const { runner } = createScriptedRunner((turn) => {
    turn.say(
      { type: 'message.start', payload: {} },
      { type: 'reasoning.delta', payload: { text: 'thinking of <b>it</b>' } },
      { type: 'tool.start', payload: { tool_id: 't1', name: 'look', args: { at: NASTY }, preview: '' } },
      {
        type: 'tool.complete',
        payload: { tool_id: 't1', name: 'look', result: `saw ${NASTY}`, is_error: false, duration_s: 0.25 },
      },
      { type: 'message.start', payload: {} },
    );
    turn.text(`about ${turn.turn.input}`);
    turn.say({ type: 'usage', payload: { input_tokens: 10, output_tokens: 5, cost_usd: 0.001, context_used: 15 } });
    if (turn.turn.input.includes('fail')) {
      turn.fail({ code: 'network', message: 'No answer came.', retryable: true });
    } else turn.complete();
  });
  return startTestServer({ overrides: { runner } });
}

const exported = (server: TestServer, id: string, format = 'json'): Promise<Answer> =>
  server.call('GET', `/api/sessions/${id}/export?format=${format}`);

const imported = (server: TestServer, document: unknown): Promise<Answer> =>
  server.call('POST', '/api/sessions/import', document);

/** A document with one message, changed by the test. */
const documentWith = (message: object = {}, session: object = {}) => ({
  format: 'turnkeep.session',
  version: 1,
  session: { title: 'T', model: null, created_at: 1000, ...session },
  messages: [{ id: 'a', role: 'user', content: 'hello', timestamp: 1001, ...message }],
});

describe('JSON', () => {
  it('[ED5] exported, imported and exported again it is the same, byte for byte', async () => {
    const server = await fullServer();
    const id = await server.session({ title: 'All of it', workspace: server.home });
    await server.ask(id, NASTY);
    await server.ask(id, 'fail');
    const rows: Message[] = await server.messages(id);
    const first = await exported(server, id);
    expect([first.status, first.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(first.headers.get('content-type')).toMatch(/^application\/json/);
    expect(first.json).toMatchObject({ format: 'turnkeep.session', version: 1, session: { title: 'All of it' } });
    expect(first.json.messages).toEqual(rows);
    const answer = await imported(server, first.text);
    expect(answer.status).toBe(201);
    const copy: string = answer.json.session.session_id;
    expect(copy).not.toBe(id);
    const original = (await server.call('GET', `/api/sessions/${id}`)).json.session;
    expect(first.text).not.toContain(server.home);
    for (const field of ['title', 'model', 'created_at', 'usage', 'message_count', 'last_message_at']) {
      expect([field, answer.json.session[field]]).toEqual([field, original[field]]);
    }
    expect(await server.messages(copy)).toEqual(rows);
    expect((await exported(server, copy)).text).toBe(first.text);
    // Also on another server, and after it was started again.
    const other = await fullServer();
    const there: string = (await imported(other, first.text)).json.session.session_id;
    expect((await exported(other, there)).text).toBe(first.text);
    await other.ask(there, 'more');
    expect(await other.messages(there)).toHaveLength(rows.length + 4);
    await other.close();
    const again = await startTestServer({ home: other.home });
    expect((await exported(again, there)).json.messages.slice(0, rows.length)).toEqual(rows);
    expect((await again.call('GET', '/api/search?q=saw')).json.hits).toEqual([]);
    expect((await again.call('GET', '/api/search?q=about')).json.hits.length).toBeGreaterThan(0);
  });

  it('[ED5] has what is displayed and settled, and nothing of a running turn', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const id = await server.session();
    const empty = await exported(server, id);
    expect(empty.json.messages).toEqual([]);
    expect((await exported(server, (await imported(server, empty.text)).json.session.session_id)).text).toBe(
      empty.text,
    );
    await server.prompt(id, 'running');
    (await script.turn(0)).text('half');
    expect((await exported(server, id)).json.messages).toEqual([]);
  });

  it('[ED5] what is imported is stored as it is shown: without private fields, and well formed', async () => {
    const server = await fullServer();
    const message = { mood: 'fine', _row_id: 7, api_content: 'secret', content: 'a\ud800b\0c', status: 'complete' };
    const { json } = await imported(server, documentWith(message));
    const [row] = await server.messages(json.session.session_id);
    expect(row).toEqual({ id: 'a', role: 'user', content: 'a\ufffdb\ufffdc', timestamp: 1001, status: 'complete' });
    const first = await exported(server, json.session.session_id);
    const again = (await imported(server, first.text)).json.session.session_id;
    expect((await exported(server, again)).text).toBe(first.text);
  });

  it('[ED5][HT2] a document that is not one is refused whole, by the name of the place', async () => {
    const server = await fullServer();
    const two = documentWith();
    const rows: [unknown, number, RegExp][] = [
      [{}, 400, /format/],
      [{ ...two, format: 'other' }, 400, /format/],
      [{ ...two, version: 2 }, 400, /version/],
      [{ ...two, extra: 1 }, 400, /extra/],
      [{ ...two, messages: {} }, 400, /messages/],
      [{ ...two, session: null }, 400, /session/],
      [documentWith({}, { title: 5 }), 400, /session\.title/],
      [documentWith({}, { revision: 5 }), 400, /revision/],
      [documentWith({}, { created_at: -1 }), 400, /session\.created_at/],
      [documentWith({ role: 'root' }), 400, /messages\.0\.role/],
      [documentWith({ content: null }), 400, /messages\.0\.content/],
      [documentWith({ id: '' }), 400, /messages\.0\.id/],
      [documentWith({ timestamp: 1e300 }), 400, /messages\.0\.timestamp/],
      [documentWith({ usage: { input_tokens: 'many' } }), 400, /messages\.0\.usage/],
      [documentWith({ tool_calls: [5] }), 400, /messages\.0\.tool_calls\.0/],
      [documentWith({ error: 'x' }), 400, /messages\.0\.error/],
      [{ ...two, messages: [two.messages[0], two.messages[0]] }, 422, /messages 0 and 1/],
      [
        '{"format":"turnkeep.session","version":1,"session":{},"messages":[{"id":"a","role":"user","content":"x","timestamp":1e999}]}',
        400,
        /timestamp/,
      ],
      ['{"format":"turnkeep.session","__proto__":{}}', 400, /JSON/],
      ['not json', 400, /JSON/],
    ];
    for (const [document, status, error] of rows) {
      const answer = await imported(server, document);
      expect([document, answer.status, answer.json.error]).toEqual([document, status, expect.stringMatching(error)]);
    }
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(0);
    expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
  });

  it('[ED5] what a person may leave out may be left out', async () => {
    const server = await fullServer();
    const bare = { format: 'turnkeep.session', version: 1, session: {}, messages: [] };
    const { status, json } = await imported(server, bare);
    expect([status, json.session.title, json.session.source]).toEqual([201, null, 'import']);
    const titled = (await imported(server, documentWith())).json.session;
    expect(titled).toMatchObject({ title: 'T', created_at: 1000, last_message_at: 1001, message_count: 1 });
  });

  it('[ED5][HT2] a document over the limit is too large', async () => {
    const server = await startTestServer({ config: 'limits:\n  body_mb: 1\n' });
    const answer = await imported(server, documentWith({ content: 'x'.repeat(1_048_576) }));
    expect([answer.status, answer.json.code]).toEqual([413, 'too_large']);
  });
});

describe('for people', () => {
  it('[ED5] Markdown can be read, and what a tool said stays in its block', async () => {
    const server = await fullServer();
    const id = await server.session({ title: 'Two\u2028lines # here' });
    await server.ask(id, 'hello');
    const { text, headers } = await exported(server, id, 'md');
    expect(headers.get('content-type')).toBe('text/markdown; charset=utf-8');
    expect(text).toMatch(/^# Two lines # here\n/);
    expect(text).toMatch(/\n## You · \d{4}-\d\d-\d\d \d\d:\d\d UTC\n\nhello\n/);
    expect(text).toContain('> thinking of <b>it</b>');
    expect(text).toContain(`\`\`\`\`\`\nsaw ${NASTY}\n\`\`\`\`\``);
    expect(text).toContain('about hello');
  });

  it('[ED5][UI4] HTML stands alone: everything is text, nothing runs, nothing is fetched', async () => {
    const server = await fullServer();
    const id = await server.session({ title: NASTY });
    await server.ask(id, NASTY);
    const { text, headers } = await exported(server, id, 'html');
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-disposition')).toMatch(/^attachment; /);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; .*sandbox/);
    expect(text).toContain('http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;');
    const tags = new Set([...text.matchAll(/<\/?([a-z0-9]+)/gi)].map((match) => match[1]));
    expect([...tags].sort()).toEqual(
      ['article', 'body', 'h1', 'h2', 'head', 'html', 'meta', 'p', 'pre', 'style', 'time', 'title'].sort(),
    );
    expect(text).not.toMatch(/<[^>]*\son\w+=/i);
    expect(text).not.toMatch(/<[^>]*\s(src|href)=/i);
    expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
  });

  it('[ED5][HT3] is a download with a safe name; HEAD and refusals are as everywhere', async () => {
    const server = await fullServer();
    const id = await server.session({ title: '../Été "à" la\r\nplage;\u{1F3D6}.' });
    const { headers } = await exported(server, id);
    expect(headers.get('content-disposition')).toBe(
      `attachment; filename="Ete -a- la plage-.json"; filename*=UTF-8''%C3%89t%C3%A9%20-%C3%A0-%20la%20plage-%F0%9F%8F%96.json`,
    );
    const head = await server.call('HEAD', `/api/sessions/${id}/export`);
    expect([head.status, head.text, head.headers.get('content-disposition')]).toEqual([
      200,
      '',
      headers.get('content-disposition'),
    ]);
    expect((await exported(server, id, 'pdf')).json.code).toBe('bad_request');
    expect((await exported(server, 'nobody')).json.code).toBe('session_not_found');
  });

  it('[ED5] no title makes a name that is none', () => {
    for (const title of [
      null,
      '',
      '...',
      '../..',
      '\u202e',
      '\0',
      'CON',
      '\u{1F600}'.repeat(500),
      '\ud800',
      "a'b(c)*",
    ]) {
      const name = fileName(title, 'md');
      expect(name).toMatch(/^[^/\\\p{C}.][^/\\\p{C}]*\.md$/u);
      expect(attachment(name)).toMatch(/^attachment; filename="[ !#-[\]-~]*"; filename\*=UTF-8''[\w.~%!#$&+^`|-]+$/);
    }
  });

  it('[ED5] the document of the same rows is the same text, whatever order their fields came in', () => {
    const session = {
      title: null,
      title_source: null,
      model: null,
      created_at: 1,
      usage: { input_tokens: 1, output_tokens: 2 },
    };
    const one = { id: 'a', role: 'user', content: 'x', timestamp: 1, b: 2, a: 1 } as unknown as Message;
    const other = {
      a: 1,
      timestamp: 1,
      b: 2,
      role: 'user',
      content: 'x',
      id: 'a',
      name: undefined,
    } as unknown as Message;
    expect(writeDocument(session, [one])).toBe(writeDocument(session, [other]));
  });
});
