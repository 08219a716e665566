/** The settings of the server and of who may come in, as a person uses them. */
import { describe, expect, test } from 'vitest';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import { closeSettings } from '../support/page-bench.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const browser = createBrowser();
const PASSWORD = 'a long enough password';
const CONFIG = "model: {provider: custom, base_url: 'http://127.0.0.1:9/v1', default: small, models: [large]}\n";
const IPHONE = 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 Version/18.1 Safari/604.1';

const startServer = (runner = createScriptedRunner().runner) =>
  startTestServer({ config: CONFIG, overrides: { runner } });
const isLive = (page: OpenPage) => page.locator('.connection[data-state="live"]').waitFor();

async function openSettings(page: OpenPage, section: string): Promise<void> {
  await isLive(page);
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByRole('tab', { name: section }).click();
}

async function logIn(page: OpenPage, name: string, secret: string): Promise<void> {
  await page.getByLabel(name, { exact: true }).fill(secret);
  await page.getByRole('button', { name: 'Log in' }).click();
}

async function setPassword(page: OpenPage, current: string | null, next: string, again = next): Promise<void> {
  if (current !== null) await page.getByLabel('Current password').fill(current);
  await page.getByLabel('New password', { exact: true }).fill(next);
  await page.getByLabel('New password again').fill(again);
  await page.getByRole('button', { name: /(Set|Change) the password/ }).click();
}

const section = (page: OpenPage, name: string) => page.getByRole('region', { name });
const shows = (page: OpenPage, name: string, words: string) => section(page, name).getByText(words).waitFor();
const statusOf = async (server: TestServer, secret: string) =>
  (await server.call('GET', '/api/sessions', undefined, { authorization: `Bearer ${secret}` })).status;

describe.skipIf(browserMissing !== '')(`settings ${browserMissing}`, () => {
  test('[UI38][UI46] the model of new conversations is chosen for the server: every open page has it at once', async () => {
    const server = await startServer();
    const page = await browser.open(server.url);
    const other = await browser.open(server.url);
    const modelIn = (where: OpenPage, name: string) =>
      until(`its model is ${name}`, async () =>
        ((await where.locator('.picker-model').textContent()) ?? '').includes(name),
      );
    await modelIn(other, 'small');
    await openSettings(other, 'Server');
    await openSettings(page, 'Server');
    await page.getByLabel('Model of new conversations').selectOption({ label: 'large (custom)' });
    await modelIn(page, 'large');
    await modelIn(other, 'large');
    const shown = other.getByLabel('Model of new conversations');
    await until('the other dialog shows it', async () => (await shown.inputValue()) === 'custom/large');
    await shown.selectOption({ label: 'As configured: small' });
    await modelIn(page, 'small');
    expect([...page.problems, ...other.problems]).toEqual([]);
  });

  test('[UI38] a browser that keeps nothing for the page still shows it, and does what is chosen', async () => {
    const server = await startServer();
    const page = await browser.open('about:blank');
    await page.addInitScript(`for (const name of ['localStorage', 'sessionStorage']) {
      Object.defineProperty(window, name, { get() { throw new DOMException('denied', 'SecurityError'); } });
    }`);
    await page.goto(server.url);
    await isLive(page);
    await page.getByLabel('Message', { exact: true }).fill('/theme dark');
    await page.getByLabel('Message', { exact: true }).press('Enter');
    await page.locator('html[data-theme="dark"]').waitFor({ state: 'attached' });
    await page.getByLabel('Message', { exact: true }).fill('hello');
    await page.getByLabel('Message', { exact: true }).press('Enter');
    await page.getByText('hello').first().waitFor();
    expect(page.problems).toEqual([]);
  });

  test('[UI46] what Enter does while a turn runs is chosen for the server', async () => {
    const script = createScriptedRunner();
    const server = await startServer(script.runner);
    const page = await browser.open(`${server.url}/#/s/${await server.session()}`);
    await openSettings(page, 'Server');
    const mode = page.getByLabel('A message that is sent while a turn runs');
    await mode.selectOption({ label: 'It stops the turn and comes next' });
    await until(
      'it is kept',
      async () => (await server.call('GET', '/api/settings')).json.busy_input_mode === 'interrupt',
    );
    await closeSettings(page);
    for (const text of ['work', 'no, this']) {
      await page.getByLabel('Message', { exact: true }).fill(text);
      await page.getByLabel('Message', { exact: true }).press('Enter');
      await script.turn(text === 'work' ? 0 : 1);
    }
    expect((await script.turn(0)).signal.aborted).toBe(true);
  });

  test('[UI46] the first password is set and changed: this browser stays, everybody else has to log in', async () => {
    const server = await startServer();
    const page = await browser.open(server.url);
    const other = await browser.open(server.url, { userAgent: IPHONE });
    await openSettings(page, 'Access');
    await shows(page, 'Access tokens', 'Set a password first');
    await setPassword(page, null, PASSWORD, 'a long enough passwort');
    await shows(page, 'Password', 'The two new passwords differ.');
    await setPassword(page, null, PASSWORD);
    await shows(page, 'Password', 'Set. This browser stays logged in.');
    expect(await page.getByLabel('New password', { exact: true }).inputValue()).toBe('');
    await logIn(other, 'Password', PASSWORD);
    await isLive(other);
    await setPassword(page, 'not the current one', 'the next password');
    await shows(page, 'Password', 'The current password is another one.');
    await setPassword(page, PASSWORD, 'the next password');
    await shows(page, 'Password', 'Changed. Everybody else is logged out.');
    await logIn(other, 'Password', 'the next password');
    await isLive(other);
    await isLive(page);
    expect(await page.locator('#login').isHidden()).toBe(true);
  });

  test('[UI46] browsers are listed in words, and another one is logged out by a click', async () => {
    const server = await startServer();
    const page = await browser.open(server.url);
    await openSettings(page, 'Access');
    await setPassword(page, null, PASSWORD);
    await shows(page, 'Password', 'Set.');
    const other = await browser.open(server.url, { userAgent: IPHONE });
    await logIn(other, 'Password', PASSWORD);
    await isLive(other);
    await closeSettings(page);
    await openSettings(page, 'Access');
    const list = section(page, 'Browsers logged in').getByRole('listitem');
    await until('both are there', async () => (await list.count()) === 2);
    const texts = await list.allInnerTexts();
    expect(
      texts.filter((text) => /^Chrome on .+this one/s.test(text) && text.includes('127.0.0.1 · now')),
    ).toHaveLength(1);
    expect(await list.filter({ hasText: 'this one' }).getByRole('button').count()).toBe(0);
    await page.getByRole('button', { name: 'Log out Safari on an iPhone, 127.0.0.1' }).click();
    await until('one is left', async () => (await list.count()) === 1);
    await other.getByLabel('Password', { exact: true }).waitFor();
  });

  test('[UI46] a token is made, shown once, used, and revoked after a question', async () => {
    const server = await startServer();
    const page = await browser.open(server.url);
    await openSettings(page, 'Access');
    await setPassword(page, null, PASSWORD);
    await page.getByLabel('Name of the new token').fill('backup script');
    await page.getByLabel('What it may do').selectOption('See everything, change nothing');
    await page.getByLabel('How long it holds').selectOption('90 days');
    await page.getByRole('button', { name: 'Create the token' }).click();
    await shows(page, 'Access tokens', 'it is never shown again');
    const secret = (await page.locator('.secret-value').textContent())!;
    expect(await statusOf(server, secret)).toBe(200);
    await page.getByRole('button', { name: 'Copy' }).click();
    await shows(page, 'Access tokens', 'Copied');
    await closeSettings(page);
    await openSettings(page, 'Access');
    const entry = section(page, 'Access tokens').getByRole('listitem');
    expect(await entry.textContent()).toMatch(
      /^backup scriptSee everything, change nothing · (used now|never used) · until .+20\d\d/,
    );
    expect(await page.content()).not.toContain(secret);
    // Whoever logs in with it sees that it is not enough for this.
    const reader = await browser.open(server.url);
    await reader.getByRole('button', { name: 'Use an access token instead' }).click();
    await logIn(reader, 'Access token', secret);
    await openSettings(reader, 'Access');
    await reader.getByText('Your login may not manage').waitFor();
    await reader.getByRole('tab', { name: 'Server' }).click();
    await reader.getByText('Your login may see this, but not change it.').waitFor();
    expect(await reader.getByLabel('Model of new conversations').isDisabled()).toBe(true);
    const revoke = async (answer: string) => {
      await entry.getByRole('button', { name: 'Revoke backup script' }).click();
      await page.getByRole('dialog', { name: 'Revoke' }).getByRole('button', { name: answer }).click();
    };
    await revoke('Cancel');
    expect(await statusOf(server, secret)).toBe(200);
    await revoke('Revoke');
    await entry.waitFor({ state: 'detached' });
    expect(await statusOf(server, secret)).toBe(401);
    await reader.getByLabel('Password', { exact: true }).waitFor();
  });

  test('[UI46] sections are reached with the arrow keys', async () => {
    const server = await startServer();
    const page = await browser.open(server.url);
    await openSettings(page, 'This browser');
    for (const name of ['Server', 'Access', 'This browser']) {
      await page.keyboard.press('ArrowRight');
      expect(await page.locator(':focus').textContent()).toBe(name);
      expect(await page.getByRole('tabpanel', { name }).isVisible()).toBe(true);
      expect(await page.getByRole('tabpanel').count()).toBe(1);
    }
  });
});

const logins = (await import(new URL('../../static/settings-logins.js', import.meta.url).href)) as {
  browserName(agent: string): string;
};

test.each([
  [IPHONE, 'Safari on an iPhone'],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/130.0.0.0 Safari/537.36 Edg/130.0',
    'Edge on Windows',
  ],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0', 'Firefox on Linux'],
  ['Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130.0.0.0 Mobile Safari/537.36', 'Chrome on Android'],
  ['curl/8.5.0', 'curl'],
  ['', 'Unknown browser'],
])('[UI46] %s is %s', (agent, words) => {
  expect(logins.browserName(agent)).toBe(words);
});
