/** A person at the list: groups conversations into projects, takes them out as files and brings files in. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import { choose, chooseView, item, line, lists, pageWithSessions, titles } from '../support/list-page.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { sharedServer } from '../support/shared-server.ts';
import { until } from '../support/until.ts';

const browser = createBrowser();
const shared = sharedServer(() => ({ overrides: { runner: createEchoRunner().runner } }));

const withSessions = (...names: string[]) => pageWithSessions(browser, shared(), names);

/** The colour of the dot of a conversation. */
const dotOf = (page: OpenPage, title: string) =>
  line(page, title)
    .locator('.dot')
    .evaluate((dot) => (dot as unknown as { style: { background: string } }).style.background);

/** Takes what the next download brings. */
async function download(page: OpenPage, work: () => Promise<void>) {
  const [file] = await Promise.all([page.waitForEvent('download'), work()]);
  return { name: file.suggestedFilename(), text: await readFile((await file.path())!, 'utf8') };
}

/** Lets files hang over the list, as the system does when somebody drags them in. */
const dragIn = (page: OpenPage, files: [string, string][]) =>
  page.evaluateHandle(
    `((files) => {
      const carried = new DataTransfer();
      for (const [name, text] of files) carried.items.add(new File([text], name, { type: 'application/json' }));
      return carried;
    })(${JSON.stringify(files)})`,
  );

describe.skipIf(browserMissing !== '')(`projects and files of the list ${browserMissing}`, () => {
  test('[UI8] a project is made, given, chosen, painted, renamed and deleted, live in every page', async () => {
    const { server, page, open, ids } = await withSessions('a', 'b');
    const other = await open();
    await choose(page, 'a', 'Project', 'New project');
    await page.getByLabel('Name of the new project').fill('Garden');
    await page.getByRole('button', { name: 'Create' }).click();
    for (const one of [page, other]) {
      await until('it has its colour', async () => (await dotOf(one, 'a')) === 'rgb(47, 129, 216)');
      expect(await line(one, 'a').locator('a').textContent()).toContain('project Garden');
    }
    await chooseView(page, 'Garden');
    await lists(page, 'a');
    await choose(other, 'b', 'Project', 'Garden');
    await lists(page, 'a', 'b');

    // What is begun here belongs to it.
    await page.getByRole('button', { name: 'New conversation' }).click();
    await page.getByLabel('Message', { exact: true }).fill('carrots');
    await page.getByLabel('Message', { exact: true }).press('Enter');
    await until('it is there', async () => (await titles(page)).includes('carrots'));

    await chooseView(page, 'Projects');
    await page.getByLabel('Name of Garden').fill('Vegetables');
    await page.getByLabel('Name of Garden').press('Tab');
    await page.getByLabel('Colour of Garden').fill('#aa5500');
    await until('it is told', async () => (await dotOf(other, 'a')) === 'rgb(170, 85, 0)');
    await until('it is told', async () => (await line(other, 'a').locator('a').textContent())!.includes('Vegetables'));
    await page
      .getByRole('button', { name: 'Delete Vegetables' })
      .or(page.getByRole('button', { name: 'Delete Garden' }))
      .click();
    await page.getByRole('dialog').last().getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Done' }).click();
    for (const one of [page, other]) {
      await until('nothing has a dot', async () => (await one.locator('.session .dot:visible').count()) === 0);
      expect((await titles(one)).toSorted()).toEqual(['a', 'b', 'carrots']);
    }
    expect(await page.locator('.view').textContent()).toContain('All conversations');
    expect((await server.call('GET', `/api/sessions/${ids[0]}`)).json.session.project_id).toBeNull();
    expect([...page.problems, ...other.problems]).toEqual([]);
  });

  test('[UI8] a conversation is taken out in three forms, and brought in again by dropping or choosing the file', async () => {
    const { server, page, ids } = await withSessions('Trip to Lisbon');
    await server.ask(ids[0]!, 'pack the bags');
    const take = (form: string) => download(page, () => choose(page, 'Trip to Lisbon', `Export as ${form}`));
    const markdown = await take('Markdown');
    expect(markdown.name).toMatch(/\.md$/);
    expect(markdown.text).toContain('echo: pack the bags');
    const html = await take('a web page');
    expect(html.name).toMatch(/\.html$/);
    expect(html.text).toContain('echo: pack the bags');
    const json = await take('JSON');

    const files = await dragIn(page, [
      ['trip.json', json.text],
      ['photo.json', 'no conversation'],
      ['other.json', '{"format": "another"}'],
    ]);
    await page.locator('#list').dispatchEvent('dragover', { dataTransfer: files });
    await page.getByText('Drop to import').waitFor();
    await page.locator('#list').dispatchEvent('drop', { dataTransfer: files });
    await lists(page, 'Trip to Lisbon', 'Trip to Lisbon');
    expect(await page.locator('.drop-hint').count()).toBe(0);
    await page.getByText('echo: pack the bags').waitFor();
    const said = await page.locator('.notice').allInnerTexts();
    expect(said.filter((text) => text.includes('Imported “Trip to Lisbon”'))).toHaveLength(1);
    expect(said.filter((text) => /photo\.json|other\.json/.test(text))).toHaveLength(2);

    const chooser = page.waitForEvent('filechooser');
    await page.locator('.view').click();
    await item(page, 'Import').click();
    await (await chooser).setFiles({ name: 'trip.json', mimeType: 'application/json', buffer: Buffer.from(json.text) });
    await until('there are three', async () => (await titles(page)).length === 3);
    // A file that is no conversation was refused by the server, which the browser writes down.
    expect(page.problems.filter((problem) => !problem.includes('400'))).toEqual([]);
  });
});
