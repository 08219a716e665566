/** A conversation of ten thousand messages: opens at its end, goes anywhere, and never moves under a reader's eyes. */
import { describe, expect, test } from 'vitest';
import { browserMissing, type OpenPage } from '../support/browser.ts';
import { createPageBench, isStored } from '../support/page-bench.ts';
import { until } from '../support/until.ts';

const bench = createPageBench();
const ROWS = 10_000;
/** A long session that is only read. */
let shared: Promise<string> | null = null;
const readSession = () => {
  shared ??= longSession();
  return shared;
};

const runOf = (turn: number) => turn.toString(16).padStart(32, '0');

/** A session of ten thousand messages, 5,000 questions with an answer each. @returns its id */
async function longSession(): Promise<string> {
  const messages = Array.from({ length: ROWS }, (_, at) => {
    const turn = at >> 1;
    const isPrompt = at % 2 === 0;
    const content = isPrompt
      ? `question ${turn}`
      : `answer ${turn}: ${'some **words** and `code` '.repeat(1 + (turn % 9))}${turn % 5 === 0 ? '\n\n- a\n- b\n- c' : ''}`;
    const role = isPrompt ? 'user' : 'assistant';
    return { id: `${runOf(turn)}.${at % 2}`, role, content, timestamp: 1_700_000_000 + at, run_id: runOf(turn) };
  });
  const document = { format: 'turnkeep.session', version: 1, session: { title: 'long one' }, messages };
  const answer = await bench.server().call('POST', '/api/sessions/import', document);
  expect(answer.status).toBe(201);
  return answer.json.session.session_id;
}

const rowsOn = (page: OpenPage) => page.locator('.turns > .turn').count();
/** The text of the first and last message in the document. */
const edges = (page: OpenPage): Promise<[string, string]> =>
  page.evaluate(`(() => {
    const all = [...document.querySelectorAll('.turns > .turn :is(.bubble-text, .markdown)')].map((one) => one.textContent);
    return [all[0], all.at(-1)];
  })()`);
const question = (page: OpenPage, turn: number) => page.getByText(`question ${turn}`, { exact: true });

/** Waits until the message with this text is marked, and no other. */
async function isMarked(page: OpenPage, text: string): Promise<void> {
  await until(`"${text}" is marked`, async () => {
    const [marked, ...others] = await page.locator('.marked').allTextContents();
    return others.length === 0 && (marked?.includes(text) ?? false);
  });
}

/** Waits in the page for a few frames. */
const FRAMES =
  'new Promise((done) => { let left = 5; const next = () => (left-- ? requestAnimationFrame(next) : done()); next(); })';

/** Scrolls to the first row that is there, as somebody who reads backwards does. */
async function scrollBack(page: OpenPage): Promise<void> {
  await page.locator('#scroll').hover();
  await page.mouse.wheel(0, -30_000);
}

describe.skipIf(browserMissing !== '')(`a long conversation ${browserMissing}`, () => {
  test('[UI20] it opens at its end, brings earlier messages as they are scrolled to, and what is read stays in place', async () => {
    const id = await readSession();
    const page = await bench.open(id);
    await question(page, 4999).waitFor();
    expect(await rowsOn(page)).toBeLessThan(100);
    const isAtEnd = `(() => { const s = document.querySelector('#scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 2; })()`;
    expect(await page.evaluate(isAtEnd)).toBe(true);

    // What stands on the screen when a page of earlier messages comes stays where it is.
    const first = (await edges(page))[0];
    await page.route('**/messages?*before=*', async (route) => {
      await until('it is let through', () => through);
      await route.continue();
    });
    let through = false;
    await scrollBack(page);
    await until('the beginning is in sight', () => page.evaluate(`document.querySelector('#scroll').scrollTop < 5`));
    const top = (): Promise<number> =>
      page.evaluate(`[...document.querySelectorAll('.bubble-text')]
        .find((one) => one.textContent === ${JSON.stringify(first)}).getBoundingClientRect().top`);
    const before = await top();
    through = true;
    await until('earlier ones are there', async () => (await edges(page))[0] !== first);
    await page.unroute('**/messages?*before=*');
    await page.evaluate(FRAMES);
    expect(Math.abs((await top()) - before)).toBeLessThan(3);

    expect(page.problems).toEqual([]);
  });

  test('[UI20] a message is opened by its address, marked, and read from there in both directions', async () => {
    const id = await readSession();
    const page = await bench.open(`${id}/${encodeURIComponent(`${runOf(2500)}.0`)}`);
    await isMarked(page, 'question 2500');
    const inSight = () =>
      page.evaluate(`(() => {
        const { top, bottom } = document.querySelector('.marked').getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight;
      })()`);
    await until('it is in sight', inSight);
    expect(await rowsOn(page)).toBeLessThan(200);
    await scrollBack(page);
    await until('earlier ones are there', async () => Number((await edges(page))[0].match(/\d+/)![0]) < 2478);
    // As a person does: a turn of the wheel may come before there is room for it.
    await until('later ones are there', async () => {
      await page.mouse.wheel(0, 60_000);
      return Number((await edges(page))[1].match(/\d+/)![0]) > 2560;
    });
    // Nothing twice, nothing left out.
    const questions = await page.locator('.bubble-text').allTextContents();
    const numbers = questions.map((text) => Number(text.match(/\d+/)![0]));
    expect(numbers).toEqual(numbers.map((_, at) => numbers[0]! + at));
  });

  test('[UI20] the last message and the very first are opened by their addresses, and one that is gone is said to be', async () => {
    const id = await readSession();
    const page = await bench.open(`${id}/${runOf(0)}.0`);
    await isMarked(page, 'question 0');
    expect(await page.getByRole('button', { name: 'Show earlier messages' }).count()).toBe(0);
    await page.evaluate(`location.hash = '#/s/${id}/${runOf(4999)}.1'`);
    await isMarked(page, 'answer 4999');
    await page.evaluate(`location.hash = '#/s/${id}/${runOf(9999)}.1'`);
    await page.getByText('This message is no longer in the conversation.').waitFor();
  });

  test('[UI20] who reads far back is not moved by a turn that runs, and finds its answer at the end', async () => {
    const id = await longSession();
    const page = await bench.open(`${id}/${runOf(3000)}.0`);
    await page.locator('.marked').waitFor();
    // The mark is brought to the middle once more when the rows around it have their height.
    await page.evaluate(FRAMES);
    const place = () => page.locator('.marked').evaluate((node) => Math.round(node.getBoundingClientRect().top));
    const before = await place();
    await bench.server().prompt(id, 'one more');
    const turn = await bench.turn(id);
    for (let at = 0; at < 50; at += 1) turn.text(`piece ${at}\n\n`);
    turn.complete();
    await until('it is stored', async () => (await bench.server().messages(id)).length === ROWS + 2);
    await isStored(page);
    expect(await place()).toBe(before);
    await page.getByRole('button', { name: 'Latest' }).click();
    await page.getByText('piece 49').waitFor();
  });

  test('[UI20] what is out of sight is still selected and found', async () => {
    const page = await bench.open(await readSession());
    await question(page, 4999).waitFor();
    const selected = await page.evaluate(`(() => {
      getSelection().selectAllChildren(document.querySelector('.turns'));
      return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(getSelection().toString()))));
    })()`);
    const [first] = await edges(page);
    for (const text of [first, 'question 4999', 'answer 4999']) expect(selected).toContain(text);
    await page.evaluate('getSelection().removeAllRanges()');
    expect(await page.evaluate(`window.find(${JSON.stringify(first)})`)).toBe(true);
  });

  test('[UI20] earlier messages that could not be loaded are asked for again by the person', async () => {
    const id = await readSession();
    const page = await bench.open(id);
    await question(page, 4999).waitFor();
    await page.route('**/messages?*before=*', (route) => route.abort());
    await scrollBack(page);
    const again = page.getByRole('button', { name: 'Earlier messages could not be loaded. Try again' });
    await again.waitFor();
    await page.unroute('**/messages?*before=*');
    const [first] = await edges(page);
    await again.click();
    await until('they are there', async () => (await edges(page))[0] !== first);
  });
});
