/** No view of the page has a fault that axe can find. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import { createPageBench } from '../support/page-bench.ts';
import { startTestServer } from '../support/test-server.ts';

const bench = createPageBench();
const browser = createBrowser();

const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds, as lines to read. */
async function faults(page: OpenPage, rules: 'all' | 'contrast'): Promise<string[]> {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(source);
  const only = rules === 'all' ? '' : "runOnly: ['color-contrast'],";
  return page.evaluate(`axe.run(document, { ${only} resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, any }) => [id, html.slice(0, 160), any[0]?.message].join(' | '))))`);
}

const NARROW = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true };
const SCREENS = [
  ['light', 'all', { colorScheme: 'light' }],
  ['dark', 'contrast', { colorScheme: 'dark' }],
  ['narrow', 'all', { colorScheme: 'light', ...NARROW }],
] as const;

const RICH = [
  '# A heading',
  'A [link](https://example.com), `code` and **bold** text.',
  '| a | b |\n|---|--:|\n| 1 | 2 |',
  '- [x] done\n- [ ] open',
  '```js\n// why\nconst answer = [42, "a", /b/, null, new Map()];\nconsole.log(answer);\n```',
  '```sql\nSELECT lower(name) FROM people WHERE age > 3;\n```',
  '```diff\n+one\n-two\n```',
  '> quoted',
].join('\n\n');

/** A conversation with everything that can be in one, whose last turn asks. */
async function everything(): Promise<string> {
  const id = await bench.session({ title: 'everything' });
  await bench.answered(id, 'show all', RICH);
  await bench.server().prompt(id, 'and now');
  const turn = await bench.turn(id, 1);
  const call = { tool_id: 't1', name: 'edit_file', args: { path: 'a.txt' }, preview: 'a.txt' };
  const diff = '--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+two\n';
  turn.say({ type: 'message.start', payload: {} }, { type: 'reasoning.delta', payload: { text: 'Let me see.' } });
  turn.say({ type: 'tool.start', payload: call });
  const result = { tool_id: 't1', name: 'edit_file', result: 'Changed.', is_error: false, duration_s: 0.1, diff };
  turn.say({ type: 'tool.complete', payload: result });
  turn.say({ type: 'todo.updated', payload: { todos: [{ content: 'one', status: 'completed' }] } });
  const choices: ('once' | 'session' | 'deny')[] = ['once', 'session', 'deny'];
  const ask = { kind: 'approval', tool_name: 'terminal', command: 'rm x', description: 'Removes x.', choices } as const;
  turn.turn.ask({ ...ask, choices }).catch(() => {});
  await bench.server().prompt(id, 'what waits');
  return id;
}

describe.skipIf(browserMissing !== '')(`axe ${browserMissing}`, () => {
  for (const [name, rules, options] of SCREENS) {
    test(`[UI39] axe finds no fault on any view, ${name}`, async () => {
      const id = await everything();
      const page = await bench.open(id, options);
      const found: Record<string, string[]> = {};
      const look = async (view: string) => {
        found[view] = await faults(page, rules);
      };
      const closing = async (view: string) => {
        await look(view);
        await page.keyboard.press('Escape');
      };
      await page.locator('.request').waitFor();
      for (const summary of await page.locator('.card > summary').all()) await summary.click();
      await look('conversation');
      await page.getByLabel('Message', { exact: true }).fill('/');
      await closing('commands');
      await page.locator('.picker-model').click();
      await closing('models');
      await page.locator('.picker-folder').click();
      await page.locator('.popup:visible .option-head', { hasText: 'In ' }).waitFor();
      await look('folders');
      await page.locator('.popup:visible input').fill('nothing like it');
      await page.locator('.popup:visible [role="status"]').waitFor();
      await closing('no folder');
      if (name === 'narrow') {
        await page.getByRole('button', { name: 'Conversations' }).click();
        await look('list');
      }
      await page.getByRole('button', { name: 'Settings' }).click();
      await look('settings');
      for (const section of ['Server', 'Access']) {
        await page.getByRole('tab', { name: section }).click();
        await page.getByText(section === 'Server' ? 'These hold for everybody' : 'Set a password first').waitFor();
        await look(`settings: ${section}`);
      }
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Keys and commands' }).click();
      await closing('keys');
      await page.goto(`${bench.server().url}/#/`);
      await page.locator('.welcome').waitFor();
      await look('welcome');
      expect(found).toEqual(Object.fromEntries(Object.keys(found).map((view) => [view, []])));
    });
  }

  test('[UI39][UI44] axe finds no fault on the login, nor where passwords, logins and tokens are managed', async () => {
    const server = await startTestServer({ env: { TURNKEEP_TOKEN: 'correct horse' } });
    const password = 'a long enough password';
    await server.call('POST', '/api/auth/password', { password }, { authorization: 'Bearer correct horse' });
    const page = await browser.open(server.url, { colorScheme: 'light' });
    const look = async (view: string) => {
      expect([view, await faults(page, 'all')]).toEqual([view, []]);
      await page.emulateMedia({ colorScheme: 'dark' });
      expect([`${view}, dark`, await faults(page, 'contrast')]).toEqual([`${view}, dark`, []]);
      await page.emulateMedia({ colorScheme: 'light' });
      await page.setViewportSize({ width: 320, height: 640 });
      const width =
        'Math.max(...[document.documentElement, ...document.querySelectorAll("[role=tabpanel]")].map((one) => one.scrollWidth))';
      expect([`${view}, narrow`, await page.evaluate(width)]).toEqual([`${view}, narrow`, 320]);
      await page.setViewportSize({ width: 1280, height: 720 });
    };
    await page.getByLabel('Password').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('That is not the password.').waitFor();
    await look('login');
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.locator('.connection[data-state="live"]').waitFor();
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByRole('tab', { name: 'Access' }).click();
    await page.getByText('this one').waitFor();
    await look('access');
    await page.getByLabel('Name of the new token').fill('one');
    await page.getByRole('button', { name: 'Create the token' }).click();
    await page.locator('.secret-value').waitFor();
    await look('a new token');
  });
});
