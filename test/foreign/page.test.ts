/** The page with a session of another program: it is read, says whose it is, and can be gone on with in a copy. */
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { browserMissing, createBrowser } from '../support/browser.ts';
import { temporaryFolder } from '../support/home.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { openHermesHome, turn } from './hermes-home.ts';

const browser = createBrowser();

describe.skipIf(browserMissing !== '')(`the page ${browserMissing}`, () => {
  test("[FH8] shows another program's conversation without a box to write in, and goes on in a copy", async () => {
    const hermes = openHermesHome(path.join(await temporaryFolder(), 'hermes'));
    hermes.session('theirs', { title: 'Theirs' }, turn('a question', 'an answer of theirs'));
    const server = await startTestServer({
      config: `foreign: {state_db: ${hermes.file}}`,
      overrides: { runner: createEchoRunner().runner },
    });
    const page = await browser.open(server.url);
    await page.locator('.session', { hasText: 'Theirs' }).click();
    await page.getByText('an answer of theirs').waitFor();
    await page.getByText('belongs to another program').waitFor();
    const box = page.getByLabel('Message', { exact: true });
    expect(await box.isHidden()).toBe(true);
    await page.getByRole('button', { name: 'Go on in a copy' }).click();
    await box.fill('more');
    await box.press('Enter');
    await until('the answer stands in the copy', async () => (await page.getByText('more').count()) >= 2);
    expect(page.problems).toEqual([]);
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    expect(sessions.map((one: { title: string }) => one.title)).toEqual(['Theirs (fork)', 'Theirs']);
    hermes.close();
  });
});
