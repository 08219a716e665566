/** A real Chromium for tests of the page. One per test file, closed at its end; pages close with their test. */
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, onTestFinished } from 'vitest';
import { CHROMIUM_ARGS, findBrowser } from './chromium.ts';

/** Why tests of the page are left out; empty when they can run. For the title of the skipped suite. */
export const browserMissing = findBrowser() === null ? 'no Chromium: set CHROMIUM to its path' : '';

export interface OpenPage extends Page {
  /** Errors that the page threw or wrote to its console. */
  problems: string[];
}

/** Starts no browser before the first page is opened. Call at the top of a test file. */
export function createBrowser(): { open(url: string, options?: BrowserContextOptions): Promise<OpenPage> } {
  let browser: Promise<Browser> | null = null;
  afterAll(async () => {
    await (await browser)?.close();
  });
  return {
    async open(url, options = {}) {
      browser ??= chromium.launch({ executablePath: findBrowser()!, args: CHROMIUM_ARGS });
      const context = await (await browser).newContext(options);
      onTestFinished(() => context.close());
      const page = (await context.newPage()) as OpenPage;
      page.setDefaultTimeout(30_000);
      page.problems = [];
      page.on('pageerror', (error) => page.problems.push(String(error)));
      page.on('console', (message) => {
        if (message.type() === 'error') page.problems.push(message.text());
      });
      await page.goto(url);
      return page;
    },
  };
}
