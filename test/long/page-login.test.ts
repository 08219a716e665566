/** Coming in, being put out, and coming in again, as a person does it. */
import { describe, expect, test } from 'vitest';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import { closeSettings } from '../support/page-bench.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { createTcpRelay } from '../support/tcp-relay.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const browser = createBrowser();
const PASSWORD = 'a long enough password';
const TOKEN = 'correct horse battery staple';
const AS_OWNER = { authorization: `Bearer ${TOKEN}` };

const field = (page: OpenPage, name: 'Password' | 'Access token') => page.getByLabel(name, { exact: true });
const button = (page: OpenPage) => page.locator('.login-card button[type="submit"]');
const error = (page: OpenPage) => page.locator('#login-error');
const box = (page: OpenPage) => page.getByLabel('Message', { exact: true });
const isLive = (page: OpenPage) => page.locator('.connection[data-state="live"]').waitFor();

async function logIn(page: OpenPage, secret = PASSWORD, name: 'Password' | 'Access token' = 'Password') {
  await field(page, name).fill(secret);
  await field(page, name).press('Enter');
}

const says = (page: OpenPage, words: string) =>
  until(`it says "${words}"`, async () => ((await error(page).textContent()) ?? '').includes(words));

const startServer = (env: Record<string, string> = { TURNKEEP_TOKEN: TOKEN }) =>
  startTestServer({ env, overrides: { runner: createEchoRunner().runner } });

async function withPassword(): Promise<TestServer> {
  const server = await startServer();
  expect((await server.call('POST', '/api/auth/password', { password: PASSWORD }, AS_OWNER)).status).toBe(200);
  return server;
}

const endAllLogins = async (server: TestServer) => {
  for (const { login_id: id } of (await server.call('GET', '/api/auth/logins', undefined, AS_OWNER)).json.logins) {
    await server.call('DELETE', `/api/auth/logins/${id}`, undefined, AS_OWNER);
  }
};

describe.skipIf(browserMissing !== '')(`login ${browserMissing}`, () => {
  test('[UI44] it asks for the password or for a token, says what was wrong, and no secret stays anywhere', async () => {
    const server = await withPassword();
    const page = await browser.open(server.url);
    await field(page, 'Password').waitFor();
    expect(await page.locator('#credential:focus').count()).toBe(1);
    // What a password manager looks for.
    expect(await field(page, 'Password').getAttribute('autocomplete')).toBe('current-password');
    expect(await field(page, 'Password').getAttribute('name')).toBe('password');
    expect(await page.locator('form input[autocomplete="username"]').inputValue()).toBe('turnkeep');
    await logIn(page, 'not this one');
    await says(page, 'That is not the password.');
    expect(await field(page, 'Password').inputValue()).toBe('not this one');
    await page.getByRole('button', { name: 'Use an access token instead' }).click();
    expect(await field(page, 'Password').count()).toBe(0);
    await logIn(page, 'nor this', 'Access token');
    await says(page, 'That is not a token of this server');
    await logIn(page, ` ${TOKEN} `, 'Access token');
    await isLive(page);
    expect(await page.locator('#credential').inputValue()).toBe('');
    const stored = await page.evaluate('JSON.stringify([location.href, {...localStorage}, {...sessionStorage}])');
    for (const secret of ['not this one', 'nor this', TOKEN]) {
      expect(stored).not.toContain(secret);
      expect(JSON.stringify(server.logs)).not.toContain(secret);
      expect(page.problems.join()).not.toContain(secret);
    }
  });

  test('[UI44] only what there is is asked for', async () => {
    const server = await startServer();
    const page = await browser.open(server.url);
    await field(page, 'Access token').waitFor();
    expect(await page.getByRole('button', { name: 'Use the password instead' }).count()).toBe(0);
  });

  test('[UI44] after too many tries the button counts down, and then lets one in', async () => {
    const server = await withPassword();
    const page = await browser.open(server.url);
    await page.clock.install();
    for (let one = 0; one < 5; one += 1) {
      await logIn(page, `wrong ${one}`);
      await says(page, 'not the password');
    }
    await logIn(page);
    await says(page, 'Too many wrong tries.');
    const wait = async () => Number(/Wait (\d+) s/.exec((await button(page).textContent()) ?? '')?.[1]);
    const first = await wait();
    expect(first).toBeGreaterThan(30);
    expect(await button(page).isDisabled()).toBe(true);
    await page.clock.fastForward(10_000);
    await until('it counts', async () => (await wait()) <= first - 10);
    expect(await field(page, 'Password').inputValue()).toBe(PASSWORD);
    await page.clock.fastForward(60_000);
    await until('it may be tried again', async () => (await button(page).textContent()) === 'Log in');
    expect(await error(page).textContent()).toBe('');
    expect(await button(page).isDisabled()).toBe(false);
  });

  test('[UI44] a server that cannot be reached is told as such, and what was typed stays', async () => {
    const server = await withPassword();
    const relay = await createTcpRelay(server.url);
    const page = await browser.open(relay.url);
    await field(page, 'Password').waitFor();
    relay.cut();
    await logIn(page);
    await says(page, 'The server cannot be reached.');
    expect(await field(page, 'Password').inputValue()).toBe(PASSWORD);
    relay.mend();
    await field(page, 'Password').press('Enter');
    await isLive(page);
  });

  test('[UI45] a login that ends elsewhere is asked for again, and everything goes on where it was', async () => {
    const server = await withPassword();
    const id = (await server.call('POST', '/api/sessions', { title: 'going on' }, AS_OWNER)).json.session.session_id;
    const page = await browser.open(`${server.url}/#/s/${id}`);
    await logIn(page);
    await isLive(page);
    await box(page).fill('half a thought');
    await page.getByRole('button', { name: 'Settings' }).click();
    await endAllLogins(server);
    // Nobody touched the page: its stream was ended.
    await field(page, 'Password').waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(await box(page).isHidden()).toBe(true);
    await server.call('POST', `/api/sessions/${id}/prompts?wait=1`, { text: 'meanwhile' }, AS_OWNER);
    await logIn(page);
    await isLive(page);
    expect(page.url()).toContain(id);
    expect(await box(page).inputValue()).toBe('half a thought');
    await page.getByText('echo: meanwhile').waitFor();
    // And at a new password, in the middle of sending.
    await box(page).fill('a whole thought');
    await page.route('**/api/events*', (route) => route.abort());
    await server.call('POST', '/api/auth/password', { password: 'another long one' }, AS_OWNER);
    await box(page).press('Enter');
    await field(page, 'Password').waitFor();
    await page.unroute('**/api/events*');
    await logIn(page, 'another long one');
    await isLive(page);
    expect(await box(page).inputValue()).toBe('a whole thought');
    expect((await page.locator('#composer-error').textContent()) ?? '').toBe('');
    await box(page).press('Enter');
    await page.getByText('echo: a whole thought').waitFor();
  });

  test('[UI46] a token that is shown once stays when the login ends, until it is closed', async () => {
    const server = await withPassword();
    const page = await browser.open(server.url);
    await logIn(page);
    await isLive(page);
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByRole('tab', { name: 'Access' }).click();
    await page.getByLabel('Name of the new token').fill('script');
    await page.getByRole('button', { name: 'Create the token' }).click();
    await page.locator('.secret-value').waitFor();
    await endAllLogins(server);
    await page.locator('#credential').waitFor();
    expect(await page.locator('.secret-value').isVisible()).toBe(true);
    await closeSettings(page);
    await logIn(page);
    await isLive(page);
  });

  test('[UI45] who logs out is asked again, also in the other tab', async () => {
    const server = await withPassword();
    const page = await browser.open(server.url);
    await logIn(page);
    await isLive(page);
    const tab = (await page.context().newPage()) as OpenPage;
    await tab.goto(server.url);
    await isLive(tab);
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByRole('button', { name: 'Log out' }).click();
    await field(page, 'Password').waitFor();
    await field(tab, 'Password').waitFor();
    expect((await server.call('GET', '/api/auth/logins', undefined, AS_OWNER)).json.logins).toEqual([]);
    // Who comes in by one tab is in by the other.
    await logIn(page);
    await isLive(page);
    await tab.bringToFront();
    await tab.evaluate("window.dispatchEvent(new Event('focus'))");
    await isLive(tab);
  });
});
