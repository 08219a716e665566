/** Files that people give to a session, opened in a real browser: whatever they hold, nothing of it runs as the page. */
import { describe, expect, test } from 'vitest';
import { browserMissing, createBrowser } from '../support/browser.ts';
import { startTestServer } from '../support/test-server.ts';
import { attachmentsOf, PNG, uploaded } from '../support/uploads.ts';

const browser = createBrowser();
const SCRIPT = 'localStorage.setItem("ran", document.currentScript?.src || location.pathname)';
const HTML = `<!doctype html><script>${SCRIPT}</script><img src=x onerror='${SCRIPT}'>`;
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" onload='${SCRIPT}'><script>${SCRIPT}</script></svg>`;

/** What looks like one thing and is meant as another. */
const FILES: [name: string, bytes: string | Buffer][] = [
  ['page.html', HTML],
  ['drawing.svg', SVG],
  ['picture.png', HTML],
  ['drawing.png', SVG],
  ['code.js', SCRIPT],
  ['gif.js', `GIF89a=0;${SCRIPT}`],
  ['gif.html', `GIF89a${HTML}`],
  ['dot.html', Buffer.concat([PNG, Buffer.from(HTML)])],
  ['zip.txt', Buffer.concat([Buffer.from([0x50, 0x4b, 3, 4]), Buffer.from(HTML)])],
  ['mark.html', `\uFEFF${HTML}`],
  ['feed.xml', `<?xml version="1.0"?><x xmlns="http://www.w3.org/1999/xhtml"><script>${SCRIPT}</script></x>`],
];

describe.skipIf(browserMissing !== '')(`attachments in a browser ${browserMissing}`, () => {
  test('[AT4] whether it is opened, framed or taken for a script, nothing of a file runs', async () => {
    const server = await startTestServer();
    const id = await server.session();
    const page = await browser.open(server.url);
    const addresses: string[] = [];
    for (const [name, bytes] of FILES)
      addresses.push(`${attachmentsOf(id)}/${await uploaded(server, id, name, bytes)}`);
    // What is only saved is no page to go to.
    for (const address of addresses) await page.goto(server.url + address).catch(() => null);
    await page.goto(server.url);
    await page.evaluate(`Promise.all(${JSON.stringify(addresses)}.flatMap((source) =>
      [['iframe', 'src'], ['object', 'data'], ['embed', 'src'], ['script', 'src'], ['img', 'src']].map(([tag, attribute]) => {
        const element = document.createElement(tag);
        element.setAttribute(attribute, source);
        document.body.append(element);
        // Some say nothing when they are refused.
        return new Promise((resolve) => { element.onload = element.onerror = resolve; setTimeout(resolve, 1000); });
      })))`);
    expect(await page.evaluate(`localStorage.getItem('ran')`)).toBeNull();
  });
});
