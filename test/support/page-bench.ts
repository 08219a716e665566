/** One server with a played agent for a whole file of page tests, and what a person does at its page. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { BrowserContextOptions, Locator } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { createBrowser, type OpenPage } from './browser.ts';
import { createScriptedRunner, type PlayedTurn } from './scripted-runner.ts';
import { startTestServer, type TestServer } from './test-server.ts';
import { until } from './until.ts';

export interface PageBench {
  /** Only inside tests. */
  server(): TestServer;
  session(fields?: object): Promise<string>;
  /** Opens a session, and waits until its page is live. @param url another way to the server */
  open(sessionId: string, options?: BrowserContextOptions, url?: string): Promise<OpenPage>;
  /** Turn number `index` of a session, from 0, as soon as it has begun. */
  turn(sessionId: string, index?: number): Promise<PlayedTurn>;
  /** A turn that was played to its end. */
  answered(sessionId: string, prompt: string, answer: string, fields?: object): Promise<void>;
}

/** Call at the top of a test file. */
export function createPageBench(): PageBench {
  const browser = createBrowser();
  const script = createScriptedRunner();
  let server: TestServer | null = null;
  let home = '';

  beforeAll(async () => {
    home = await mkdtemp(path.join(os.tmpdir(), 'turnkeep-test-'));
    // It is closed below, when the file is over.
    server = await startTestServer({ home, overrides: { runner: script.runner }, release() {} });
  });
  afterAll(async () => {
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  const turnsOf = (sessionId: string) => script.turns.filter((played) => played.turn.sessionId === sessionId);
  const bench: PageBench = {
    server: () => server!,
    session: (fields) => server!.session(fields),
    async open(sessionId, options, url = server!.url) {
      const page = await browser.open(`${url}/#/s/${sessionId}`, options);
      await page.locator('.connection[data-state="live"]').waitFor();
      return page;
    },
    async turn(sessionId, index = 0) {
      await until('the turn has begun', () => turnsOf(sessionId).length > index);
      return turnsOf(sessionId)[index]!;
    },
    async answered(sessionId, prompt, answer, fields) {
      const index = turnsOf(sessionId).length;
      await server!.prompt(sessionId, prompt, fields);
      const played = await bench.turn(sessionId, index);
      played.text(answer);
      played.complete();
      await until('the session is idle', async () => {
        const { json } = await server!.call('GET', `/api/sessions/${sessionId}`);
        return json.session.status === 'idle';
      });
    },
  };
  return bench;
}

/** Closes the settings, and waits until nothing of them can be taken for what is asked for next. */
export async function closeSettings(page: OpenPage): Promise<void> {
  await page.getByRole('button', { name: 'Done' }).click();
  await page.locator('dialog.settings').waitFor({ state: 'detached' });
}

/** The prompts that the page shows, in order. */
export const promptsOn = (page: OpenPage): Promise<string[]> => page.locator('.user .bubble-text').allInnerTexts();

/** The texts of answers that the page shows, in order. */
export const answersOn = (page: OpenPage): Promise<string[]> => page.locator('.assistant .markdown').allInnerTexts();

/** The message with this text. */
export const messageWith = (page: OpenPage, text: string): Locator => page.locator('.turn', { hasText: text }).last();

/** Waits until every turn stands in rows. */
export async function isStored(page: OpenPage): Promise<void> {
  await until('every turn is stored', async () => (await page.locator('.live').count()) === 0);
}
