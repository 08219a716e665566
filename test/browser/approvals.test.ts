/** A person at the page: is asked, allows, denies, answers questions, and sees what the tools do. */
import { access, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import { temporaryFolder } from '../support/home.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const browser = createBrowser();

/** A page on a session with a workspace. */
async function atWork() {
  const workspace = await temporaryFolder();
  const server = await startTestServer();
  const sessionId = await server.session({ workspace });
  const open = () => browser.open(`${server.url}/#/s/${sessionId}`);
  return { workspace, open, page: await open() };
}

async function send(page: OpenPage, text: string): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(text);
  await page.getByLabel('Message', { exact: true }).press('Enter');
}

const card = (page: OpenPage) => page.getByRole('region', { name: 'The agent asks' });
const lastTool = (page: OpenPage) => page.locator('.tool').last();
const isSettled = (page: OpenPage) =>
  until('every turn is stored', async () => (await page.locator('.live').count()) === 0);

describe.skipIf(browserMissing !== '')(`approvals on the page ${browserMissing}`, () => {
  test('[AP8] a person allows a file to be written and sees it done; the card is gone in every page', async () => {
    const { page, open, workspace } = await atWork();
    const other = await open();
    await send(page, '/write notes.txt hello there');
    for (const one of [page, other]) {
      await card(one).waitFor();
      expect(await card(one).getByRole('heading').textContent()).toBe('May the agent write this file?');
      expect(await card(one).locator('pre').textContent()).toBe('notes.txt\ncontent:\n  hello there\n  ');
      expect(await card(one).locator('.request-wait').textContent()).toMatch(/^Waits until \d.+ is a no\.$/);
      expect(await one.locator('.tool[data-status="asking"] .card-state').textContent()).toBe('waits for your answer');
    }
    await expect(access(path.join(workspace, 'notes.txt'))).rejects.toThrow();
    await page.reload();
    await card(page).getByRole('button', { name: 'Allow once' }).click();
    for (const one of [page, other]) {
      await one.locator('.tool[data-status="done"]').waitFor();
      await isSettled(one);
      expect(await card(one).count()).toBe(0);
      expect(one.problems).toEqual([]);
    }
    expect(await readFile(path.join(workspace, 'notes.txt'), 'utf8')).toBe('hello there\n');
  });

  test('[AP8] a person denies, with the keyboard alone, and sees that nothing was run', async () => {
    const { page, workspace } = await atWork();
    await send(page, '/run touch made.txt');
    await card(page).getByRole('button', { name: 'Deny' }).focus();
    await page.keyboard.press('Enter');
    await page.locator('.tool[data-status="denied"]').waitFor();
    await isSettled(page);
    expect(await card(page).count()).toBe(0);
    const said = async () => (await page.locator('.turns').allInnerTexts()).join().match(/not allow(ed| this)/g);
    expect(await said()).toEqual(['not allowed']);
    // At once: a card that is made anew now stays open, and none is ever open and empty.
    const opening = `(async () => {
      document.querySelector('.tool summary').click();
      await null;
      return document.querySelector('.tool .card-body').textContent;
    })()`;
    expect(await page.evaluate(opening)).toContain('The person did not allow this.');
    expect(await said()).toEqual(['not allowed', 'not allow this']);
    await page.reload();
    await page.locator('.tool[data-status="denied"]').waitFor();
    await expect(access(path.join(workspace, 'made.txt'))).rejects.toThrow();
  });

  test('[AP8] what is always allowed is said on the card, and not asked again', async () => {
    const { page } = await atWork();
    await send(page, '/run echo one');
    expect(await card(page).locator('code').textContent()).toBe('terminal: echo one');
    await card(page).getByRole('button', { name: 'Always allow' }).click();
    await page.locator('.tool[data-status="done"]').waitFor();
    await isSettled(page);
    await send(page, '/run echo one');
    await until('it ran twice', async () => (await page.locator('.tool[data-status="done"]').count()) === 2);
    expect(await card(page).count()).toBe(0);
  });

  test('[AP8] a person answers a question with choices and words of their own', async () => {
    const { page } = await atWork();
    await send(page, '/ask');
    await card(page).getByLabel('green').check();
    await card(page).getByLabel('apples').check();
    await card(page).getByLabel('plums').check();
    await card(page).getByLabel('Another answer to: What goes into it?').fill('nuts');
    await card(page).getByRole('button', { name: 'Answer' }).click();
    await isSettled(page);
    const said = ((await page.locator('.turn.assistant .markdown').last().textContent()) ?? '').replace(/\s+/g, ' ');
    expect(said).toContain('→ green');
    expect(said).toContain('→ apples, plums, nuts');
    expect(await card(page).count()).toBe(0);
  });

  test('[AP8] what is being written as an answer is there after another conversation and a reload', async () => {
    const { page } = await atWork();
    await send(page, '/ask');
    const field = card(page).getByLabel('Another answer to: What goes into it?');
    await card(page).getByLabel('green').check();
    await field.fill('nuts');
    await page.getByRole('button', { name: 'New conversation' }).click();
    await card(page).waitFor({ state: 'detached' });
    await page.goBack();
    await until('it is back', async () => (await field.inputValue()) === 'nuts');
    await page.reload();
    await until('it is back', async () => (await field.inputValue()) === 'nuts');
    expect(await card(page).getByLabel('green').isChecked()).toBe(true);
    await card(page).getByRole('button', { name: 'Answer' }).click();
    await isSettled(page);
    const kept = await page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes(':answer:'))");
    expect(kept).toEqual([]);
  });

  test('[AP8] a running command shows what it puts out, also after a reload; then its result', async () => {
    const { page, workspace } = await atWork();
    await send(page, '/run echo begun; until [ -e go ]; do sleep 0.05; done; echo ended');
    await card(page).getByRole('button', { name: 'Allow once' }).click();
    const tail = page.locator('.tool-tail');
    await until('it shows the output', async () => (await tail.textContent()) === 'begun');
    await page.reload();
    await until('it shows the output again', async () => (await tail.textContent()) === 'begun');
    await lastTool(page).locator('summary').click();
    expect(await lastTool(page).locator('.tool-output').textContent()).toBe('begun\n');
    await writeFile(path.join(workspace, 'go'), '');
    await page.locator('.tool[data-status="done"]').waitFor();
    await isSettled(page);
    expect(await lastTool(page).locator('.card-body').textContent()).toContain('begun\nended\n[exit code 0]');
    expect(page.problems).toEqual([]);
  });

  test('[AP8] a change of a file is shown line by line, what was taken and what was put', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const sessionId = await server.session();
    const page = await browser.open(`${server.url}/#/s/${sessionId}`);
    await server.prompt(sessionId, 'change it');
    const turn = await script.turn(0);
    const call = { tool_id: 't1', name: 'edit_file', args: { path: 'list.txt' }, preview: 'list.txt' };
    const diff = '--- list.txt\n+++ list.txt\n@@ -1,2 +1,2 @@\n apples\n-pears\n+plums\n';
    const result = { tool_id: 't1', name: 'edit_file', result: 'Changed.', is_error: false, duration_s: 0.1, diff };
    turn.say({ type: 'message.start', payload: {} }, { type: 'tool.start', payload: call });
    turn.say({ type: 'tool.complete', payload: result });
    await lastTool(page).locator('summary').click();
    const changes = lastTool(page).locator('.diff');
    expect(await changes.locator('del').allTextContents()).toEqual(['-pears\n']);
    expect(await changes.locator('ins').allTextContents()).toEqual(['+plums\n']);
    turn.complete();
    await isSettled(page);
    expect(page.problems).toEqual([]);
  });
});
