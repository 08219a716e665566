/** What a person sees of the connection, of questions and of ends of turns, whatever page, tab or device they look at. */
import { describe, expect, test } from 'vitest';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import { temporaryFolder } from '../support/home.ts';
import { answersOn, closeSettings, createPageBench, isStored, promptsOn } from '../support/page-bench.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { createTcpRelay } from '../support/tcp-relay.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const bench = createPageBench();
const browser = createBrowser();

const box = (page: OpenPage) => page.getByLabel('Message', { exact: true });
const pill = (page: OpenPage, state: string) => page.locator(`.connection[data-state="${state}"]`).waitFor();
const banner = async (page: OpenPage) => (await page.locator('#banner').textContent()) ?? '';
const errorIn = async (page: OpenPage) => (await page.locator('#composer-error').textContent()) ?? '';

async function send(page: OpenPage, text: string): Promise<void> {
  await box(page).fill(text);
  await box(page).press('Enter');
}

/** Puts the page out of sight, or back: no browser without a screen does it by itself. */
const show = (page: OpenPage, isSeen: boolean) =>
  page.evaluate(`{
    Object.defineProperty(document, 'visibilityState', { value: '${isSeen ? 'visible' : 'hidden'}', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }`);

/** Notifications as a person would see them, taken down in `told`; `answers` is what the browser's question gives. */
const SYSTEM = (answers: string) => `
  globalThis.told = [];
  globalThis.Notification = class {
    static permission = '${answers === 'granted' ? 'default' : answers}';
    static async requestPermission() {
      globalThis.told.push('asked');
      return (this.permission = '${answers}');
    }
    constructor(title, { body }) {
      globalThis.told.push(title + ': ' + body);
      globalThis.last = this;
    }
    close() {}
  };`;
const told = (page: OpenPage): Promise<string[]> => page.evaluate('globalThis.told');

/** A page whose system shows notifications. */
async function withNotifications(id: string, answers = 'granted'): Promise<OpenPage> {
  const page = await bench.open(id);
  await page.addInitScript(SYSTEM(answers));
  await page.reload();
  await pill(page, 'live');
  return page;
}

/** Another tab of the same browser, live on a session. */
async function otherTab(page: OpenPage, id: string): Promise<OpenPage> {
  const tab = (await page.context().newPage()) as OpenPage;
  await tab.addInitScript(SYSTEM('granted'));
  await tab.addInitScript("Notification.permission = 'granted'");
  await tab.goto(`${bench.server().url}/#/s/${id}`);
  await pill(tab, 'live');
  return tab;
}

describe.skipIf(browserMissing !== '')(`live everywhere ${browserMissing}`, () => {
  test('[UI5] a device without a network says so, keeps the text, and goes on by itself', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    await send(page, 'talk');
    const turn = await bench.turn(id);
    turn.text('before ');
    await until('it is shown', async () => (await answersOn(page)).join() === 'before');
    await page.context().setOffline(true);
    await pill(page, 'offline');
    expect(await banner(page)).toContain('This device is offline.');
    turn.text('and after');
    await send(page, 'written on the train');
    await until('it is told', async () => (await errorIn(page)).includes('could not be reached'));
    expect(await box(page).inputValue()).toBe('written on the train');
    expect(await page.locator('.note').count()).toBe(0);
    await page.context().setOffline(false);
    await pill(page, 'live');
    await until('nothing is missing', async () => (await answersOn(page)).join() === 'before and after');
    await until('the error is gone', async () => (await errorIn(page)) === '');
    await box(page).press('Enter');
    await until('it waits', async () => (await page.locator('.chip').count()) === 1);
    turn.complete();
    (await bench.turn(id, 1)).complete();
    await isStored(page);
    expect(await promptsOn(page)).toEqual(['talk', 'written on the train']);
  });

  test('[UI2] what had arrived although its answer was lost leaves the box when the connection is back', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const relay = await createTcpRelay(server.url);
    const page = await browser.open(`${relay.url}/#/s/${await server.session()}`);
    await pill(page, 'live');
    await page.route('**/prompts', async (route) => {
      await route.fetch();
      relay.cut();
      await route.abort();
    });
    await send(page, 'once and no more');
    await until('it is told', async () => (await errorIn(page)).includes('could not be reached'));
    await page.unroute('**/prompts');
    relay.mend();
    await pill(page, 'live');
    await until('the box is empty', async () => (await box(page).inputValue()) === '');
    await until('it is answered', async () => (await answersOn(page)).join() === 'echo: once and no more');
    expect(await promptsOn(page)).toEqual(['once and no more']);
  });

  test('[UI2] what had arrived leaves the box while the connection stands, or with a new one of another network', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const page = await browser.open(`${server.url}/#/s/${await server.session()}`);
    await pill(page, 'live');
    await page.route('**/prompts', async (route) => {
      await route.fetch();
      await route.abort();
    });
    await send(page, 'first');
    await until('the box is empty', async () => (await box(page).inputValue()) === '');
    await page.route('**/prompts?*', (route) => route.abort());
    await send(page, 'second');
    await until('it is told', async () => (await errorIn(page)).includes('could not be reached'));
    await page.unroute('**/prompts?*');
    await page.evaluate("window.dispatchEvent(new Event('online'))");
    await until('the box is empty', async () => (await box(page).inputValue()) === '');
    // The box may hear of it before the conversation does.
    await until('both are shown', async () => (await promptsOn(page)).join() === 'first,second');
  });

  test('[UI5] an event that the page cannot bear is asked for less and less often', async () => {
    const page = await bench.open('');
    const waits: number[] = await page.evaluate(`(async () => {
      const { createStream } = await import('./stream.js');
      const waits = [];
      window.fetch = async () => new Response('data: fine\\n\\ndata: bad\\n\\n');
      window.reportError = () => {};
      return new Promise((done) => {
        const stream = createStream({
          address: () => '',
          onFrame({ data }) {
            if (data === 'bad') throw new Error('a bug');
          },
          onState({ kind, at }) {
            if (kind !== 'reconnecting') return;
            waits.push(at - Date.now());
            if (waits.length === 5) {
              stream.stop();
              done(waits);
            } else setTimeout(stream.retryNow);
          },
        });
        stream.restart();
      });
    })()`);
    expect(waits.at(-1)).toBeGreaterThan(4000);
  });

  test('[UI2] a text that is too long, and a server that takes none now, leave it where it is and say why', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    const long = 'ü'.repeat(600_000);
    await send(page, long);
    await until('it is told', async () => (await errorIn(page)).includes('Your text is still here'));
    expect((await box(page).inputValue()).length).toBe(long.length);
    const body = { error: 'The disk is full.', code: 'disk_full' };
    const refusal = { status: 503, headers: { 'retry-after': '30' }, json: body };
    await page.route('**/prompts', (route) => route.fulfill(refusal));
    await send(page, 'short');
    await until('it is told', async () => (await errorIn(page)).includes('Try again in 30 s.'));
    expect(await errorIn(page)).toContain('The disk is full. Your text is still here.');
    expect(await box(page).inputValue()).toBe('short');
    await page.unroute('**/prompts');
    await box(page).press('Enter');
    (await bench.turn(id)).complete();
    await until('the error is gone', async () => (await errorIn(page)) === '');
  });

  test('[UI5] a server that shuts down, and one that was started anew, are told as such', async () => {
    const home = await temporaryFolder();
    const first = await startTestServer({ home, overrides: { runner: createEchoRunner().runner } });
    const relay = await createTcpRelay(first.url);
    const page = await browser.open(relay.url);
    await pill(page, 'live');
    expect(await page.locator('#banner').isHidden()).toBe(true);
    relay.cut();
    await until('it is told', async () => (await banner(page)).includes('Connection interrupted'));
    relay.mend();
    await pill(page, 'live');
    // The same server: nothing was started anew.
    expect(await page.locator('#banner').isHidden()).toBe(true);
    const draining = { error: 'The server is shutting down.', code: 'draining' };
    await page.route('**/api/events*', (route) => route.fulfill({ status: 503, json: draining }));
    relay.cut();
    await page.locator('#banner').waitFor();
    relay.mend();
    await until('it is told', async () => (await banner(page)).includes('The server is shutting down.'));
    await first.close();
    const second = await startTestServer({ home, overrides: { runner: createEchoRunner().runner } });
    await page.unroute('**/api/events*');
    relay.mend(second.url);
    await pill(page, 'live');
    await until('it is told', async () => (await banner(page)).includes('The server was restarted.'));
    await send(page, 'hello');
    await until('it is answered', async () => (await answersOn(page)).join() === 'echo: hello');
  });

  test('[UI35] a page out of sight gives its connection up, and has everything when it is seen again', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    await send(page, 'talk');
    const turn = await bench.turn(id);
    turn.text('one ');
    await until('it is shown', async () => (await answersOn(page)).join() === 'one');
    await page.clock.install();
    await show(page, false);
    await page.clock.runFor(31_000);
    await pill(page, 'resting');
    turn.text('two ');
    turn.text('three');
    await show(page, true);
    await pill(page, 'live');
    await until('nothing is missing', async () => (await answersOn(page)).join() === 'one two three');
    turn.complete();
    await isStored(page);
  });

  test('[UI36] an open question is in the list and in the title of every page, and gone everywhere when answered', async () => {
    const id = await bench.session({ title: 'asks' });
    const other = await bench.session({ title: 'another' });
    const [page, elsewhere] = [await bench.open(id), await bench.open(other)];
    await bench.server().prompt(id, 'do it');
    const turn = await bench.turn(id);
    const choices: ('once' | 'deny')[] = ['once', 'deny'];
    const answer = turn.turn.ask({ kind: 'approval', tool_name: 'rm', command: 'rm x', description: '', choices });
    for (const one of [page, elsewhere]) {
      await until('the title says so', async () => (await one.title()).startsWith('(1) '));
      await one.locator('.session', { hasText: 'asks' }).locator('.badge').waitFor();
    }
    expect(await elsewhere.locator('.request').count()).toBe(0);
    await elsewhere.locator('.session', { hasText: 'asks' }).locator('a').click();
    await elsewhere.getByRole('button', { name: 'Deny' }).click();
    expect(await answer).toEqual({ kind: 'choice', choice: 'deny' });
    await page.locator('.request').waitFor({ state: 'detached' });
    for (const one of [page, elsewhere]) {
      await until('the title says nothing', async () => !(await one.title()).startsWith('('));
    }
    turn.complete();
  });

  test('[UI36] a question that is out of sight is pointed to from the message box', async () => {
    const id = await bench.session();
    await bench.answered(id, 'hello', Array.from({ length: 80 }, (_, n) => `line ${n}`).join('\n\n'));
    const page = await bench.open(id);
    await bench.server().prompt(id, 'do it');
    const turn = await bench.turn(id, 1);
    const choices: ('once' | 'deny')[] = ['once', 'deny'];
    const answer = turn.turn.ask({ kind: 'approval', tool_name: 'rm', command: 'rm x', description: '', choices });
    await page.locator('.request').waitFor();
    await page.locator('#scroll').evaluate((scroll) => scroll.scrollTo(0, 0));
    await page.getByRole('button', { name: 'Show the question' }).click();
    await page.keyboard.press('Enter');
    expect(await answer).toEqual({ kind: 'choice', choice: 'once' });
    turn.complete();
    await isStored(page);
  });

  test('[UI36] a question is pointed to also where its end of the conversation is not here', async () => {
    const run = (turn: number) => turn.toString(16).padStart(32, '0');
    const messages = Array.from({ length: 300 }, (_, turn) => [
      { id: `${run(turn)}.0`, role: 'user', content: `question ${turn}`, timestamp: turn, run_id: run(turn) },
      { id: `${run(turn)}.1`, role: 'assistant', content: `answer ${turn}`, timestamp: turn, run_id: run(turn) },
    ]).flat();
    const document = { format: 'turnkeep.session', version: 1, session: { title: 'long' }, messages };
    const id = (await bench.server().call('POST', '/api/sessions/import', document)).json.session.session_id;
    const page = await bench.open(`${id}/${run(3)}.0`);
    await page.locator('.turns.past').waitFor();
    await bench.server().prompt(id, 'do it');
    const turn = await bench.turn(id);
    const choices: ('once' | 'deny')[] = ['once', 'deny'];
    const answer = turn.turn.ask({ kind: 'approval', tool_name: 'rm', command: 'rm x', description: '', choices });
    await page.getByRole('button', { name: 'Show the question' }).click();
    await page.locator('.request button:focus').waitFor();
    await page.keyboard.press('Enter');
    expect(await answer).toEqual({ kind: 'choice', choice: 'once' });
    turn.complete();
    await isStored(page);
  });

  test('[UI37] whoever wants it is notified of ends and questions while the page is out of sight, and only then', async () => {
    const id = await bench.session({ title: 'far away' });
    const page = await withNotifications(id);
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByRole('group', { name: 'Notifications' }).getByLabel('On').check();
    await until('the browser has asked', async () => (await told(page)).join() === 'asked');
    await closeSettings(page);
    await bench.answered(id, 'in sight', 'yes');
    await show(page, false);
    await page.clock.install();
    await page.clock.runFor(31_000);
    await bench.answered(id, 'out of sight', 'yes');
    await until('it is told', async () => (await told(page)).at(-1) === 'far away: The turn has ended.');
    await bench.server().prompt(id, 'and now?');
    const turn = await bench.turn(id, 2);
    const questions = [{ qid: 'q', question: 'Which one?' }];
    const answer = turn.turn.ask({ kind: 'clarify', questions });
    await until('it is told', async () => (await told(page)).at(-1) === 'far away: The agent waits for your answer.');
    expect(await told(page)).toHaveLength(3);
    // Of what another tab shows nobody is told, of what it does not show one tab tells.
    const tabs = [page, await otherTab(page, id), await otherTab(page, id)] as const;
    await show(tabs[2], false);
    turn.complete();
    await answer;
    await tabs[1].locator('.live').waitFor({ state: 'detached' });
    const other = await bench.session({ title: 'nearby' });
    await bench.answered(other, 'and this one?', 'yes');
    await until('it is told', async () => (await told(page)).at(-1) === 'nearby: The turn has ended.');
    expect((await Promise.all(tabs.map(told))).map((all) => all.length)).toEqual([4, 0, 0]);
    await tabs[1].evaluate("location.hash = '#/'");
    await bench.answered(id, 'and now?', 'yes');
    await until('it is told', async () => (await told(page)).at(-1) === 'far away: The turn has ended.');
    expect((await Promise.all(tabs.map(told))).map((all) => all.length)).toEqual([5, 0, 0]);
  });

  test('[UI37] the question whether to notify is put once, behind a turn that nobody saw end', async () => {
    const id = await bench.session({ title: 'unseen' });
    const page = await withNotifications(id);
    const badge = page.locator('.session', { hasText: 'unseen' }).locator('.badge', { hasText: 'running' });
    for (const round of [0, 1]) {
      await bench.server().prompt(id, `round ${round}`);
      const turn = await bench.turn(id, round);
      await badge.waitFor();
      await show(page, false);
      turn.complete();
      await until('it has ended', async () => {
        return (await bench.server().call('GET', `/api/sessions/${id}`)).json.session.status === 'idle';
      });
      await show(page, true);
      const ask = page.locator('.notice.ask');
      if (round === 0) await ask.getByRole('button', { name: 'No', exact: true }).click();
      await badge.waitFor({ state: 'hidden' });
      expect(await ask.count()).toBe(0);
    }
    expect(await told(page)).toEqual([]);
  });
});
