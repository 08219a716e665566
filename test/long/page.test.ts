/** The page under rough treatment: reloads, two pages at once, a server that is killed, a slow line. */
import { describe, expect, test } from 'vitest';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import { startChildServer, writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { createPageBench, isStored } from '../support/page-bench.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { createTcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

const bench = createPageBench();
const browser = createBrowser();

const box = (page: OpenPage) => page.getByLabel('Message', { exact: true });
const plain = (texts: string[]) => texts.join(' ').replaceAll(/\s+/g, ' ').trim();
// Of what is out of sight a browser knows the text, but not how it looks.
const shown = async (page: OpenPage) => plain(await page.locator('.assistant .markdown').allTextContents());
const promptsOn = (page: OpenPage) => page.locator('.user .bubble-text').allTextContents();
const isLive = (page: OpenPage) => page.locator('.connection[data-state="live"]').waitFor();

async function send(page: OpenPage, text: string): Promise<void> {
  await box(page).fill(text);
  await box(page).press('Enter');
}

/** The notes behind the eighth prompt from the end: a page that was loaded anew has no more of the past than that for sure. */
const NOTES = `(() => {
  const all = [...document.querySelectorAll('.user .bubble-text, .note')];
  const prompts = all.filter((one) => one.matches('.bubble-text'));
  const since = all.indexOf(prompts.at(-8) ?? prompts[0]);
  return all.slice(since).filter((one) => one.matches('.note')).map((one) => one.textContent);
})()`;

/** What a person sees of the end of a conversation; how far back a page has read is its own matter. */
const view = async (page: OpenPage) =>
  JSON.stringify([
    (await promptsOn(page)).slice(-8),
    (await shown(page)).slice(-200),
    await page.locator('.chip-text').allTextContents(),
    await page.locator('.request').count(),
    await page.evaluate(NOTES),
    await page.locator('.stop:visible').count(),
  ]);

describe.skipIf(browserMissing !== '')(`the page under rough treatment ${browserMissing}`, () => {
  test('[UI1] reloads at twenty random moments of a stream leave the exact text', async () => {
    const seed = testSeed();
    console.log(`seed ${seed}`);
    const random = seededRandom(seed);
    const id = await bench.session();
    const page = await bench.open(id);
    await send(page, 'talk');
    const turn = await bench.turn(id);
    let said = '';
    for (let round = 0; round < 20; round += 1) {
      const words = 20 + Math.floor(random() * 200);
      const before = Math.floor(random() * words);
      for (let word = 0; word < words; word += 1) {
        const text = `${round}.${word}${random() < 0.05 ? '\n\n' : ' '}`;
        turn.text(text);
        said += text;
        // In the middle of it, whatever the page has heard by then.
        if (word === before) void page.reload().catch(() => {});
      }
      await until(`round ${round} is shown`, async () => (await shown(page).catch(() => '')) === plain([said]));
    }
    turn.complete();
    await isStored(page);
    expect(await shown(page)).toBe(plain([said]));
    await page.reload();
    await until('it is stored so', async () => (await shown(page)) === plain([said]));
    expect(await promptsOn(page)).toEqual(['talk']);
  });

  test('[UI1][UI36] two pages stay equal through a hundred random actions', async () => {
    const seed = testSeed();
    console.log(`seed ${seed}`);
    const random = seededRandom(seed);
    const id = await bench.session({ title: 'shared' });
    const pages = [await bench.open(id), await bench.open(id, { viewport: { width: 390, height: 844 } })] as const;
    let index = 0;
    const answers: Promise<unknown>[] = [];
    const steps: string[] = [];
    let last = '';
    const running = async (): Promise<string | undefined> => {
      const { json } = await bench.server().call('GET', `/api/sessions/${id}/prompts?pending=1`);
      return json.admissions.find((one: { status: string }) => one.status === 'started')?.admission_id;
    };
    const someone = () => pages[random() < 0.5 ? 0 : 1];
    for (let step = 0; step < 100; step += 1) {
      const page = someone();
      const dice = random();
      const turnOf = await running();
      // Claimed is not begun: a stop in between ends a turn that its agent never sees.
      if (turnOf !== undefined) await bench.turn(id, index);
      if (turnOf === undefined) {
        steps.push('send');
        await send(page, `prompt ${step}`);
        const turn = await bench.turn(id, index);
        turn.text(`answer ${step} `);
      } else if (dice < 0.35) {
        steps.push('say');
        (await bench.turn(id, index)).text(`more ${step} `);
      } else if (dice < 0.5) {
        steps.push('queue');
        await send(page, `queued ${step}`);
      } else if (dice < 0.6 && (await page.locator('.chip').count()) > 0) {
        steps.push('cancel');
        await page.locator('.chip').first().getByRole('button', { name: 'Cancel' }).click();
      } else if (dice < 0.7 && (await page.locator('.request').count()) === 0) {
        steps.push('ask');
        const choices: ('once' | 'deny')[] = ['once', 'deny'];
        const { turn } = await bench.turn(id, index);
        answers.push(
          turn
            .ask({ kind: 'approval', tool_name: 'rm', command: `rm ${step}`, description: '', choices })
            .catch(() => {}),
        );
        await page.locator('.request').waitFor();
      } else if (dice < 0.75) {
        steps.push('reload');
        await page.reload();
        await isLive(page);
      } else if (dice < 0.85) {
        steps.push('stop');
        await page.getByRole('button', { name: 'Stop' }).click();
        await until('it stopped', async () => (await bench.turn(id, index)).signal.aborted);
        await until('its turn is over', async () => (await running()) !== turnOf);
        index += 1;
      } else {
        steps.push('end');
        if ((await page.locator('.request').count()) > 0)
          await page.getByRole('button', { name: 'Allow once' }).click();
        (await bench.turn(id, index)).complete();
        await until('its turn is over', async () => (await running()) !== turnOf);
        index += 1;
      }
      await until(`both show the same after ${steps.slice(-3).join(', ')} (seed ${seed})`, async () => {
        const [one, other] = [await view(pages[0]), await view(pages[1])];
        last = `${one}\n${other}`;
        return one === other;
      }).catch((error) => {
        throw new Error(last, { cause: error });
      });
    }
    console.log(steps.join(' '));
  });

  test('[UI2][UI5] a server that is killed under an open page, also in the middle of a request, loses and doubles nothing', async () => {
    const home = await temporaryFolder();
    const provider = await startFakeProvider();
    await writeProviderHome(home, provider.baseUrl);
    let server = await startChildServer({ home });
    const relay = await createTcpRelay(server.url);
    const made = await server.call('POST', '/api/sessions', { title: 'rough' });
    const id = made.json.session.session_id;
    const page = await browser.open(`${relay.url}/#/s/${id}`);
    await isLive(page);
    const sent: string[] = [];
    for (let round = 0; round < 6; round += 1) {
      const text = `round ${round} script:chunks=30,delay=20,id=r${round}`;
      sent.push(text);
      // The server dies at another moment of the request or of the turn each time; the person sees it and sends again.
      void send(page, text).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, [0, 15, 40, 120, 300, 600][round]));
      await server.kill();
      server = await startChildServer({ home });
      relay.mend(server.url);
      await isLive(page);
      await until('the box knows what became of it', async () => {
        const isLeft = (await box(page).inputValue()) !== '';
        const stored = (await server.call('GET', `/api/sessions/${id}/prompts?limit=1000`)).json.admissions;
        const isThere = stored.some((one: { text: string }) => one.text === text);
        if (isLeft && !(await box(page).getAttribute('readonly'))) await box(page).press('Enter');
        return !isLeft && isThere;
      });
      await until('the session is idle', async () => {
        return (await server.call('GET', `/api/sessions/${id}`)).json.session.status === 'idle';
      });
    }
    await isStored(page);
    const stored = (await server.call('GET', `/api/sessions/${id}/prompts?limit=1000`)).json.admissions;
    expect(stored.map((one: { text: string }) => one.text)).toEqual(sent);
    expect(await promptsOn(page)).toEqual(sent);
    await provider.close();
  });

  test('[UI2][UI5] on a slow line that breaks now and then a conversation is whole', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    const client = await page.context().newCDPSession(page);
    const line = (offline: boolean) =>
      client.send('Network.emulateNetworkConditions', {
        offline,
        latency: 400,
        downloadThroughput: 50_000,
        uploadThroughput: 50_000,
      });
    await line(false);
    for (let round = 0; round < 4; round += 1) {
      await send(page, `prompt ${round}`);
      const turn = await bench.turn(id, round);
      for (let word = 0; word < 300; word += 1) turn.text(`${round}.${word} `);
      await line(true);
      for (let word = 300; word < 400; word += 1) turn.text(`${round}.${word} `);
      await line(false);
      await until('all of it is shown', async () => (await shown(page)).endsWith(`${round}.399`));
      turn.complete();
      await isStored(page);
    }
    expect(await promptsOn(page)).toEqual(['prompt 0', 'prompt 1', 'prompt 2', 'prompt 3']);
    const all = [0, 1, 2, 3].flatMap((round) => Array.from({ length: 400 }, (_, word) => `${round}.${word}`));
    expect(await shown(page)).toBe(all.join(' '));
  });
});
