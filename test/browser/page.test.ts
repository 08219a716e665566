import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Locator } from 'playwright-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import { markerRow } from '../../server/core/marker.ts';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import { temporaryFolder } from '../support/home.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { createTcpRelay } from '../support/tcp-relay.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { uploaded } from '../support/uploads.ts';

const browser = createBrowser();

const box = (page: OpenPage) => page.getByLabel('Message', { exact: true });

async function send(page: OpenPage, text: string): Promise<void> {
  await box(page).fill(text);
  await box(page).press('Enter');
}

/** Waits until the page has a stream. */
const isLive = (page: OpenPage) => page.locator('.connection[data-state="live"]').waitFor();

/** What the page shows of answers, white space as one space. */
async function answers(page: OpenPage): Promise<string> {
  const texts = await page.locator('.turn.assistant .markdown').allInnerTexts();
  return texts.join(' ').replaceAll(/\s+/g, ' ').trim();
}

const prompts = (page: OpenPage) => page.locator('.turn.user .bubble').allInnerTexts();

const shows = (page: OpenPage, text: string) =>
  until(`the page shows "${text}"`, async () => (await answers(page)) === text);

/** Waits until nothing is shown live: every turn stands in rows. */
const isSettled = (page: OpenPage) =>
  until('every turn is stored', async () => {
    const live = await page.locator('.live').count();
    return live === 0 && (await page.getByRole('button', { name: 'Stop' }).isHidden());
  });

const item = (page: OpenPage, title: string): Locator => page.locator('.session', { hasText: title });

/** Whether the message box has the focus. */
const hasFocus = async (page: OpenPage) => (await page.locator('#message:focus').count()) === 1;

/** The text of an element. */
const textIn = async (where: Locator): Promise<string> => (await where.textContent()) ?? '';

/** Opens a session of the server in a page. */
const openSession = (server: { url: string }, sessionId: string) => browser.open(`${server.url}/#/s/${sessionId}`);

describe.skipIf(browserMissing !== '')(`the page ${browserMissing}`, () => {
  test('[AT5] a prompt shows what came with it, by its name, as a link', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const id = await server.session();
    const file = await uploaded(server, id, 'notes <b>.txt', 'words');
    const body = { text: 'look', attachments: [file] };
    await server.call('POST', `/api/sessions/${id}/prompts?wait=1`, body);
    const page = await openSession(server, id);
    const link = page.locator('.attached a');
    await until(
      'its name is there',
      async () => (await link.locator('.attached-name').textContent()) === 'notes _b_.txt',
    );
    const href = new URL((await link.getAttribute('href'))!, server.url).href;
    expect(await (await fetch(href)).text()).toBe('words');
  });

  test('[UI1] every event is shown exactly once, also after a reload in mid-turn', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const page = await browser.open(server.url);
    await isLive(page);
    await send(page, 'first question');
    const turn = await script.turn(0);
    turn.say({ type: 'message.start', payload: {} }, { type: 'reasoning.delta', payload: { text: 'hm, ' } });
    turn.say({ type: 'reasoning.delta', payload: { text: 'let me see' } });
    turn.text('one ');
    turn.text('two ');
    await shows(page, 'one two');
    await page.reload();
    await shows(page, 'one two');
    expect(await prompts(page)).toEqual(['first question']);
    turn.text('three ');
    await shows(page, 'one two three');
    const call = { tool_id: 't1', name: 'look', args: { at: 'that' }, preview: 'that' };
    turn.say({ type: 'tool.start', payload: call });
    await page.locator('.tool[data-status="running"]').waitFor();
    await page.reload();
    await page.locator('.tool[data-status="running"]').waitFor();
    const result = { tool_id: 't1', name: 'look', result: 'it is there', is_error: false, duration_s: 0.5 };
    turn.say({ type: 'tool.complete', payload: result });
    await page.locator('.tool[data-status="done"]').waitFor();
    turn.say({ type: 'message.start', payload: {} });
    turn.text('four');
    await shows(page, 'one two three four');
    await page.locator('.tool > summary').click();
    turn.complete();
    await isSettled(page);
    for (const when of ['at the end', 'after a reload']) {
      expect(await answers(page), when).toBe('one two three four');
      expect(await prompts(page), when).toEqual(['first question']);
      expect(await page.locator('.card.tool').count(), when).toBe(1);
      expect(await page.locator('.card.reasoning').count(), when).toBe(1);
      if (when === 'at the end') {
        expect(await textIn(page.locator('.tool .card-body'))).toContain('it is there');
        await page.reload();
        await page.locator('.turn-foot').last().waitFor();
      }
    }
    await page.locator('.reasoning > summary').click();
    expect(await textIn(page.locator('.reasoning-text'))).toBe('hm, let me see');
    expect(page.problems).toEqual([]);
  });

  test('[UI1] prompts that wait are shown, begin in order, and can be cancelled', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const id = await server.session();
    const page = await openSession(server, id);
    await isLive(page);
    await send(page, 'p1');
    (await script.turn(0)).text('a1');
    await send(page, 'p2');
    await page.locator('.chip').nth(0).waitFor();
    await send(page, 'p3');
    await page.locator('.chip').nth(1).waitFor();
    expect(await page.locator('.chip-text').allInnerTexts()).toEqual(['p2', 'p3']);
    await page.locator('.chip', { hasText: 'p2' }).getByRole('button', { name: 'Cancel' }).click();
    await until('one waits', async () => (await page.locator('.chip').count()) === 1);
    (await script.turn(0)).complete();
    const second = await script.turn(1);
    expect(second.turn.input).toBe('p3');
    second.text('a3');
    await shows(page, 'a1 a3');
    expect(await prompts(page)).toEqual(['p1', 'p3']);
    expect(await page.locator('.chip').count()).toBe(0);
    second.complete();
    await isSettled(page);
    expect(await answers(page)).toBe('a1 a3');
    expect(await prompts(page)).toEqual(['p1', 'p3']);
  });

  test('[UI1] a question of the agent is answered once, and gone everywhere', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const id = await server.session();
    const [page, other] = await Promise.all([openSession(server, id), openSession(server, id)]);
    await server.prompt(id, 'do it');
    const turn = await script.turn(0);
    turn.text('asking');
    const choices: ('once' | 'deny')[] = ['once', 'deny'];
    const answer = turn.turn.ask({ kind: 'approval', tool_name: 'rm', command: 'rm x', description: '', choices });
    await other.locator('.request').waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Allow once' }).click();
    expect(await answer).toEqual({ kind: 'choice', choice: 'once' });
    for (const one of [page, other]) await one.locator('.request').waitFor({ state: 'detached' });
    turn.complete();
    await isSettled(other);
  });

  test('[UI1] switching sessions while they stream shows each its own', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const a = await server.session({ title: 'session a' });
    const b = await server.session({ title: 'session b' });
    await server.prompt(a, 'pa');
    await server.prompt(b, 'pb');
    const turns = [await script.turn(0), await script.turn(1)];
    const [ta, tb] = turns[0]!.turn.sessionId === a ? turns : turns.reverse();
    const page = await openSession(server, a);
    const said = { a: '', b: '' };
    for (let round = 1; round <= 6; round += 1) {
      ta!.text(`a${round} `);
      tb!.text(`b${round} `);
      said.a += `a${round} `;
      said.b += `b${round} `;
      const there = round % 2 === 0 ? 'a' : 'b';
      await item(page, `session ${there}`).locator('a').click();
      ta!.text('. ');
      tb!.text('. ');
      said.a += '. ';
      said.b += '. ';
      await shows(page, said[there].trim());
    }
    ta!.complete();
    await isSettled(page);
    expect(await answers(page)).toBe(said.a.trim());
  });

  test('[UI2] a text stays until the server has accepted it, and is accepted once', async () => {
    const script = createEchoRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const id = await server.session();
    const page = await openSession(server, id);
    await isLive(page);
    const keys: string[] = [];
    const alert = page.locator('#composer-error');

    // It never arrives.
    await page.route('**/prompts', async (route) => {
      keys.push(route.request().postDataJSON().request_id);
      await route.abort();
    });
    await send(page, 'do not lose me');
    await until('the error is told', async () => (await textIn(alert)).includes('could not be reached'));
    expect(await box(page).inputValue()).toBe('do not lose me');
    await page.reload();
    await until('the text is back', async () => (await box(page).inputValue()) === 'do not lose me');

    // It arrives, but its answer is lost, and that it has arrived is not heard.
    await page.unroute('**/prompts');
    await page.route('**/prompts?*', (route) => route.abort());
    await page.route('**/prompts', async (route) => {
      keys.push(route.request().postDataJSON().request_id);
      await route.fetch();
      await route.abort();
    });
    await box(page).press('Enter');
    await until('it was tried again', async () => keys.length === 2 && (await textIn(alert)) !== '');
    expect(await box(page).inputValue()).toBe('do not lose me');

    // The next try is told that it was accepted already.
    await page.unroute('**/prompts');
    await box(page).press('Enter');
    await until('the box is empty', async () => (await box(page).inputValue()) === '');
    await shows(page, 'echo: do not lose me');
    expect(new Set(keys).size).toBe(1);
    expect(await prompts(page)).toEqual(['do not lose me']);
    expect(script.turns).toHaveLength(1);
  });

  test('[UI2] a refusal is told in words, and the text of each conversation stays in its box', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ config: 'queue: {max: 1}\n', overrides: { runner: script.runner } });
    const a = await server.session({ title: 'busy one' });
    await server.session({ title: 'other one' });
    const page = await openSession(server, a);
    await isLive(page);
    await send(page, 'p1');
    await script.turn(0);
    await send(page, 'p2');
    await page.locator('.chip').waitFor();
    await send(page, 'p3\nwith two lines');
    await until('the refusal is told', async () =>
      (await textIn(page.locator('#composer-error'))).includes('queue.max'),
    );
    await item(page, 'other one').locator('a').click();
    await until('the other box is empty', async () => (await box(page).inputValue()) === '');
    expect(await textIn(page.locator('#composer-error'))).toBe('');
    await box(page).fill('a draft');
    await item(page, 'busy one').locator('a').click();
    await until('the text is there', async () => (await box(page).inputValue()) === 'p3\nwith two lines');
    // Another device finds the draft on the server.
    const other = await browser.open(server.url);
    const saved = () => server.call('GET', `/api/sessions/${a}`);
    await until('the draft is saved', async () => (await saved()).json.session.draft === 'p3\nwith two lines');
    await item(other, 'busy one').locator('a').click();
    await until('the draft is offered', async () => (await box(other).inputValue()) === 'p3\nwith two lines');
  });

  test('[UI2] the first message of a new conversation is not lost between its two requests', async () => {
    const script = createEchoRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const page = await browser.open(server.url);
    await isLive(page);
    await page.route('**/prompts', (route) => route.abort());
    await send(page, 'hello there');
    await until('the error is told', async () => (await textIn(page.locator('#composer-error'))) !== '');
    expect(await box(page).inputValue()).toBe('hello there');
    await page.unroute('**/prompts');
    await box(page).press('Enter');
    await shows(page, 'echo: hello there');
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(1);
  });

  test('[UI3] stop keeps what was said, once', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const page = await openSession(server, await server.session());
    await isLive(page);
    await send(page, 'talk');
    (await script.turn(0)).text('half an ans');
    await shows(page, 'half an ans');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.locator('.note-interrupted').waitFor();
    await isSettled(page);
    const look = async () => {
      expect(await answers(page)).toBe('half an ans');
      expect(await page.locator('.note').allInnerTexts()).toEqual([expect.stringContaining('Response interrupted')]);
    };
    await look();
    await page.reload();
    await page.locator('.note').waitFor();
    await look();
    await send(page, 'and now?');
    (await script.turn(1)).text('go on');
    await shows(page, 'half an ans go on');
  });

  test('[UI3] a failed turn says why, and its prompt can be taken up again', async () => {
    const script = createScriptedRunner((turn) => {
      turn.text('so far');
      turn.fail({ code: 'provider_error', message: 'The provider is on holiday.', retryable: true });
    });
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const page = await openSession(server, await server.session());
    await isLive(page);
    await send(page, 'please');
    await page.locator('[data-row] .note-error').waitFor();
    expect(await textIn(page.locator('.note-error'))).toContain('The provider is on holiday.');
    expect(await answers(page)).toBe('so far');
    await page.locator('.note').getByRole('button', { name: 'Edit and send again' }).click();
    expect(await page.getByLabel('Edit your message').locator('textarea').inputValue()).toBe('please');
  });

  test('[UI3] a recovered turn is explained by one note', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const id = await server.session();
    const page = await browser.open(server.url);
    await page.route('**/messages?*', (route) => {
      const run_id = 'run_1';
      const said = { id: 'run_1.1', role: 'assistant', content: 'half', timestamp: 2, run_id, status: 'partial' };
      const messages = [
        { id: 'run_1.0', role: 'user', content: 'talk', timestamp: 1, run_id },
        { ...said, recovered: true },
        markerRow(run_id, 3, 'process_restart', 'recovered'),
      ];
      return route.fulfill({ json: { messages, has_more: false, revision: 3 } });
    });
    await page.goto(`${server.url}/#/s/${id}`);
    await page.locator('.note').first().waitFor();
    expect(await page.locator('.note').allInnerTexts()).toEqual([expect.stringContaining('Response interrupted')]);
    expect(await page.locator('.note').getByRole('button').allInnerTexts()).toEqual([
      'Try again',
      'Edit and send again',
    ]);
  });

  test('[UI4] nothing that a model writes becomes active or looks like the page', async () => {
    const evil = [
      '<script>window.pwned = 1</script>',
      '<img src="x" onerror="window.pwned = 2">',
      '<a href="javascript:window.pwned=3">click</a> [md](javascript:window.pwned=4) [rel](api/sessions) [ok](https://example.com)',
      '<style>body { display: none }</style><p style="position:fixed" class="note note-error" id="message">dressed up</p>',
      '<form action="/api/auth/logout"><input name="token"><button>Log in</button></form>',
      '<iframe src="/"></iframe><svg onload="window.pwned=5"><script>window.pwned=6</script></svg><math href="javascript:1"></math>',
      '<details open ontoggle="window.pwned=7"><summary>x</summary></details>',
      '```html\n<img src=x onerror="window.pwned=8">\n```',
      '![i](http://127.0.0.1:1/x.png) ![s](data:image/svg+xml;base64,PHN2Zy8+)',
    ].join('\n\n');
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const page = await openSession(server, await server.session());
    await isLive(page);
    await send(page, `<img src=x onerror="window.pwned = 0">`);
    const turn = await script.turn(0);
    turn.say({ type: 'reasoning.delta', payload: { text: '<img src=x onerror="window.pwned=9">' } });
    for (const piece of evil.match(/[\s\S]{1,7}/g) ?? []) turn.text(piece);
    await page.locator('.live .code').waitFor();
    await page.locator('.live .reasoning > summary').click();
    const look = async (where: string) => {
      const found = await page
        .locator(where)
        .evaluateAll((parts) =>
          parts.flatMap((part) =>
            [...part.querySelectorAll('*')].flatMap((node) => [
              ...(/^(SCRIPT|STYLE|FORM|INPUT|IFRAME|SVG|MATH)$/i.test(node.nodeName) && !node.classList.contains('icon')
                ? [node.nodeName]
                : []),
              ...[...node.attributes]
                .filter(({ name, value }) => /^(on|style|id$)/.test(name) || /javascript:/i.test(value))
                .map(({ name, value }) => `${name}=${value}`),
              ...(node.matches('a[href]:not([rel="noopener noreferrer"][target="_blank"])') ? ['a link'] : []),
              ...(node.classList.contains('note') ? ['a note'] : []),
            ]),
          ),
        );
      expect(found).toEqual([]);
      expect(
        await page.locator(`${where} a[href]`).evaluateAll((all) => all.map((a) => a.getAttribute('href'))),
      ).toEqual(['https://example.com', 'http://127.0.0.1:1/x.png']);
    };
    await look('.live .markdown');
    turn.complete();
    await isSettled(page);
    await look('.turn .markdown');
    expect(await textIn(page.locator('.code code'))).toContain('<img src=x onerror="window.pwned=8">');
    expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBeUndefined();
    // The sanitiser's own inert document is also under the policy, and Chromium reports what it holds; nothing else may be.
    expect(page.problems.filter((problem) => !problem.includes('Content Security Policy'))).toEqual([]);
  });

  test('[UI4] Markdown keeps its meaning: tables, lists, tasks, code, links and pictures', async () => {
    const text = [
      '| a | b |\n|---|--:|\n| 1 | 2 |',
      '3. three\n4. four',
      '- [x] done\n- [ ] open',
      '```ts\nconst one = 1;\n```',
      '![dot](data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=)',
    ].join('\n\n');
    const script = createScriptedRunner((turn) => {
      turn.text(text);
      turn.complete();
    });
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const id = await server.session();
    await server.ask(id, 'all of it');
    const page = await openSession(server, id);
    const body = page.locator('[data-row] .markdown');
    await body.waitFor();
    expect(await body.locator('td').nth(1).getAttribute('align')).toBe('right');
    expect(await body.locator('ol').getAttribute('start')).toBe('3');
    expect(await body.locator('input[type="checkbox"][disabled]').count()).toBe(2);
    expect(await body.locator('input[checked]').count()).toBe(1);
    expect(await body.locator('.hljs-keyword').allInnerTexts()).toEqual(['const']);
    expect(await body.locator('img').evaluate((image) => (image as unknown as { complete: boolean }).complete)).toBe(
      true,
    );
    await body.getByRole('button', { name: 'Copy' }).waitFor();
  });

  test('[UI4] a picture from elsewhere is a link: nothing is asked for it, whatever its address carries', async () => {
    const asked: string[] = [];
    const elsewhere = http.createServer((request, response) => {
      asked.push(request.url ?? '');
      response.end();
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void elsewhere.close());
    const host = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const page = await openSession(server, await server.session());
    const wanted: string[] = [];
    page.on('request', (request) => wanted.push(request.url()));
    await isLive(page);
    await send(page, 'draw');
    const turn = await script.turn(0);
    const pixel = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=';
    const pieces = [
      `![a chart](${host}/a.png?secret=1)`,
      `![](${host}/b.png?secret=2)`,
      '![c](https://pictures.invalid/c.png?secret=3)',
      `<img src="${host}/d.png" srcset="${host}/e.png 2x" alt="d">`,
      `[![inside](${host}/f.png)](https://example.com)`,
      `![vector](data:image/svg+xml;base64,PHN2Zy8+) ![near](api/sessions?secret=4) ![pixel](${pixel})`,
      `<picture><source srcset="${host}/g.png"><img src="//127.0.0.1/h.png" alt="h"></picture>`,
      `<video poster="${host}/i.png" src="${host}/j.mp4"></video><p background="${host}/k.png" style="background: url(${host}/l.png)">end</p>`,
    ];
    for (const piece of pieces.join('\n\n').match(/[\s\S]{1,9}/g) ?? []) turn.text(piece);
    const links = [
      ['a chart', `${host}/a.png?secret=1`],
      [`${host}/b.png?secret=2`, `${host}/b.png?secret=2`],
      ['c', 'https://pictures.invalid/c.png?secret=3'],
      ['d', `${host}/d.png`],
      ['inside', 'https://example.com'],
    ];
    const look = async (where: string) => {
      await page.locator(where, { hasText: 'end' }).waitFor();
      expect(
        await page.locator(`${where} a`).evaluateAll((all) => all.map((a) => [a.textContent, a.getAttribute('href')])),
      ).toEqual(links);
      const sources = await page
        .locator(`${where} img`)
        .evaluateAll((all) => all.map((img) => img.getAttribute('src')));
      expect(sources.filter((source) => source !== null)).toEqual([pixel]);
    };
    await look('.live .markdown');
    turn.complete();
    await isSettled(page);
    await look('.turn .markdown');
    expect(wanted.filter((url) => !url.startsWith(server.url) && url !== pixel)).toEqual([]);
    expect(wanted.filter((url) => url.includes('secret'))).toEqual([]);
    expect(asked).toEqual([]);
    // And should a picture ever get through, the policy of the page stops it.
    const { headers } = await server.call('GET', '/');
    expect(headers.get('content-security-policy')).toMatch(/(^|;)img-src 'self' data:(;|$)/);
  });

  test('[UI5] a lost stream is told as such, and mended without a reload, nothing lost or repeated', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const relay = await createTcpRelay(server.url);
    const page = await openSession(relay, await server.session());
    await isLive(page);
    await send(page, 'talk');
    const turn = await script.turn(0);
    turn.text('before ');
    await shows(page, 'before');
    relay.cut();
    const banner = page.locator('#banner');
    await until('it is told', async () => (await textIn(banner)).includes('Connection interrupted'));
    expect(await textIn(page.locator('.connection'))).toBe('reconnecting…');
    // The turn itself was not interrupted, and nothing says so.
    expect(await page.locator('.note').count()).toBe(0);
    turn.text('meanwhile ');
    const asked: string[] = [];
    page.on('request', (request) => request.url().includes('/api/events') && asked.push(request.url()));
    relay.mend();
    await isLive(page);
    expect(decodeURIComponent(asked.at(-1) ?? '')).toContain(`@${turn.turn.runId}:`);
    await shows(page, 'before meanwhile');
    expect(await banner.isHidden()).toBe(true);
    relay.cut();
    await banner.waitFor();
    turn.text('end');
    turn.complete();
    await until('the turn has ended', async () => (await server.messages(turn.turn.sessionId)).length === 2);
    relay.mend();
    // It may come back by itself just before it is pressed.
    const caughtUp = shows(page, 'before meanwhile end');
    await Promise.any([page.getByRole('button', { name: 'Try now' }).click(), caughtUp]);
    await caughtUp;
    await isSettled(page);
    expect(await answers(page)).toBe('before meanwhile end');
    expect(await page.locator('.note').count()).toBe(0);
  });

  test('[UI5] a server that stops and comes back is found again, with the turn it ended', async () => {
    const home = await temporaryFolder();
    const script = createScriptedRunner();
    const first = await startTestServer({ home, overrides: { runner: script.runner } });
    const relay = await createTcpRelay(first.url);
    const page = await openSession(relay, await first.session());
    await isLive(page);
    await send(page, 'talk');
    (await script.turn(0)).text('said before the stop');
    await shows(page, 'said before the stop');
    await first.close();
    await page.locator('#banner').waitFor();
    await box(page).fill('typed while away');
    const second = await startTestServer({ home, overrides: { runner: createEchoRunner().runner } });
    relay.mend(second.url);
    await isLive(page);
    await isSettled(page);
    await page.locator('.note-interrupted').waitFor();
    expect(await answers(page)).toBe('said before the stop');
    expect(await page.locator('.note').allInnerTexts()).toEqual([expect.stringContaining('Response interrupted')]);
    expect(await box(page).inputValue()).toBe('typed while away');
    await box(page).press('Enter');
    await shows(page, 'said before the stop echo: typed while away');
  });

  test('[UI5] what says that the server cannot be reached goes when it can', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const relay = await createTcpRelay(server.url);
    const page = await openSession(relay, await server.session());
    await isLive(page);
    relay.cut();
    await page.locator('#banner').waitFor();
    expect(await textIn(page.locator('#banner > span'))).toMatch(
      /^Connection interrupted\. Reconnecting( in \d+ s\.|…)$/,
    );
    await send(page, 'keep this');
    const error = page.locator('#composer-error');
    await until('the error is told', async () => (await textIn(error)).includes('could not be reached'));
    relay.mend();
    await isLive(page);
    await until('the error is gone', async () => (await textIn(error)) === '');
    expect(await box(page).inputValue()).toBe('keep this');
  });

  test('[UI6] an id that never was is said to be empty, and leads to a new conversation', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const page = await openSession(server, 'never_was');
    await page.getByText('There is no conversation here.').waitFor();
    expect(await box(page).isHidden()).toBe(true);
    await page.locator('.gone').getByRole('button', { name: 'New conversation' }).click();
    await until('the box has the focus', () => hasFocus(page));
    expect(await box(page).isVisible()).toBe(true);
  });

  test('[UI6] the focus is in the message box at first, after a stop and after a delete', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const touch = await browser.open(server.url, { hasTouch: true, isMobile: true });
    await isLive(touch);
    expect(await hasFocus(touch)).toBe(false);
    await server.session({ title: 'to stop' });
    const page = await browser.open(server.url);
    await isLive(page);
    expect(await hasFocus(page)).toBe(true);
    await item(page, 'to stop').locator('a').click();
    await isLive(page);
    for (const turn of [0, 1]) {
      await send(page, `talk ${turn}`);
      (await script.turn(turn)).text('half');
      await page.locator('.live .markdown').waitFor();
      if (turn === 1) break;
      await page.getByRole('button', { name: 'Stop' }).click();
      await isSettled(page);
      expect(await hasFocus(page)).toBe(true);
    }
    // The messages of what is being deleted are not asked for.
    await item(page, 'to stop').locator('a').press('Delete');
    await page.getByRole('dialog').getByRole('button', { name: 'Stop and delete' }).click();
    await item(page, 'to stop').waitFor({ state: 'detached' });
    await until('the box has the focus', () => hasFocus(page));
    expect(page.problems).toEqual([]);
  });

  test('[UI6] a long conversation begins with its end, and shows earlier messages when asked', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const id = await server.session();
    for (let number = 1; number <= 60; number += 1) await server.ask(id, `question ${number}`);
    const page = await openSession(server, id);
    await until('the end is there', async () => (await prompts(page)).at(-1) === 'question 60');
    expect((await prompts(page)).length).toBeLessThan(60);
    await page.locator('#scroll').hover();
    for (const look of [1, 2, 3]) {
      await page.mouse.wheel(0, -20_000);
      await until(`more is there, ${look}`, async () => (await prompts(page)).length > Math.min(59, look * 20));
    }
    await until('all is there', async () => (await prompts(page)).length === 60);
    expect((await prompts(page))[0]).toBe('question 1');
    await send(page, 'one more');
    await until('it is answered', async () => (await answers(page)).endsWith('echo: one more'));
    await isSettled(page);
    expect(await prompts(page)).toHaveLength(61);
  });

  test('[UI7] the page works below a path and with a token', async () => {
    const server = await startTestServer({
      env: { TURNKEEP_TOKEN: 'correct horse battery staple' },
      flags: { basePath: '/deep/x' },
      overrides: { runner: createEchoRunner().runner },
    });
    const page = await browser.open(`${server.url}/`);
    await page.getByLabel('Access token').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('That is not a token of this server').waitFor();
    await page.getByLabel('Access token').fill('correct horse battery staple');
    await page.getByRole('button', { name: 'Log in' }).click();
    await isLive(page);
    await send(page, 'hello');
    await shows(page, 'echo: hello');
    await page.reload();
    await shows(page, 'echo: hello');
    expect(new URL(page.url()).pathname).toBe('/deep/x/');
    // The login ends elsewhere: the page asks again, and keeps what was typed.
    await box(page).fill('not yet sent');
    await page.context().clearCookies();
    await box(page).press('Enter');
    await page.getByLabel('Access token').fill('correct horse battery staple');
    await page.getByRole('button', { name: 'Log in' }).click();
    await isLive(page);
    expect(await box(page).inputValue()).toBe('not yet sent');
    await box(page).press('Enter');
    await until('it is answered', async () => (await answers(page)).endsWith('echo: not yet sent'));
  });
});
