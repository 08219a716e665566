/** A list of ten thousand conversations: only what is in sight is there, and everything can be reached. */
import type { Locator } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import { choose, focused, isLive, line, lists, search } from '../support/list-page.ts';
import { seedSessions } from '../support/many-sessions.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { sharedServer } from '../support/shared-server.ts';
import { until } from '../support/until.ts';

const MANY = 10_000;
const browser = createBrowser();
const shared = sharedServer(
  () => ({ overrides: { runner: createEchoRunner().runner } }),
  (home) => seedSessions(home, MANY),
);

async function openPage(): Promise<OpenPage> {
  const page = await browser.open(shared().url);
  await isLive(page);
  await line(page, 'number 0').waitFor();
  return page;
}

/** Turns the wheel over the list. */
async function wheel(page: OpenPage, pixels: number): Promise<void> {
  await page.mouse.move(140, 400);
  await page.mouse.wheel(0, pixels);
}

const place = (of: Locator) => of.getAttribute('aria-posinset');

describe.skipIf(browserMissing !== '')(`a long list of conversations ${browserMissing}`, () => {
  test('[UI9] only lines in sight are in the document, and each says its place and how many there are', async () => {
    const page = await openPage();
    const all = page.locator('.session');
    expect(await all.count()).toBeLessThan(60);
    expect(await place(line(page, 'number 7'))).toBe('8');
    expect(await line(page, 'number 7').getAttribute('aria-setsize')).toBe(String(MANY));
    await wheel(page, 12_000);
    await until('others are there', async () => Number(await place(all.nth(10))) > 200);
    expect(await all.count()).toBeLessThan(60);
    expect(await all.nth(10).getAttribute('aria-setsize')).toBe(String(MANY));
    // A place to which one jumps is filled as soon as what lies before it is there.
    await wheel(page, 120_000);
    await until('that is loaded', async () => {
      const number = Number(await place(all.nth(20)).catch(() => '0'));
      return number > 2500 && (await page.locator('.pending').count()) === 0;
    });
    expect(await all.count()).toBeLessThan(60);
    expect(page.problems).toEqual([]);
  });

  test('[UI9] the keyboard goes to the last of ten thousand and back, with the focus in sight', async () => {
    const page = await openPage();
    await page.getByLabel('Search conversations').press('ArrowDown');
    expect(await focused(page)).toContain('number 0');
    await page.keyboard.press('PageDown');
    await page.keyboard.press('ArrowDown');
    const here = await focused(page);
    expect(here).toMatch(/^number \d\d/);
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowDown');
    expect(await focused(page)).toBe(here);
    await page.keyboard.press('End');
    await until('the last has the focus', async () => (await focused(page)).startsWith(`number ${MANY - 1}`));
    const box = (await page.locator('.session-link:focus').boundingBox())!;
    expect(box.y + box.height).toBeLessThan(720);
    expect(await place(line(page, `number ${MANY - 1}`))).toBe(String(MANY));
    await page.keyboard.press('Home');
    expect(await focused(page)).toContain('number 0');
    expect(page.problems).toEqual([]);
  });

  test('[UI9] the focus and what is typed stay while lines go by and while the list changes', async () => {
    const page = await openPage();
    await choose(page, 'number 3', 'Rename');
    const title = page.getByLabel('Title', { exact: true });
    await title.fill('half a');
    await wheel(page, 8000);
    await line(page, 'number 200').waitFor();
    expect(await line(page, 'number 10').count()).toBe(0);
    await shared().session({ title: 'brand new' });
    await page.keyboard.type(' name');
    expect(await title.inputValue()).toBe('half a name');
    await page.keyboard.press('Enter');
    // The focus is on its line; an arrow goes on from there, and brings it into sight.
    await page.keyboard.press('ArrowUp');
    await until('its neighbour has the focus', async () => (await focused(page)).startsWith('number 2'));
    await line(page, 'half a name').waitFor();
    await until('the server has it', async () => {
      const answer = await shared().call('GET', '/api/sessions?q=half');
      return answer.json.sessions[0]?.title === 'half a name';
    });
    expect(page.problems).toEqual([]);
  });

  test('[UI9] a search of ten thousand is narrowed by each sign, and all that match can be seen', async () => {
    const page = await openPage();
    await search(page, 'number 99');
    await page.getByRole('button', { name: /^Show all \d+ titles$/ }).click();
    await line(page, 'number 99').waitFor();
    await search(page, 'number 9999');
    await lists(page, 'number 9999');
    expect(page.problems).toEqual([]);
  });
});
