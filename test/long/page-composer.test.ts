/** A person at the message box: writes, sends, says something to a running turn, changes what waits, adds files. */
import { describe, expect, test } from 'vitest';
import { browserMissing, type OpenPage } from '../support/browser.ts';
import { answersOn, createPageBench, isStored, promptsOn } from '../support/page-bench.ts';
import { until } from '../support/until.ts';
import { PNG, uploaded } from '../support/uploads.ts';

const bench = createPageBench();

const box = (page: OpenPage) => page.getByLabel('Message', { exact: true });
const written = (page: OpenPage) => box(page).inputValue();
const chips = (page: OpenPage) => page.locator('.chip-text').allInnerTexts();
const file = (page: OpenPage, name: string) => page.locator('.file', { hasText: name });
const errorIn = async (page: OpenPage) => (await page.locator('#composer-error').textContent()) ?? '';

async function send(page: OpenPage, text: string): Promise<void> {
  await box(page).fill(text);
  await box(page).press('Enter');
}

/** A page on a new session. */
async function atWork(fields?: object) {
  const id = await bench.session(fields);
  return { id, page: await bench.open(id) };
}

/** What the tab keeps of the box of a session. */
const keptOf = (page: OpenPage, id: string): Promise<{ unsaved: boolean }> =>
  page.evaluate(`JSON.parse(sessionStorage.getItem('turnkeep:' + location.pathname + ':draft:${id}'))`);

/** Gives files to the page as a paste or a drop does. */
async function give(page: OpenPage, how: 'paste' | 'drop', ...files: { name: string; bytes: string }[]) {
  await page.evaluate(`{
    const data = new DataTransfer();
    for (const { name, bytes } of ${JSON.stringify(files)}) data.items.add(new File([bytes], name));
    const how = { bubbles: true, cancelable: true };
    const event = ${
      how === 'paste'
        ? "new ClipboardEvent('paste', { ...how, clipboardData: data })"
        : "new DragEvent('drop', { ...how, dataTransfer: data })"
    };
    document.querySelector('#message').dispatchEvent(event);
  }`);
}

/** Presses Enter as the browser tells it with these fields. */
const enterWith = (page: OpenPage, fields: object) =>
  page.evaluate(`{
    const how = { key: 'Enter', bubbles: true, cancelable: true, ...${JSON.stringify(fields)} };
    document.querySelector('#message').dispatchEvent(new KeyboardEvent('keydown', how));
  }`);

/** The names of the files that came with a turn. */
async function filesOf(id: string, { turn }: { turn: { attachments: readonly string[] } }): Promise<string[]> {
  const { json } = await bench.server().call('GET', `/api/sessions/${id}/attachments`);
  const names = new Map(json.attachments.map((one: { id: string; name: string }) => [one.id, one.name]));
  return turn.attachments.map((file) => names.get(file) as string);
}

describe.skipIf(browserMissing !== '')(`the message box ${browserMissing}`, () => {
  test('[UI30] the box grows with its text, and Enter, Shift+Enter and an input method do what people expect', async () => {
    const { id, page } = await atWork();
    const height = async () => (await box(page).boundingBox())!.height;
    const before = await height();
    await box(page).pressSequentially('one');
    await box(page).press('Shift+Enter');
    await box(page).pressSequentially('two');
    expect(await written(page)).toBe('one\ntwo');
    expect(await height()).toBeGreaterThan(before + 15);
    await box(page).fill(Array.from({ length: 100 }, (_, n) => `line ${n}`).join('\n'));
    expect(await height()).toBeLessThan(0.42 * page.viewportSize()!.height);
    // An Enter that chooses a word of an input method; the last is how another engine tells it.
    await box(page).fill('にほん');
    await enterWith(page, { isComposing: true });
    await enterWith(page, { keyCode: 229 });
    expect(await written(page)).toBe('にほん');
    await box(page).press('Enter');
    expect((await bench.turn(id)).turn.input).toBe('にほん');
    expect(await written(page)).toBe('');
    (await bench.turn(id)).complete();
  });

  test('[UI32] what waits is a chip that can be cancelled, or taken back whole to be changed', async () => {
    const { id, page } = await atWork();
    await send(page, 'p1');
    const first = await bench.turn(id);
    const long = `p2 ${'with many words '.repeat(60)}to its very end`;
    await send(page, long);
    await until('it waits', async () => (await chips(page)).length === 1);
    await send(page, 'p3');
    await until('both wait', async () => (await chips(page)).length === 2);
    await box(page).fill('half a thought');
    await page.locator('.chip').first().getByRole('button', { name: 'Change' }).click();
    await until('the text is back', async () => (await written(page)) === `half a thought\n\n${long}`);
    await until('one waits', async () => (await chips(page)).join() === 'p3');
    await page.locator('.chip').getByRole('button', { name: 'Cancel' }).click();
    await until('none waits', async () => (await chips(page)).length === 0);
    await box(page).fill('p2, but shorter');
    await box(page).press('Enter');
    await until('it waits', async () => (await chips(page)).length === 1);
    // What was said to the agent is not the page's when it comes back.
    await send(page, ' /rewind 3');
    await until('both wait', async () => (await chips(page)).join() === 'p2, but shorter,/rewind 3');
    await page.locator('.chip').last().getByRole('button', { name: 'Change' }).click();
    await until('the text is back', async () => (await written(page)) === ' /rewind 3');
    await box(page).press('Enter');
    await until('both wait', async () => (await chips(page)).length === 2);
    await page.locator('.chip').last().getByRole('button', { name: 'Cancel' }).click();
    await until('one waits', async () => (await chips(page)).length === 1);
    first.complete();
    const second = await bench.turn(id, 1);
    expect(second.turn.input).toBe('p2, but shorter');
    second.complete();
    await isStored(page);
    expect(await promptsOn(page)).toEqual(['p1', 'p2, but shorter']);
    expect(page.problems).toEqual([]);
  });

  test('[UI32] a message that is taken back brings its files along', async () => {
    const { id, page } = await atWork();
    await send(page, 'p1');
    const first = await bench.turn(id);
    const attached = await uploaded(bench.server(), id, 'plan.txt', 'words');
    await bench.server().prompt(id, 'see the file', { attachments: [attached] });
    const chip = page.locator('.chip');
    await chip.waitFor();
    expect((await chip.textContent()) ?? '').toContain('(+1 file)');
    await chip.getByRole('button', { name: 'Change' }).click();
    await until('it is back', async () => (await written(page)) === 'see the file');
    await file(page, 'plan.txt').waitFor();
    await box(page).press('Enter');
    await chip.waitFor();
    first.complete();
    const second = await bench.turn(id, 1);
    expect(second.turn.attachments).toEqual([attached]);
    second.complete();
  });

  test('[UI32] while a turn runs a text waits, or is said to that turn at once', async () => {
    const { id, page } = await atWork();
    await send(page, 'begin');
    const turn = await bench.turn(id);
    turn.text('at work ');
    const now = page.getByRole('button', { name: 'Send now' });
    expect(await now.isHidden()).toBe(true);
    const asked = page.waitForRequest('**/prompts');
    await box(page).fill('mind the gap');
    await now.click();
    expect((await asked).postDataJSON()).toMatchObject({ text: 'mind the gap', mode: 'steer' });
    await until('the box is empty', async () => (await written(page)) === '');
    const again = page.waitForRequest('**/prompts');
    await box(page).fill('and the step');
    await box(page).press('Control+Enter');
    expect((await again).postDataJSON()).toMatchObject({ text: 'and the step', mode: 'steer' });
    turn.complete();
    // An agent that takes nothing while it runs gets them as prompts of their own.
    for (const index of [1, 2]) (await bench.turn(id, index)).complete();
    await isStored(page);
    expect(await promptsOn(page)).toEqual(['begin', 'mind the gap', 'and the step']);
  });

  test('[UI31] files are chosen, pasted and dropped, and go with the message', async () => {
    const { id, page } = await atWork();
    await page.locator('input[type="file"]').setInputFiles([{ name: 'dot.png', mimeType: 'image/png', buffer: PNG }]);
    await give(page, 'paste', { name: 'pasted.txt', bytes: 'from the clipboard' });
    await give(page, 'drop', { name: 'dropped <b>.txt', bytes: 'from a folder' }, { name: 'gone.txt', bytes: 'x' });
    await until('all are there', async () => (await page.locator('.file').count()) === 4);
    await until('none is on its way', async () => (await page.locator('.file progress').count()) === 0);
    await file(page, 'gone.txt').getByRole('button', { name: 'Remove gone.txt' }).click();
    // They are there after a reload, as the text is.
    await box(page).fill('look at these');
    await page.reload();
    await until('the files are back', async () => (await page.locator('.file').count()) === 3);
    await box(page).press('Enter');
    const turn = await bench.turn(id);
    expect(await filesOf(id, turn)).toEqual(['dot.png', 'pasted.txt', 'dropped _b_.txt']);
    turn.complete();
    await until('the box is empty', async () => (await page.locator('.file').count()) === 0);
    expect(page.problems).toEqual([]);
  });

  test('[UI31] a file that is refused says why and keeps the message back; without it the message goes', async () => {
    const { id, page } = await atWork();
    let refuse = true;
    await page.route('**/attachments', (route) => {
      if (refuse && route.request().method() === 'POST') {
        return route.fulfill({ status: 413, json: { error: 'The file is larger than 20 MB.', code: 'too_large' } });
      }
      return route.continue();
    });
    await give(page, 'drop', { name: 'huge.bin', bytes: 'x' }, { name: 'also.txt', bytes: 'y' });
    await until('it says why', async () =>
      ((await file(page, 'huge.bin').textContent()) ?? '').includes('larger than 20 MB'),
    );
    await send(page, 'with files');
    await until('it is told', async () => (await errorIn(page)).includes('Your text is still here'));
    expect(await written(page)).toBe('with files');
    refuse = false;
    await file(page, 'also.txt').getByRole('button', { name: 'Try again' }).click();
    await until('both are there', async () => (await page.locator('.file.failed').count()) === 0);
    await file(page, 'huge.bin').getByRole('button', { name: 'Remove' }).click();
    await box(page).press('Enter');
    const turn = await bench.turn(id);
    expect(await filesOf(id, turn)).toEqual(['also.txt']);
    turn.complete();
  });

  test('[UI31] the first message of a new conversation takes its files along', async () => {
    const page = await bench.open('');
    await give(page, 'paste', { name: 'first.txt', bytes: 'words' });
    await send(page, 'a new one with a file');
    await until('it is in a conversation', () => /#\/s\/.+/.test(page.url()));
    const id = page.url().split('/').at(-1)!;
    const turn = await bench.turn(id);
    expect(await filesOf(id, turn)).toEqual(['first.txt']);
    turn.complete();
  });

  test('[UI31] while a file is on its way its chip says how far', async () => {
    const { page } = await atWork();
    const client = await page.context().newCDPSession(page);
    await client.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: 20,
      downloadThroughput: 1_000_000,
      uploadThroughput: 60_000,
    });
    await give(page, 'drop', { name: 'slow.bin', bytes: 'x'.repeat(200_000) });
    const bar = file(page, 'slow.bin').locator('progress');
    await until('it is part of the way', async () => Number(await bar.getAttribute('value')) > 0.1);
    await file(page, 'slow.bin').getByRole('button', { name: 'Remove' }).click();
    await until('it is gone', async () => (await page.locator('.file').count()) === 0);
  });

  test('[UI30] a draft is there on another device, with what it was about', async () => {
    const { id, page } = await atWork();
    const open = await bench.open(id);
    await box(page).fill('begun on the laptop');
    const saved = async () => (await bench.server().call('GET', `/api/sessions/${id}`)).json.session.draft;
    await until('it is saved', async () => (await saved()) === 'begun on the laptop');
    const phone = await bench.open(id, { hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } });
    for (const one of [open, phone]) {
      await until('it is offered', async () => (await written(one)) === 'begun on the laptop');
    }
    await box(page).fill('begun on the laptop, and');
    await until('it is followed', async () => (await written(open)) === 'begun on the laptop, and');
    // What somebody writes is theirs, whatever is written elsewhere.
    await box(open).fill('my own words');
    await until('it is saved', async () => (await saved()) === 'my own words');
    await until('it is followed', async () => (await written(phone)) === 'my own words');
    expect(await written(page)).toBe('begun on the laptop, and');
    await page.reload();
    // It knows the conversation, and with it the draft.
    await page.getByRole('button', { name: 'Rename this conversation' }).waitFor();
    expect(await written(page)).toBe('begun on the laptop, and');
    expect(await saved()).toBe('my own words');
    // The Enter of a touch keyboard is a new line, so the button sends.
    await box(phone).press('Enter');
    expect(await written(phone)).toContain('\n');
    await phone.getByRole('button', { name: 'Send', exact: true }).click();
    (await bench.turn(id)).complete();
    await until('it is sent', async () => (await promptsOn(phone)).length === 1);
    expect(await answersOn(phone)).toEqual([]);
    await until('nothing is left to be offered', async () => (await saved()) === '');
    expect(await written(phone)).toBe('');
  });

  test('[UI30] a draft that could not be saved is saved with the next connection or page, and the last words as the page goes', async () => {
    const { id, page } = await atWork();
    const saved = async () => (await bench.server().call('GET', `/api/sessions/${id}`)).json.session.draft;
    const inTunnel = async (text: string) => {
      await page.route(`**/api/sessions/${id}`, (route) => route.abort());
      const failed = page.waitForEvent('requestfailed');
      await box(page).fill(text);
      await failed;
      await page.unroute(`**/api/sessions/${id}`);
    };
    await inTunnel('in a tunnel');
    await page.evaluate("window.dispatchEvent(new Event('online'))");
    await until('it is saved', async () => (await saved()) === 'in a tunnel');
    for (const text of ['in another tunnel', '']) {
      await inTunnel(text);
      await page.reload();
      await until('it is saved', async () => (await saved()) === text);
      expect(await written(page)).toBe(text);
    }
    // What was saved here and written on elsewhere is there as it is now.
    await box(page).fill('first');
    await until('it is saved', async () => (await saved()) === 'first');
    await until('the page knows', async () => !(await keptOf(page, id)).unsaved);
    await page.goto('about:blank');
    await bench.server().call('PATCH', `/api/sessions/${id}`, { draft: 'first, then this' });
    await page.goBack();
    await until('it is taken', async () => (await written(page)) === 'first, then this');
    await box(page).fill('in a tunnel, and out');
    await page.goto('about:blank');
    await until('it is saved', async () => (await saved()) === 'in a tunnel, and out');
  });
});
