/** The commands of the page, and the pickers of model and folder, as a person uses them. */
import { mkdir, realpath, rename } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { browserMissing, type OpenPage } from '../support/browser.ts';
import { temporaryFolder } from '../support/home.ts';
import { answersOn, createPageBench, isStored, promptsOn } from '../support/page-bench.ts';
import { until } from '../support/until.ts';

const bench = createPageBench();

const box = (page: OpenPage) => page.getByLabel('Message', { exact: true });
const options = (page: OpenPage) =>
  page.locator('.popup:visible .option:not([aria-disabled]) .option-label').allInnerTexts();
const active = (page: OpenPage) => page.locator('.popup:visible .option.active .option-label').textContent();
const errorIn = async (page: OpenPage) => (await page.locator('#composer-error').textContent()) ?? '';
const sessionOf = async (id: string) => (await bench.server().call('GET', `/api/sessions/${id}`)).json.session;

async function send(page: OpenPage, text: string): Promise<void> {
  await box(page).fill(text);
  await box(page).press('Enter');
}

const MODELS = {
  default: 'one/big',
  models: [
    { id: 'builtin', label: 'Built-in agent (no model)', provider: 'builtin', source: 'builtin' },
    { id: 'one/big', label: 'Big', provider: 'one', source: 'configured', context_length: 200_000 },
    { id: 'one/small', label: 'Small', provider: 'one', source: 'configured', context_length: 8192 },
    {
      id: 'coder/default',
      label: 'Coder',
      provider: 'coder',
      source: 'path',
      modes: [
        { id: 'ask', label: 'Ask first' },
        { id: 'go', label: 'Go ahead' },
      ],
    },
  ],
  providers: [
    { name: 'one', status: 'ok' },
    { name: 'three', status: 'unreachable', error: 'ECONNREFUSED' },
  ],
};

/** A page whose server knows these models; what is chosen is taken down. */
async function withModels(id: string) {
  const page = await bench.open('');
  const chosen: unknown[] = [];
  await page.route('**/api/models', (route) => route.fulfill({ json: MODELS }));
  await page.route(`**/api/sessions/${id}`, async (route) => {
    if (route.request().method() !== 'PATCH') return route.continue();
    const body = route.request().postDataJSON();
    if (!('model' in body)) return route.continue();
    chosen.push(body.model);
    return route.fulfill({ json: { session: { ...(await sessionOf(id)), model: body.model } } });
  });
  await page.goto(`${bench.server().url}/#/s/${id}`);
  await page.reload();
  await until('the models are known', async () =>
    ((await page.locator('.picker-model').textContent()) ?? '').includes('Big'),
  );
  return { page, chosen };
}

describe.skipIf(browserMissing !== '')(`commands and pickers ${browserMissing}`, () => {
  test('[UI33] commands are completed with the keyboard alone, and anything else goes to the agent', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    await box(page).pressSequentially('/');
    expect(await options(page)).toHaveLength(8);
    await box(page).pressSequentially('re');
    expect(await options(page)).toEqual(['/retry', '/rewind [turns]']);
    await box(page).press('ArrowDown');
    expect(await active(page)).toBe('/rewind [turns]');
    expect(await box(page).getAttribute('aria-activedescendant')).toBe(
      await page.locator('.option.active').getAttribute('id'),
    );
    await box(page).press('Tab');
    expect(await box(page).inputValue()).toBe('/rewind ');
    await box(page).fill('/theme ');
    expect(await options(page)).toEqual(['light', 'dark', 'system']);
    await page.locator('.option', { hasText: 'system' }).click();
    expect(await box(page).inputValue()).toBe('/theme system');
    expect(await page.locator('#message:focus').count()).toBe(1);
    await box(page).fill('/ex');
    await box(page).press('Escape');
    expect(await page.locator('.popup:visible').count()).toBe(0);
    // Not ours, and ours with a space in front: both are for the agent, as they are.
    await send(page, '/frobnicate all of it');
    await until('it has begun', async () => (await bench.turn(id)).turn.input === '/frobnicate all of it');
    (await bench.turn(id)).complete();
    await isStored(page);
    // Where an agent has a command of the same name, both are offered.
    await box(page).fill('/help');
    expect(await page.locator('.popup:visible .option').allInnerTexts()).toEqual([
      expect.stringContaining('Show the keys and the commands'),
      expect.stringContaining('Send this to the agent instead'),
    ]);
    await box(page).press('ArrowDown');
    await box(page).press('Enter');
    expect((await bench.turn(id, 1)).turn.input).toBe('/help');
    (await bench.turn(id, 1)).complete();
    expect(page.problems).toEqual([]);
  });

  test('[UI33] /retry, /rewind, /new and /export do what they say, to this conversation', async () => {
    const id = await bench.session({ title: 'to be rewound' });
    await bench.answered(id, 'question one', 'answer one');
    await bench.answered(id, 'question two', 'answer two');
    const page = await bench.open(id);
    await send(page, '/retry');
    const again = await bench.turn(id, 2);
    expect(again.turn.input).toBe('question two');
    again.text('a better answer two');
    again.complete();
    await until('it is answered anew', async () => (await answersOn(page)).join() === 'answer one,a better answer two');
    await isStored(page);
    await send(page, '/rewind 1');
    await until('a turn is taken back', async () => (await promptsOn(page)).join() === 'question one');
    expect(await page.locator('.notice').first().textContent()).toContain('Taken back: 2 messages');
    await send(page, '/rewind all');
    await until('it says how', async () => (await errorIn(page)).includes('/rewind 2'));
    expect(await box(page).inputValue()).toBe('/rewind all');
    const download = page.waitForEvent('download');
    await send(page, '/export json');
    expect((await download).suggestedFilename()).toMatch(/\.json$/);
    await send(page, '/new and then?');
    await until('it is a new one', () => page.url().endsWith('#/'));
    expect(await box(page).inputValue()).toBe('and then?');
    await send(page, '/new something else');
    await until('it has the words', async () => (await box(page).inputValue()) === 'something else');
  });

  test('[UI33] /retry whose answer was lost is the same request when it is sent again', async () => {
    const id = await bench.session();
    await bench.answered(id, 'question', 'answer');
    const page = await bench.open(id);
    const keys: string[] = [];
    await page.route('**/retry', (route) => {
      keys.push(route.request().postDataJSON().request_id);
      return keys.length === 1 ? route.abort() : route.continue();
    });
    await send(page, '/retry');
    await until('it is told', async () => (await errorIn(page)).includes('could not be reached'));
    await box(page).press('Enter');
    (await bench.turn(id, 1)).complete();
    await until('the box is empty', async () => (await box(page).inputValue()) === '');
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  });

  test('[UI33] /theme, /help and /compact answer where the person is', async () => {
    const id = await bench.session();
    await bench.answered(id, 'hello', 'hello');
    const page = await bench.open(id);
    await send(page, '/theme dark');
    await until('it is dark', async () => (await page.locator('html').getAttribute('data-theme')) === 'dark');
    await send(page, '/help');
    await page.getByRole('dialog', { name: 'Keys and commands' }).waitFor();
    await page.keyboard.press('Escape');
    await send(page, '/compact');
    await until('it is told', async () => (await page.locator('.notice').count()) > 0 || (await errorIn(page)) !== '');
    expect(page.problems.filter((problem) => !problem.includes('status of 422'))).toEqual([]);
  });

  test('[UI34] a model is found by search among all providers, with its window, its modes and what is missing', async () => {
    const id = await bench.session();
    const { page, chosen } = await withModels(id);
    await page.locator('.picker-model').click();
    expect(await page.locator('.option-head').allInnerTexts()).toEqual(['Built in', 'one', 'coder', 'three']);
    expect(await page.locator('.option', { hasText: 'Big' }).textContent()).toContain('200k tokens · default');
    expect(await page.locator('.option[aria-disabled]').textContent()).toBe('three cannot be reached: ECONNREFUSED');
    await page.keyboard.type('coder go');
    expect(await options(page)).toEqual(['Coder, Go ahead']);
    await page.keyboard.press('Enter');
    await until(
      'it is chosen',
      async () => (await page.locator('.picker-value').first().textContent()) === 'Coder, Go ahead',
    );
    expect(await page.locator('.picker-model:focus').count()).toBe(1);
    await send(page, '/model small');
    await until('it is chosen', () => chosen.length === 2);
    expect(chosen).toEqual(['coder/default?mode=go', 'one/small']);
    await send(page, '/model nothing like this');
    await until('it is told', async () => (await errorIn(page)).includes('There is no model like'));
    await send(page, '/model');
    await page.locator('.popup:visible input').waitFor();
    await page.keyboard.press('Escape');
    expect(await page.locator('.popup:visible').count()).toBe(0);
  });

  test('[UI34] a folder is found by going from folder to folder, typed or chosen again; one that is not there is never taken', async () => {
    const folder = await realpath(await temporaryFolder());
    const project = path.join(folder, 'project');
    for (const name of ['project/src', 'other', '.cache']) await mkdir(path.join(folder, name), { recursive: true });
    const id = await bench.session();
    const page = await bench.open(id);
    const picker = page.locator('.picker-folder');
    const field = page.locator('.popup:visible input');
    const offers = (...labels: string[]) =>
      until(`it offers ${labels.join(', ')}`, async () => (await options(page)).join() === labels.join());
    const tells = (words: string) => page.locator('.popup:visible [role="status"]', { hasText: words }).waitFor();
    expect(await picker.textContent()).toContain('No folder');
    await picker.click();
    await page.keyboard.type(path.join(folder, 'nowhere'));
    await tells(`There is no folder like “nowhere” in ${folder}.`);
    await page.keyboard.press('Enter');
    await field.fill(path.join(folder, 'nowhere', 'at-all'));
    await tells('There is no such folder on the server.');
    expect(await options(page)).toEqual([]);
    // From folder to folder, with the keyboard alone; where one is now is said.
    await field.fill(`${folder}/`);
    await offers('Use this folder', 'Up', 'other', 'project');
    await tells(`${folder}: 2 folders`);
    await field.fill(`${folder}/.`);
    await offers('.cache');
    await field.fill(path.join(folder, 'PRO'));
    await offers('project');
    await page.keyboard.press('Enter');
    await offers('Use this folder', 'Up', 'src');
    expect(await field.inputValue()).toBe(`${project}/`);
    await page.locator('.option', { hasText: 'src' }).click();
    await tells('There are no folders in it.');
    await page.locator('.option', { hasText: 'Up' }).click();
    await offers('Use this folder', 'Up', 'src');
    await page.keyboard.press('Enter');
    await until('it is taken', async () => ((await picker.textContent()) ?? '').includes('project'));
    expect((await sessionOf(id)).workspace).toBe(project);
    // What is typed begins at home; what was used before and is gone is not taken by a new conversation either.
    await mkdir(path.join(bench.server().home, 'mine', 'deep'), { recursive: true });
    await page.getByRole('button', { name: 'New conversation' }).click();
    await picker.click();
    await field.fill('mine/');
    await offers('Use this folder', 'Up', 'deep');
    await rename(project, path.join(folder, 'elsewhere'));
    await field.fill('project');
    await page.locator('.option', { hasText: project }).click();
    await page.locator('.popup .error', { hasText: 'no such folder' }).waitFor();
    expect(await picker.textContent()).toContain('No folder');
    await rename(path.join(folder, 'elsewhere'), project);
    await page.keyboard.press('Escape');
    // A new conversation begins in a folder that was used before.
    await picker.click();
    await page.locator('.option', { hasText: project }).click();
    await send(page, 'hello');
    await until('it is in a conversation', () => page.url().includes('#/s/') && !page.url().includes(id));
    const other = page.url().split('/').at(-1)!;
    expect((await sessionOf(other)).workspace).toBe(project);
    (await bench.turn(other)).complete();
  });

  test('[UI34] answers that come late change neither what the keys went to nor another conversation', async () => {
    const folder = await realpath(await temporaryFolder());
    const first = await bench.session({ workspace: folder });
    const other = await bench.session();
    const page = await bench.open(first);
    const waiting: (() => void)[] = [];
    await page.route('**/api/folders*', async (route) => {
      await new Promise<void>((go) => waiting.push(go));
      await route.continue();
    });
    const answer = async () => {
      await until('it is asked', () => waiting.length > 0);
      for (const go of waiting.splice(0)) go();
    };
    const picker = page.locator('.picker-folder');
    await picker.click();
    await page.keyboard.press('ArrowUp');
    expect(await active(page)).toBe('No folder');
    await answer();
    await page.locator('.popup:visible [role="status"]', { hasText: bench.server().home }).waitFor();
    expect(await active(page)).toBe('No folder');
    await page.keyboard.press('ArrowDown');
    expect(await active(page)).toBe(path.basename(folder));
    // It is looked at before it is taken; meanwhile one goes elsewhere.
    await page.keyboard.press('Enter');
    await until('it is asked', () => waiting.length > 0);
    await page.evaluate(`location.hash = '#/s/${other}'`);
    await until('the other is open', async () => ((await picker.textContent()) ?? '').includes('No folder'));
    const taken = page.waitForRequest((request) => request.method() === 'PATCH');
    await answer();
    expect((await taken).url()).toContain(first);
    await until('the popup is gone', async () => (await page.locator('.popup:visible').count()) === 0);
    expect((await sessionOf(other)).workspace).toBeNull();
  });
});
