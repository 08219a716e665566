/** The page as people like it: colours, density, keys, narrow screens, other scripts, and the first minutes. */
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import { closeSettings, createPageBench, isStored } from '../support/page-bench.ts';
import { until } from '../support/until.ts';

const bench = createPageBench();
const browser = createBrowser();

const MOST_BYTES = 250_000;

const box = (page: OpenPage) => page.getByLabel('Message', { exact: true });
const background = (page: OpenPage): Promise<string> =>
  page.evaluate('getComputedStyle(document.body).backgroundColor');
const LIGHT = 'rgb(250, 249, 246)';
const DARK = 'rgb(24, 26, 29)';
const theme = (page: OpenPage) => page.locator('html').getAttribute('data-theme');
const focusIs = async (page: OpenPage, selector: string) => (await page.locator(`${selector}:focus`).count()) === 1;
const leaveField = (page: OpenPage) => page.evaluate('document.activeElement.blur()');

/** Chooses a setting by what it says. */
async function set(page: OpenPage, group: string, value: string): Promise<void> {
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByRole('group', { name: group }).getByLabel(value).check();
  await closeSettings(page);
}

describe.skipIf(browserMissing !== '')(`comfort ${browserMissing}`, () => {
  test('[UI38] the colours follow the system or the person, at once, in every tab, and from the first paint on', async () => {
    const page = await bench.open('', { colorScheme: 'dark' });
    expect(await background(page)).toBe(DARK);
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await background(page)).toBe(LIGHT);
    const tab = await page.context().newPage();
    await tab.goto(page.url());
    await set(page, 'Colours', 'Dark');
    expect(await background(page)).toBe(DARK);
    await until('the other tab follows', async () => (await background(tab as OpenPage)) === DARK);
    // Before any of the page but this is there.
    await page.route('**/app.js', (route) => route.abort());
    await page.reload();
    await until('it is dark', async () => (await background(page)) === DARK);
    await page.unroute('**/app.js');
    await page.reload();
    await set(page, 'Colours', 'As the system');
    expect(await background(page)).toBe(LIGHT);
  });

  test('[UI38] density and the key that sends hold after a reload', async () => {
    const page = await bench.open('');
    await set(page, 'Density', 'Compact');
    const size = (): Promise<string> => page.evaluate('getComputedStyle(document.body).fontSize');
    expect(await size()).toBe('14.5px');
    await set(page, 'Send with', 'Ctrl+Enter');
    await page.reload();
    expect(await size()).toBe('14.5px');
    await box(page).fill('one');
    await box(page).press('Enter');
    expect(await box(page).inputValue()).toBe('one\n');
    await box(page).press('Control+Enter');
    await until('it is sent', () => /#\/s\/.+/.test(page.url()));
    (await bench.turn(page.url().split('/').at(-1)!)).complete();
    expect(page.problems).toEqual([]);
  });

  test('[UI39] everything is reached with keys, which a sheet shows, and single keys can be turned off', async () => {
    const ids = [await bench.session({ title: 'older' }), await bench.session({ title: 'newer' })];
    const page = await bench.open(ids[1]!);
    await until('the list is there', async () => (await page.locator('.session').count()) >= 2);
    await leaveField(page);
    await page.keyboard.press('j');
    await until('the next one is open', () => page.url().includes(ids[0]!));
    await leaveField(page);
    await page.keyboard.press('k');
    await until('the one before is open', () => page.url().includes(ids[1]!));
    await leaveField(page);
    await page.keyboard.press('?');
    const sheet = page.getByRole('dialog', { name: 'Keys and commands' });
    await sheet.waitFor();
    expect((await sheet.textContent()) ?? '').toContain('/rewind [turns]');
    await page.keyboard.press('Escape');
    await page.keyboard.press('m');
    expect(await focusIs(page, '#message')).toBe(true);
    await page.keyboard.type('n?/');
    expect(await box(page).inputValue()).toBe('n?/');
    await page.keyboard.press('Control+k');
    expect(await focusIs(page, 'input[type="search"]')).toBe(true);
    await leaveField(page);
    await page.keyboard.press('n');
    await until('it is a new one', () => page.url().endsWith('#/'));
    await leaveField(page);
    await page.keyboard.press(',');
    await page.getByRole('group', { name: 'Keys without Ctrl' }).getByLabel('Off').check();
    await page.keyboard.press('Escape');
    await leaveField(page);
    await page.keyboard.press('?');
    await page.keyboard.press('Control+k');
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(await focusIs(page, 'input[type="search"]')).toBe(true);
    expect(page.problems).toEqual([]);
  });

  test('[UI39] the first Tab leads past the list to the message box, and a dialog gives the focus back', async () => {
    // With a touch screen the message box does not take the focus by itself.
    const page = await bench.open('', { hasTouch: true, isMobile: true, viewport: { width: 1000, height: 700 } });
    await page.keyboard.press('Tab');
    expect(await page.locator(':focus').textContent()).toBe('Skip to the message box');
    await page.keyboard.press('Enter');
    await until('the box has the focus', () => focusIs(page, '#message'));
    await page.getByRole('button', { name: 'Settings' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    expect(await page.locator(':focus').getAttribute('aria-label')).toBe('Settings');
  });

  test('[UI40] on 320 pixels nothing sticks out, and right-to-left text stands as it is read', async () => {
    const id = await bench.session({ title: 'רשימת קניות ארוכה מאוד שלא נכנסת בשורה אחת' });
    const code = `\`\`\`js\nconst long = '${'x'.repeat(300)}';\n\`\`\``;
    await bench.answered(
      id,
      'מה לקנות?',
      `חלב, לחם וביצים.\n\n${code}\n\n| a | b | c | d | e |\n|-|-|-|-|-|\n| ${'wide '.repeat(9)} | 2 | 3 | 4 | 5 |`,
    );
    const narrow = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true };
    const page = await bench.open(id, narrow);
    await page.locator('.assistant .markdown').waitFor();
    const isInside = async () =>
      expect(
        await page.evaluate('[document.documentElement.scrollWidth, document.documentElement.scrollHeight]'),
      ).toEqual([320, 640]);
    await isInside();
    const direction = (selector: string): Promise<string> =>
      page.evaluate(`getComputedStyle(document.querySelector('${selector}')).direction`);
    expect(await direction('.user .bubble-text')).toBe('rtl');
    expect(await direction('.assistant .markdown p')).toBe('rtl');
    await box(page).fill('שלום');
    expect(await direction('#message')).toBe('rtl');
    await box(page).fill('/');
    await isInside();
    await page.locator('.picker-model').click();
    await isInside();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Conversations' }).click();
    await isInside();
    await page.getByRole('button', { name: 'Keys and commands' }).click();
    await isInside();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Settings' }).click();
    await isInside();
  });

  test('[UI40] who wants less motion gets none', async () => {
    const id = await bench.session();
    const page = await bench.open(id, { reducedMotion: 'reduce' });
    await bench.server().prompt(id, 'work');
    const turn = await bench.turn(id);
    await page.locator('.working').waitFor();
    const moving = 'document.getAnimations().filter((one) => one.playState === "running").length';
    expect(await page.evaluate(moving)).toBe(0);
    turn.complete();
    await isStored(page);
  });

  test('[UI41] the first minutes: what was found is told and used by a click, and which key goes where', async () => {
    const page = await browser.open('about:blank');
    const found = { id: 'ollama/llama3.2', label: 'llama3.2', provider: 'ollama', source: 'discovered' };
    const models = {
      default: 'builtin',
      models: [
        { id: 'builtin', label: 'Built-in agent (no model)', provider: 'builtin', source: 'builtin' },
        found,
        { id: 'coder/default', label: 'Coder', provider: 'coder', source: 'configured' },
      ],
      providers: [
        { name: 'ollama', status: 'ok' },
        { name: 'coder', status: 'unreachable', error: 'there is no program "coder"' },
        { name: 'openai', status: 'unauthorized', error: 'an API key is needed' },
      ],
    };
    await page.route('**/api/models', (route) => route.fulfill({ json: models }));
    await page.route('**/api/settings', (route) => {
      models.default = route.request().postDataJSON().default_model;
      return route.fulfill({ json: {} });
    });
    await page.goto(bench.server().url);
    const help = page.getByRole('region', { name: 'Connect a language model' });
    await help.locator('.found li').first().waitFor();
    expect(await help.locator('.found li').allInnerTexts()).toEqual([
      expect.stringContaining('ollama runs on the machine of the server.'),
      'coder cannot be reached (there is no program "coder").',
      'openai wants a key (an API key is needed).',
    ]);
    expect(await help.getByRole('button', { name: /^Use/ }).allInnerTexts()).toEqual(['Use llama3.2']);
    await help.getByText('OpenAI', { exact: true }).click();
    expect((await help.textContent()) ?? '').toContain('OPENAI_API_KEY=…');
    await help.getByRole('button', { name: 'Use llama3.2' }).click();
    await until('it is chosen', async () =>
      ((await page.locator('.picker-model').textContent()) ?? '').includes('llama3.2'),
    );
    expect(await help.isHidden()).toBe(true);
    expect(await theme(page)).toBe('system');
  });

  test('[UI42] the first load is at most 250 kB compressed', async () => {
    const page = await browser.open('about:blank');
    const sizes = new Map<string, number>();
    page.on('response', async (response) => {
      const { pathname } = new URL(response.url());
      if (pathname.startsWith('/api/')) return;
      sizes.set(pathname, gzipSync(await response.body()).length);
    });
    await page.goto(bench.server().url);
    await page.locator('.connection[data-state="live"]').waitFor();
    await page.waitForLoadState('load');
    const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    expect(total, JSON.stringify([...sizes].sort((a, b) => b[1] - a[1]).slice(0, 12))).toBeLessThan(MOST_BYTES);
    // Each module is named in the page, so that none is asked for only when another one has come; libraries stand behind one name.
    const preloaded = await page.locator('link[rel="modulepreload"]').evaluateAll((all) =>
      // biome-ignore lint/suspicious/noExplicitAny: an element of the page.
      all.map((link: any) => new URL(link.href).pathname),
    );
    const modules = [...sizes.keys()].filter(
      (path) => /\.m?js$/.test(path) && !/\/(app|look)\.js$|\/vendor\/.+\//.test(path),
    );
    expect(preloaded.sort()).toEqual(modules.sort());
    console.log(`first load: ${sizes.size} files, ${total} bytes compressed`);
  });
});
