/** What a person does with a message where it stands: copies it, edits it, tries again, forks, rewinds. */
import { describe, expect, test } from 'vitest';
import { browserMissing, type OpenPage } from '../support/browser.ts';
import { answersOn, createPageBench, isStored, messageWith, promptsOn } from '../support/page-bench.ts';
import { until } from '../support/until.ts';
import { PNG, uploaded } from '../support/uploads.ts';

const bench = createPageBench();

/** Clicks a button under a message, which is seen while the pointer is over it. */
async function act(page: OpenPage, text: string, name: string): Promise<void> {
  const message = messageWith(page, text);
  await message.hover();
  await message.getByRole('button', { name }).click();
}

const editor = (page: OpenPage) => page.getByLabel('Edit your message').locator('textarea');

/** A session with two turns. */
async function twoTurns(): Promise<string> {
  const id = await bench.session({ title: 'two turns' });
  await bench.answered(id, 'first question', 'first answer');
  await bench.answered(id, 'second question', 'second answer');
  return id;
}

describe.skipIf(browserMissing !== '')(`messages of a conversation ${browserMissing}`, () => {
  test('[UI21] a message is copied as it was written, and so is code', async () => {
    const id = await bench.session();
    const text = 'Some **bold** words:\n\n```js\nlet a = 1;\n```';
    await bench.answered(id, 'say it', text);
    const page = await bench.open(id, { permissions: ['clipboard-read', 'clipboard-write'] });
    const copied = () => page.evaluate('navigator.clipboard.readText()');
    await act(page, 'Some bold words', 'Copy this message');
    await until('the message is copied', async () => (await copied()) === text);
    await page.locator('.code').getByRole('button', { name: 'Copy' }).click();
    await until('the code is copied', async () => (await copied()) === 'let a = 1;\n');
  });

  test('[UI21] an edited prompt takes the place of the old one and of all that came after it', async () => {
    const id = await twoTurns();
    const page = await bench.open(id);
    await act(page, 'first question', 'Edit and send again');
    expect(await editor(page).inputValue()).toBe('first question');
    await editor(page).fill('a better question');
    await editor(page).press('Enter');
    (await bench.turn(id, 2)).text('a better answer');
    await until('only the new turn is there', async () => (await promptsOn(page)).join() === 'a better question');
    (await bench.turn(id, 2)).complete();
    await isStored(page);
    expect(await promptsOn(page)).toEqual(['a better question']);
    expect(await answersOn(page)).toEqual(['a better answer']);
    expect(page.problems).toEqual([]);
  });

  test('[UI21] a prompt that is edited keeps what came with it', async () => {
    const id = await bench.session();
    const file = await uploaded(bench.server(), id, 'dot.png', PNG);
    await bench.answered(id, 'what is this?', 'a dot', { attachments: [file] });
    const page = await bench.open(id);
    await act(page, 'what is this?', 'Edit and send again');
    await editor(page).fill('which colour?');
    await page.getByRole('button', { name: 'Send', exact: true }).first().click();
    const turn = await bench.turn(id, 1);
    turn.complete();
    await isStored(page);
    const [prompt] = await bench.server().messages(id);
    expect(prompt).toMatchObject({ content: 'which colour?', attachments: [file] });
  });

  test('[UI21] an edited text is still there after a refusal, a lost connection, and Escape leaves all as it was', async () => {
    const id = await bench.session();
    await bench.answered(id, 'original', 'answer');
    const page = await bench.open(id);
    await act(page, 'original', 'Edit and send again');
    await editor(page).fill('edited');
    const keys: string[] = [];
    await page.route('**/prompts', (route) => {
      keys.push(route.request().postDataJSON().request_id);
      return route.abort();
    });
    await editor(page).press('Enter');
    const problem = page.locator('.prompt-editor .error');
    await until('the failure is told', async () => (await problem.textContent())!.includes('could not be reached'));
    expect(await editor(page).inputValue()).toBe('edited');
    await editor(page).press('Enter');
    await until('it was tried again', () => keys.length === 2);
    expect(new Set(keys).size, 'the same request').toBe(1);
    await page.unroute('**/prompts');
    await page.reload();
    await act(page, 'original', 'Edit and send again');
    expect(await editor(page).inputValue(), 'after a reload').toBe('edited');
    await editor(page).press('Escape');
    expect(await promptsOn(page)).toEqual(['original']);
    expect(await answersOn(page)).toEqual(['answer']);
  });

  test('[UI21] the last answer is tried again, and only the last', async () => {
    const id = await twoTurns();
    const page = await bench.open(id);
    await messageWith(page, 'first answer').hover();
    expect(await messageWith(page, 'first answer').getByRole('button', { name: 'Try again' }).count()).toBe(0);
    await act(page, 'second answer', 'Try again');
    const turn = await bench.turn(id, 2);
    expect(turn.turn.input).toBe('second question');
    turn.text('another answer');
    turn.complete();
    await until('it is answered', async () => (await answersOn(page)).join() === 'first answer,another answer');
    await isStored(page);
    expect(await promptsOn(page)).toEqual(['first question', 'second question']);
  });

  test('[UI21] a fork has everything up to the message and is opened; the original stays as it was', async () => {
    const id = await twoTurns();
    const page = await bench.open(id);
    await act(page, 'first answer', 'Fork from here');
    await until('the fork is open', async () => (await page.locator('.title').textContent()) === 'two turns (fork)');
    await until('it has the first turn', async () => (await answersOn(page)).join() === 'first answer');
    expect(await promptsOn(page)).toEqual(['first question']);
    expect(await bench.server().messages(id)).toHaveLength(4);
  });

  test('[UI21] a rewind says what it takes back, asks first, and keeps what it was asked to', async () => {
    const id = await twoTurns();
    const page = await bench.open(id);
    await act(page, 'first answer', 'Rewind to here');
    const dialog = page.getByRole('dialog');
    expect(await dialog.textContent()).toContain('This takes back the turn after it.');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect(await promptsOn(page)).toHaveLength(2);
    await act(page, 'first answer', 'Rewind to here');
    await dialog.getByRole('button', { name: 'Rewind' }).click();
    await until('the second turn is gone', async () => (await promptsOn(page)).join() === 'first question');
    expect((await bench.server().messages(id)).map((row) => row.content)).toEqual(['first question', 'first answer']);
    expect(page.problems).toEqual([]);
  });

  test('[UI21] the buttons of a message are reached by keyboard, one stop for each message', async () => {
    const id = await bench.session();
    await bench.answered(id, 'question', 'answer');
    const page = await bench.open(id);
    const foot = messageWith(page, 'question').getByRole('toolbar');
    await foot.getByRole('button', { name: 'Copy this message' }).focus();
    const focused = () => page.evaluate(`document.activeElement?.getAttribute('aria-label')`);
    await page.keyboard.press('Tab');
    expect(await messageWith(page, 'answer').locator(':focus').getAttribute('aria-label')).toBe('Copy this message');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('ArrowRight');
    expect(await focused()).toBe('Edit and send again');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Copy this message');
    await page.keyboard.press('Shift+Tab');
    expect(await focused()).toBe('Edit and send again');
    await page.keyboard.press('Enter');
    await page.locator('.prompt-editor textarea:focus').waitFor();
    await page.keyboard.press('Escape');
    await until('the focus is back', async () => (await focused()) === 'Edit and send again');
    const time = messageWith(page, 'question').locator('time');
    expect(await time.getAttribute('title')).toMatch(/\d{4}/);
  });

  test('[UI21] while a turn runs nothing is taken back under it, and that is said', async () => {
    const id = await bench.session();
    await bench.answered(id, 'question', 'answer');
    const page = await bench.open(id);
    await bench.server().prompt(id, 'another');
    (await bench.turn(id, 1)).text('busy');
    await page.locator('.live').waitFor();
    await act(page, 'question', 'Edit and send again');
    await page.getByText('Wait for its end, or stop it first.').waitFor();
    expect(await editor(page).count()).toBe(0);
    (await bench.turn(id, 1)).complete();
  });
});
