import { test } from 'vitest';
import { createBrowser } from '../support/browser.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { PNG, uploaded } from '../support/uploads.ts';

const browser = createBrowser();
const TEXT = [
  '## A heading\n\nSome **bold** words, `code` and a [link](https://example.com). Euler says \\(e^{i\\pi} + 1 = 0\\), and',
  '$$\\int_0^1 x^2\\,dx = \\frac{1}{3}$$',
  '| name | amount |\n|---|--:|\n| apples | 3 |\n| pears | 12 |',
  '- [x] done\n- [ ] to do\n  - nested\n\n> A quote of somebody.',
  '```ts\nexport const one = (n: number) => n + 1;\n```',
  'שלום עולם, זה טקסט מימין לשמאל.\n\n![chart](https://pictures.invalid/a.png)',
].join('\n\n');

test('look', async () => {
  const script = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: script.runner } });
  const id = await server.session({ title: 'A look at the conversation' });
  const png = await uploaded(server, id, 'dot.png', PNG);
  const notes = await uploaded(server, id, 'notes.txt', 'hello world'.repeat(300));
  await server.prompt(id, 'Look at these files, please.\nThen tell me what is in them.', { attachments: [png, notes] });
  let turn = await script.turn(0);
  turn.say({ type: 'reasoning.delta', payload: { text: 'The person wants to know. Let me look at both.' } });
  turn.say({
    type: 'tool.start',
    payload: { tool_id: 't1', name: 'read_file', args: { path: 'notes.txt' }, preview: 'notes.txt' },
  });
  turn.say({
    type: 'tool.complete',
    payload: { tool_id: 't1', name: 'read_file', result: 'hello world', is_error: false, duration_s: 0.21 },
  });
  turn.say({
    type: 'tool.start',
    payload: { tool_id: 't2', name: 'terminal', args: { command: 'make all' }, preview: 'make all' },
  });
  turn.say({
    type: 'tool.complete',
    payload: {
      tool_id: 't2',
      name: 'terminal',
      result: 'make: *** No rule to make target all.  Stop.\n[exit code 2]',
      is_error: true,
      duration_s: 1.4,
    },
  });
  turn.say({ type: 'message.start', payload: {} });
  turn.text(TEXT);
  turn.say({
    type: 'usage',
    payload: { input_tokens: 5321, output_tokens: 420, cost_usd: 0.0123, context_used: 41000, context_length: 128000 },
  } as never);
  turn.complete();
  await until('stored', async () => (await server.messages(id)).length > 4);
  await server.prompt(id, 'And now something long');
  turn = await script.turn(1);
  turn.text('This will not end well, because');
  turn.fail({
    code: 'provider_error',
    message: 'The provider answered 529: overloaded. It may work in a minute.',
    retryable: true,
  });
  await until('stored', async () => (await server.messages(id)).length > 6);
  for (const [name, options] of [
    ['desktop', { viewport: { width: 1280, height: 800 } }],
    ['phone', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
  ] as const) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await browser.open(`${server.url}/#/s/${id}`, { ...options, colorScheme });
      await page.locator('.note-error').waitFor();
      await page.waitForTimeout(500);
      await page.screenshot({ path: `/tmp/look/${name}-${colorScheme}-end.png` });
      await page.locator('.card.tool > summary').nth(1).click();
      await page.locator('#scroll').evaluate((one) => {
        one.scrollTop = 0;
      });
      await page.waitForTimeout(300);
      if (name === 'desktop') await page.locator('.user .bubble').first().hover();
      await page.waitForTimeout(200);
      await page.screenshot({ path: `/tmp/look/${name}-${colorScheme}-top.png` });
      if (name === 'desktop') {
        await page.locator('[data-act="edit"]').first().click();
        await page.locator('.usage summary').click();
        await page.waitForTimeout(200);
        await page.screenshot({ path: `/tmp/look/${name}-${colorScheme}-edit.png` });
      }
      console.log(name, colorScheme, page.problems);
    }
  }
}, 60_000);
