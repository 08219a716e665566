/** What a model writes, on the page: formulas, tables, pictures, directions, and texts that mean harm. */
import { describe, expect, test } from 'vitest';
import { browserMissing, type OpenPage } from '../support/browser.ts';
import { createPageBench, isStored } from '../support/page-bench.ts';
import { until } from '../support/until.ts';
import { PNG, uploaded } from '../support/uploads.ts';

const bench = createPageBench();
const body = (page: OpenPage) => page.locator('.assistant:not(.live) .markdown').last();

/** A page on a session with one answer. */
async function showing(answer: string): Promise<OpenPage> {
  const id = await bench.session();
  await bench.answered(id, 'write', answer);
  const page = await bench.open(id);
  await body(page).waitFor();
  return page;
}

/** Everything on the page that could act, or dress up as a part of the page. */
const DANGERS = `[...document.querySelectorAll('.turns *')].flatMap((node) => [
  ...(node.matches('script, style, form, iframe, object, embed, link, meta, base, input:not([type=checkbox]), .markdown svg:not(.icon), .markdown math:not(.formula math)') ? [node.outerHTML.slice(0, 80)] : []),
  ...[...node.attributes].filter(({ name, value }) => /^on/.test(name) || /^\\s*(javascript|vbscript|data:(?!image\\/(png|gif|jpeg|webp|avif)))/i.test(value))
    .map(({ name, value }) => name + '=' + value.slice(0, 60)),
])`;

describe.skipIf(browserMissing !== '')(`what a model writes ${browserMissing}`, () => {
  test('[UI23] formulas are set, their library comes only with the first one, and money is no formula', async () => {
    const id = await bench.session();
    await bench.answered(id, 'cost?', 'It costs $5 or $6, see `\\(x\\)`.');
    const page = await bench.open(id);
    await body(page).waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    expect(
      await page.evaluate(
        `performance.getEntriesByType('resource').filter((one) => one.name.includes('katex')).length`,
      ),
    ).toBe(0);
    expect(await body(page).textContent()).toContain('$5 or $6, see \\(x\\).');
    await bench.server().prompt(id, 'and now?');
    const turn = await bench.turn(id, 1);
    turn.text(
      'Inline \\(a^2 + b^2 = c^2\\), then\n\n$$\n\\frac{1}{2}\n$$\n\n\\[ \\sqrt{2} \\]\n\nbroken \\(\\frac{1\\) end',
    );
    turn.complete();
    await isStored(page);
    await until('three are set', async () => (await body(page).locator('.formula.set .katex').count()) === 3);
    expect(await body(page).locator('.formula-display').count()).toBe(2);
    expect(await body(page).locator('.formula:not(.set)').allInnerTexts()).toEqual(['\\frac{1']);
    expect(asked.some((url) => url.includes('katex.min.js'))).toBe(true);
    expect(page.problems).toEqual([]);
  });

  test('[UI23] a formula can neither link, nor load, nor run without end', async () => {
    const page = await showing(
      [
        '\\(\\href{javascript:alert(1)}{x}\\) \\(\\includegraphics{http://127.0.0.1:1/x.png}\\) \\(\\htmlClass{note}{y}\\)',
        '\\(\\def\\a{\\a\\a}\\a\\)',
        '$$\\rule{999999em}{999999em}$$',
      ].join('\n\n'),
    );
    await until('they were tried', async () => (await body(page).locator('.formula[title]').count()) > 0);
    expect(await body(page).locator('a, img, .note').count()).toBe(0);
    expect(await page.evaluate(DANGERS)).toEqual([]);
    expect(await page.evaluate('document.querySelector("#scroll").scrollWidth <= innerWidth')).toBe(true);
  });

  test('[UI4] hostile Markdown is harmless while it arrives and when it is stored', async () => {
    const evil = [
      '<script>window.pwned = 1</script><img src=x onerror="window.pwned = 2"><svg/onload="window.pwned=3">',
      '[a](javascript:window.pwned=4) [b](JaVaScRiPt:window.pwned=4) [c](data:text/html,<script>pwned=1</script>) <a href="&#106;avascript:window.pwned=4">d</a>',
      '![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+) ![y](javascript:window.pwned=5)',
      '<iframe srcdoc="<script>parent.pwned=6</script>"></iframe><object data="x"></object><embed src="x"><base href="//evil.invalid/">',
      '<form action="/api/auth/logout"><input type="text" autofocus><button formaction="x">b</button></form><style>*{display:none}</style><link rel=stylesheet href=x><meta http-equiv=refresh content=0>',
      '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.pwned=7&gt;">',
      '<noscript><p title="</noscript><img src=x onerror=window.pwned=8>"></noscript><details open ontoggle="window.pwned=9"><summary>s</summary></details>',
      '<div id="app" name="cookie" class="composer" style="position:fixed;inset:0">over</div>',
      '| <img src=x onerror=window.pwned=10> | b |\n|---|---|\n| `<b>` | <b onmouseover="window.pwned=11">x</b> |',
      '```"><script>window.pwned=12</script>\n<script>window.pwned=13</script>\n```',
      '~~~\nnever closed <script>window.pwned=14</script>',
    ].join('\n\n');
    const id = await bench.session();
    const page = await bench.open(id);
    await bench.server().prompt(id, 'attack');
    const turn = await bench.turn(id);
    for (const piece of evil.match(/[\s\S]{1,11}/g) ?? []) turn.text(piece);
    await page.locator('.live .markdown', { hasText: 'never closed' }).waitFor();
    expect(await page.evaluate(DANGERS)).toEqual([]);
    turn.complete();
    await isStored(page);
    expect(await page.evaluate(DANGERS)).toEqual([]);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(await page.locator('.turns [style*="position"], .turns #app, .turns .composer').count()).toBe(0);
  });

  test('[UI23] no text holds the page up, however long, dense or deep it is', async () => {
    const texts = {
      'one line of a megabyte': 'word '.repeat(200_000),
      'signs that mean nothing': '*a'.repeat(400_000),
      'quotes in quotes': `${'>'.repeat(5_000)} deep`,
      'lists in lists': Array.from({ length: 150 }, (_, at) => `${' '.repeat(at * 2)}- item`).join('\n'),
      'a table of five thousand rows': `| a | b |\n|---|---|\n${'| one | two |\n'.repeat(5_000)}`,
      'a fence without an end': `\`\`\`js\n${'const a = 1;\n'.repeat(8_000)}`,
      'tags in tags': '<div>'.repeat(3_000),
    };
    const id = await bench.session();
    for (const [name, text] of Object.entries(texts)) await bench.answered(id, name, text);
    const page = await bench.open(id);
    await until('the last is there', async () => (await page.locator('.user').count()) === Object.keys(texts).length);
    expect(await page.locator('.assistant').first().textContent()).toContain('word word');
    const all = page.getByRole('button', { name: 'Show all 1,000,000 characters' });
    await all.waitFor();
    // Whatever is on the page, a person can write.
    await page.getByLabel('Message', { exact: true }).fill('still here');
    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('still here');
    expect(page.problems).toEqual([]);
  });

  test('[UI23] a long block that grows is shown as it grows, and its end is the whole text', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    await bench.server().prompt(id, 'code');
    const turn = await bench.turn(id);
    turn.text('```js\n');
    let said = 0;
    const lines = Array.from({ length: 400 }, (_, at) => `line(${at});\n`);
    const code = page.locator('.live pre code');
    for (const upTo of [1, 100, 101, 400]) {
      for (const line of lines.slice(said, upTo)) turn.text(line);
      said = upTo;
      await until(`line ${upTo} is there`, async () =>
        ((await code.textContent()) ?? '').includes(`line(${upTo - 1});`),
      );
    }
    expect((await code.textContent())?.trimEnd()).toBe(lines.join('').trimEnd());
    turn.text('```\n\nAfter it.');
    await page.locator('.live .markdown p', { hasText: 'After it.' }).waitFor();
    turn.complete();
    await isStored(page);
    expect((await body(page).locator('pre code').textContent())?.trimEnd()).toBe(lines.join('').trimEnd());
    expect(await body(page).locator('.hljs-title').count()).toBe(400);
  });

  test('[UI23] each block of a text has its own direction, and code has none', async () => {
    const page = await showing('Hello there.\n\nשלום עולם.\n\n- مرحبا\n- hi\n\n`code ←`\n\n```\nlet a\n```');
    /** At which edge of the page a paragraph begins. */
    const edge = (text: string) =>
      page.evaluate(`(() => {
        const node = [...document.querySelectorAll('.markdown :is(p, li)')].find((one) => one.textContent.includes('${text}'));
        const range = document.createRange();
        range.selectNodeContents(node);
        const words = range.getBoundingClientRect();
        const box = node.getBoundingClientRect();
        return words.left - box.left < box.right - words.right ? 'left' : 'right';
      })()`);
    expect(await edge('Hello')).toBe('left');
    expect(await edge('שלום')).toBe('right');
    expect(await edge('مرحبا')).toBe('right');
    expect(await edge('hi')).toBe('left');
    expect(await page.evaluate(`getComputedStyle(document.querySelector('.markdown pre')).direction`)).toBe('ltr');
  });

  test('[AT5] pictures that came with a prompt are shown in place, other files by name and size', async () => {
    const id = await bench.session();
    const attachments = [
      await uploaded(bench.server(), id, 'dot.png', PNG),
      await uploaded(bench.server(), id, 'evil.svg', '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'),
      await uploaded(bench.server(), id, 'page.html', '<script>alert(1)</script>'),
    ];
    await bench.answered(id, 'look', 'seen', { attachments });
    const page = await bench.open(id);
    const picture = page.getByRole('img', { name: 'dot.png' });
    await picture.waitFor();
    await until('it is loaded', () => page.evaluate(`document.querySelector('.attached img').naturalWidth === 1`));
    expect(await page.locator('.attached img').count()).toBe(1);
    expect(await page.locator('.attached-name').allInnerTexts()).toEqual(['evil.svg', 'page.html']);
    expect(await page.locator('.attached-size').allInnerTexts()).toEqual(['59 B', '25 B']);
  });

  test('[UI20] what one reads stays in its place while its turn grows above and below it, and when it ends', async () => {
    const id = await bench.session();
    const page = await bench.open(id, { viewport: { width: 900, height: 700 } });
    // As in a browser that does not do it by itself.
    await page.evaluate("document.querySelector('#scroll').style.overflowAnchor = 'none'");
    await bench.server().prompt(id, 'write much');
    const turn = await bench.turn(id);
    const call = { tool_id: 't', name: 'read_file', args: { path: 'x' }, preview: 'x' };
    turn.text(Array.from({ length: 30 }, (_, at) => `before ${at}\n\n`).join(''));
    turn.say({ type: 'tool.start', payload: call });
    turn.text(Array.from({ length: 60 }, (_, at) => `line ${at}\n\n`).join(''));
    await page.getByText('line 59', { exact: true }).waitFor();
    const read = page.getByText('line 20', { exact: true });
    await read.evaluate((node) => node.scrollIntoView({ block: 'center' }));
    await page.getByRole('button', { name: 'Latest' }).waitFor();
    const place = () => read.evaluate((node) => Math.round(node.getBoundingClientRect().top));
    const before = await place();
    const stays = async () => {
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
      expect(Math.abs((await place()) - before)).toBeLessThan(3);
    };
    turn.text('more at its end');
    await page.getByText('more at its end').waitFor();
    await stays();
    turn.say({
      type: 'tool.complete',
      payload: { ...call, result: 'much\n'.repeat(50), is_error: false, duration_s: 1 },
    });
    await page.evaluate("document.querySelector('.live details').open = true");
    await stays();
    await page.evaluate(`(() => {
      const picture = Object.assign(new Image(300, 400), { src: 'favicon.svg' });
      document.querySelector('.live .markdown').prepend(picture);
      return picture.decode();
    })()`);
    await stays();
    turn.complete();
    await isStored(page);
    await stays();
    await stays();
    await page.getByRole('button', { name: 'Latest' }).click();
    await page.getByText('more at its end').waitFor();
  });
});
