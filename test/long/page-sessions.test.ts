/** A person at the list of conversations: finds, names, orders, archives, deletes and takes that back. */
import { describe, expect, test } from 'vitest';
import { DOCUMENT_FORMAT, DOCUMENT_VERSION } from '../../server/core/session-document.ts';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import {
  choose,
  chooseView,
  focused,
  isLive,
  item,
  line,
  lists,
  pageWithSessions,
  search,
  titles,
} from '../support/list-page.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { sharedServer } from '../support/shared-server.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const browser = createBrowser();
const shared = sharedServer(() => ({ overrides: { runner: createEchoRunner().runner } }));

const withSessions = (...names: string[]) => pageWithSessions(browser, shared(), names);

/** An exported conversation that begins with a prompt, long ago, and goes on for some messages. */
const conversation = (title: string, prompt: string, count: number, answer?: string) => ({
  format: DOCUMENT_FORMAT,
  version: DOCUMENT_VERSION,
  session: { title },
  messages: Array.from({ length: count }, (_, at) => ({
    id: `m.${at}`,
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: at === 0 ? prompt : at === 1 && answer ? answer : `${at % 2 === 0 ? 'question' : 'answer'} ${at}`,
    timestamp: Date.UTC(2020, 0, 2) / 1000 + at,
  })),
});

const read = async (id: string) => (await shared().call('GET', `/api/sessions/${id}`)).json?.session;
const status = async (id: string) => (await shared().call('GET', `/api/sessions/${id}`)).status;
const notice = (page: OpenPage) => page.locator('.notice');
const groups = (page: OpenPage) => page.locator('.group').allInnerTexts();

describe.skipIf(browserMissing !== '')(`the list of conversations ${browserMissing}`, () => {
  test('[UI6] conversations are made, opened and renamed in their place, live in every page', async () => {
    const { page, open } = await withSessions('pears');
    const other = await open();
    await page.getByRole('button', { name: 'New conversation' }).click();
    await page.getByLabel('Message', { exact: true }).fill('apples');
    await page.getByLabel('Message', { exact: true }).press('Enter');
    for (const one of [page, other]) await lists(one, 'apples', 'pears');
    await line(other, 'apples').locator('a').click();
    await other.getByText('echo: apples').waitFor();

    await choose(page, 'apples', 'Rename');
    await page.getByLabel('Title', { exact: true }).fill('Green apples');
    await page.getByLabel('Title', { exact: true }).press('Enter');
    for (const one of [page, other]) await lists(one, 'Green apples', 'pears');
    await until('the title is told', async () => (await other.title()).startsWith('Green apples'));

    await line(page, 'pears').locator('a').press('F2');
    await page.getByLabel('Title', { exact: true }).fill('never mind');
    await page.getByLabel('Title', { exact: true }).press('Escape');
    await lists(page, 'Green apples', 'pears');
    expect(await focused(page)).toContain('pears');
    expect([...page.problems, ...other.problems]).toEqual([]);
  });

  test('[UI6] pinned ones stand first, and archived ones in a view of their own, in every page', async () => {
    const { page, open, ids } = await withSessions('a', 'b', 'c');
    const other = await open();
    await choose(page, 'c', 'Pin');
    for (const one of [page, other]) {
      await lists(one, 'c', 'a', 'b');
      expect(await groups(one)).toEqual(['Pinned', 'Today']);
    }
    await choose(page, 'a', 'Archive');
    for (const one of [page, other]) await lists(one, 'c', 'b');
    await notice(page).getByRole('button', { name: 'Undo' }).click();
    for (const one of [page, other]) await lists(one, 'c', 'a', 'b');
    await choose(page, 'c', 'Unpin');
    await lists(page, 'a', 'b', 'c');

    await choose(page, 'a', 'Archive');
    await lists(page, 'b', 'c');
    await chooseView(page, 'Archived');
    await lists(page, 'a');
    await choose(page, 'a', 'Take out');
    await page.getByText('Nothing is archived.').waitFor();
    await chooseView(page, 'All conversations');
    await lists(page, 'a', 'b', 'c');
    expect((await read(ids[0]!)).archived).toBe(false);
    expect([...page.problems, ...other.problems]).toEqual([]);
  });

  test('[UI6] a fork is opened, and both are there', async () => {
    const { server, page, ids } = await withSessions('first');
    await server.ask(ids[0]!, 'a question');
    await choose(page, 'first', 'Fork');
    await page.getByText('echo: a question').waitFor();
    await until('there are two', async () => (await titles(page)).length === 2);
    expect(page.url()).not.toContain(ids[0]);
    expect(await server.messages(page.url().split('/').at(-1)!)).toHaveLength(2);
    expect(page.problems).toEqual([]);
  });

  test('[UI8] a search finds titles and messages while one types, and leads to the message', async () => {
    const { server, page } = await withSessions('Zebra crossings', 'Other');
    await server.call('POST', '/api/sessions/import', conversation('Plain', 'tell me of the zebra', 150));
    await lists(page, 'Plain', 'Zebra crossings', 'Other');
    await search(page, 'zeb');
    await lists(page, 'Zebra crossings');
    const hits = page.locator('.hit');
    await until('the message is found', async () => (await hits.count()) === 1);
    expect(await groups(page)).toEqual(['Titles', 'In messages']);
    expect(await hits.locator('mark').allInnerTexts()).toEqual(['zeb']);
    await hits.click();
    const prompt = page.locator('.turn.user.marked', { hasText: 'tell me of the zebra' });
    await prompt.waitFor();
    await until('it is in sight', async () => {
      const box = await prompt.boundingBox();
      return box !== null && box.y > 0 && box.y + box.height < 720;
    });

    // An answer is read without the signs of Markdown.
    await server.call('POST', '/api/sessions/import', conversation('Birds', 'hm', 2, 'an **emu** in `code_a`'));
    await search(page, 'em');
    await page.locator('.hit-snippet', { hasText: 'Agent: an emu in code_a' }).waitFor();
    expect(await hits.locator('mark').allInnerTexts()).toEqual(['em']);
    // A new conversation is to be seen in the list.
    await page.getByRole('button', { name: 'New conversation' }).click();
    expect(await page.getByLabel('Search conversations').inputValue()).toBe('');
    await lists(page, 'Birds', 'Plain', 'Zebra crossings', 'Other');
    await choose(page, 'Birds', 'Delete');

    await search(page, 'z');
    await until('a sign is enough for titles', async () => (await groups(page)).join() === 'Titles');
    await search(page, 'quagga');
    await page.locator('.list-empty', { hasText: 'Nothing matches.' }).waitFor();
    await page.getByLabel('Search conversations').press('Escape');
    await lists(page, 'Plain', 'Zebra crossings', 'Other');
    expect(page.problems).toEqual([]);
  });

  test('[UI8] with many titles that match some are shown, and all when asked', async () => {
    const names = Array.from({ length: 8 }, (_, at) => `note ${at}`);
    const { page } = await withSessions(...names);
    await search(page, 'note');
    await lists(page, ...names.slice(0, 5));
    await page.getByRole('button', { name: 'Show all 8 titles' }).click();
    await lists(page, ...names);
    await page.getByRole('button', { name: 'Show fewer titles' }).click();
    await lists(page, ...names.slice(0, 5));
  });

  test('[UI10] a deleted conversation is gone at once, and there again when that is undone', async () => {
    const { page, ids } = await withSessions('a', 'b', 'c');
    await line(page, 'b').locator('a').click();
    await until('it is open', () => page.url().includes(ids[1]!));
    await choose(page, 'b', 'Delete');
    await lists(page, 'a', 'c');
    expect(page.url()).not.toContain(ids[1]);
    expect(await status(ids[1]!)).toBe(200);
    await notice(page).getByRole('button', { name: 'Undo' }).click();
    await lists(page, 'a', 'b', 'c');
    expect(page.url()).toContain(ids[1]);

    await line(page, 'a').locator('a').press('Delete');
    await lists(page, 'b', 'c');
    // Who deletes one after the other stays in the list.
    expect(await focused(page)).toContain('b');
    await page.keyboard.press('Control+z');
    await lists(page, 'a', 'b', 'c');
    expect(await notice(page).count()).toBe(0);
    expect(page.problems).toEqual([]);
  });

  test('[UI10] it is deleted everywhere when the time is over, or when the page goes', async () => {
    const { page, open, ids } = await withSessions('a', 'b', 'c');
    const other = await open();
    await page.clock.install();
    await choose(page, 'a', 'Delete');
    await lists(page, 'b', 'c');
    expect(await titles(other)).toEqual(['a', 'b', 'c']);
    await page.mouse.move(640, 400);
    await page.clock.fastForward(10_000);
    await lists(other, 'b', 'c');
    expect(await status(ids[0]!)).toBe(404);
    await choose(page, 'b', 'Delete');
    await lists(page, 'c');
    await page.goto('about:blank');
    await lists(other, 'c');
    expect(await status(ids[1]!)).toBe(404);
    expect([...page.problems, ...other.problems]).toEqual([]);
  });

  test('[UI10] what runs is asked about before it is stopped, also when it began after it was deleted', async () => {
    const script = createScriptedRunner();
    const busy = await startTestServer({ overrides: { runner: script.runner } });
    const id = await busy.session({ title: 'busy' });
    await busy.session({ title: 'idle' });
    await busy.prompt(id, 'talk');
    const turn = await script.turn(0);
    const page = await browser.open(busy.url);
    await page.locator('.badge[data-status="running"]').waitFor();
    await choose(page, 'busy', 'Delete');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await lists(page, 'busy', 'idle');
    expect(turn.signal.aborted).toBe(false);
    turn.complete();
    await page.locator('.badge[data-status="running"]').waitFor({ state: 'hidden' });

    await page.clock.install();
    await choose(page, 'busy', 'Delete');
    await lists(page, 'idle');
    await busy.prompt(id, 'once more');
    const second = await script.turn(1);
    await page.mouse.move(640, 400);
    await page.clock.fastForward(10_000);
    await page.getByRole('dialog').getByText('Stop and delete “busy”?').waitFor();
    await lists(page, 'busy', 'idle');
    await page.getByRole('dialog').getByRole('button', { name: 'Stop and delete' }).click();
    await lists(page, 'idle');
    await page.clock.fastForward(10_000);
    await until('it is deleted', async () => (await busy.call('GET', `/api/sessions/${id}`)).status === 404);
    expect(second.signal.aborted).toBe(true);
  });

  test('[UI8] what runs, what waits for an answer and what is new is marked, live; new also after a reload', async () => {
    const script = createScriptedRunner();
    const busy = await startTestServer({ overrides: { runner: script.runner } });
    const a = await busy.session({ title: 'one' });
    await busy.session({ title: 'two' });
    const page = await browser.open(busy.url);
    await isLive(page);
    await lists(page, 'two', 'one');
    await line(page, 'two').locator('a').click();
    const badge = line(page, 'one').locator('.badge');
    await busy.prompt(a, 'talk');
    const turn = await script.turn(0);
    await until('it runs', async () => (await badge.textContent()) === 'running');
    await lists(page, 'one', 'two');
    const asked = turn.turn.ask({ kind: 'clarify', questions: [{ qid: 'q', question: 'which?' }] }, turn.signal);
    await until('it waits', async () => (await badge.textContent()) === 'needs you');
    const open = (await busy.call('GET', `/api/sessions/${a}/requests`)).json.requests[0];
    await busy.call('POST', `/api/sessions/${a}/requests/${open.id}`, { answers: { q: 'this' } });
    await asked;
    turn.complete();
    const unread = line(page, 'one').locator('.unread');
    await unread.waitFor();
    expect(await badge.isHidden()).toBe(true);
    await page.reload();
    await unread.waitFor();
    expect(await line(page, 'two').locator('.unread').isHidden()).toBe(true);
    await line(page, 'one').locator('a').click();
    await unread.waitFor({ state: 'hidden' });
    await line(page, 'two').locator('a').click();
    expect(await unread.isHidden()).toBe(true);
    expect(page.problems).toEqual([]);
  });

  test('[UI6] the keyboard alone opens the menu of a conversation, works it and comes back', async () => {
    const { page, ids } = await withSessions('a', 'b', 'c');
    await page.getByLabel('Search conversations').press('ArrowDown');
    expect(await focused(page)).toContain('a');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Shift+F10');
    await page.getByRole('menu').waitFor();
    expect(await focused(page)).toContain('Rename');
    await page.keyboard.press('Escape');
    expect(await focused(page)).toContain('b');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.keyboard.press('ArrowUp');
    expect(await focused(page)).toContain('Delete');
    await page.keyboard.press('p');
    expect(await focused(page)).toBe('Pin');
    await page.keyboard.press('Enter');
    await lists(page, 'b', 'a', 'c');
    expect(await focused(page)).toContain('b');
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await until('it is open', () => page.url().includes(ids[2]!));
    // A right click on a line opens its menu where the pointer is.
    await line(page, 'a').click({ button: 'right' });
    await item(page, 'Archive').waitFor();
    await page.mouse.click(900, 300);
    expect(await page.getByRole('menu').count()).toBe(0);
    expect(page.problems).toEqual([]);
  });
});
