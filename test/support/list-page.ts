/** The list of conversations as a person handles it: for tests of the page. */
import type { Locator } from 'playwright-core';
import type { createBrowser, OpenPage } from './browser.ts';
import { deleteSessions } from './shared-server.ts';
import type { TestServer } from './test-server.ts';
import { until } from './until.ts';

/** Waits until the page has a stream. */
export const isLive = (page: OpenPage) => page.locator('.connection[data-state="live"]').waitFor();

/** A page with a list of nothing but new sessions of these titles, in that order; `open` opens another. */
export async function pageWithSessions(
  browser: ReturnType<typeof createBrowser>,
  server: TestServer,
  names: readonly string[],
) {
  await deleteSessions(server);
  const ids: string[] = [];
  for (const title of names.toReversed()) ids.unshift(await server.session({ title }));
  const open = async () => {
    const page = await browser.open(server.url);
    await isLive(page);
    await lists(page, ...names);
    return page;
  };
  return { server, ids, open, page: await open() };
}

/** The line of a conversation. */
export const line = (page: OpenPage, title: string): Locator =>
  page.locator('.session').filter({ has: page.locator('.session-title', { hasText: new RegExp(`^${title}$`) }) });

/** Titles in the list, in their order. */
export const titles = (page: OpenPage) => page.locator('.session .session-title').allInnerTexts();

/** Opens the menu of a conversation by its button and chooses. */
export async function choose(page: OpenPage, title: string, ...names: string[]): Promise<void> {
  await line(page, title).hover();
  await line(page, title).getByRole('button', { name: 'What to do' }).click();
  for (const name of names) await item(page, name).click();
}

/** What a menu offers, by its name. */
export const item = (page: OpenPage, name: string): Locator =>
  page.getByRole('menu').locator('[role^="menuitem"]', { hasText: new RegExp(`^${name}`) });

/** Chooses what the list shows, and the like. */
export async function chooseView(page: OpenPage, name: string): Promise<void> {
  await page.locator('.view').click();
  await item(page, name).click();
}

/** Types into the search and waits until the list shows what was found. */
export async function search(page: OpenPage, q: string): Promise<void> {
  await page.getByLabel('Search conversations').fill(q);
}

/** Waits until the list has exactly these titles, in this order. */
export const lists = (page: OpenPage, ...expected: string[]) =>
  until(`the list is ${expected.join(', ')}`, async () => (await titles(page)).join('\n') === expected.join('\n'));

/** What the focused element says. */
export const focused = async (page: OpenPage) => (await page.locator(':focus').textContent()) ?? '';
