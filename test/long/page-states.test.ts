/** How turns stand and end, on the page: what runs, what was stopped, what failed, what came back after a crash. */
import { describe, expect, test } from 'vitest';
import { markerRow } from '../../server/core/marker.ts';
import { browserMissing, type OpenPage } from '../support/browser.ts';
import { answersOn, createPageBench, isStored, promptsOn } from '../support/page-bench.ts';
import { createTcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

const bench = createPageBench();
const note = (page: OpenPage) => page.locator('.note');

/** A session of rows that were stored by somebody else, for what only a crash makes. */
async function stored(messages: object[]): Promise<string> {
  const document = { format: 'turnkeep.session', version: 1, session: { title: 'stored' }, messages };
  return (await bench.server().call('POST', '/api/sessions/import', document)).json.session.session_id;
}

const RUN = 'a'.repeat(32);
const prompt = { id: `${RUN}.0`, role: 'user', content: 'talk', timestamp: 1, run_id: RUN };

describe.skipIf(browserMissing !== '')(`how turns stand and end ${browserMissing}`, () => {
  test('[UI22] a turn that failed says why, and is tried again with one click', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    await bench.server().prompt(id, 'please');
    const turn = await bench.turn(id);
    turn.text('so far');
    turn.fail({ code: 'provider_error', message: 'The provider is on holiday.', retryable: true });
    await isStored(page);
    await note(page).waitFor();
    expect(await note(page).textContent()).toContain('This turn failed: The provider is on holiday.');
    await page.locator('.assistant[data-status="error"]').waitFor();
    await note(page).getByRole('button', { name: 'Try again' }).click();
    const again = await bench.turn(id, 1);
    expect(again.turn.input).toBe('please');
    again.text('all of it');
    again.complete();
    await until('it is answered', async () => (await answersOn(page)).join() === 'all of it');
    await isStored(page);
    expect(await note(page).count()).toBe(0);
    expect(await promptsOn(page)).toEqual(['please']);
  });

  test('[UI22] a context that is full is summarised and the turn tried again; a refusal of that is told', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    await bench.server().prompt(id, 'much');
    (await bench.turn(id)).fail({ code: 'context_too_long', message: 'It is too long.', retryable: false });
    await isStored(page);
    await note(page).getByRole('button', { name: 'Summarise what is older and try again' }).click();
    await page.locator('.notice').first().waitFor();
    expect(await note(page).count()).toBe(1);
  });

  test('[UI22] what a dead process left looks recovered: once explained, its text unfinished, with what helps', async () => {
    const said = { id: `${RUN}.1`, role: 'assistant', content: 'half an answer', timestamp: 2, run_id: RUN };
    const marker = markerRow(RUN, 3, 'process_restart', 'recovered');
    const id = await stored([prompt, { ...said, status: 'partial', recovered: true }, marker]);
    const page = await bench.open(id);
    await note(page).waitFor();
    expect(await note(page).allTextContents()).toEqual([
      expect.stringMatching(/^Response interrupted: .*before this turn finished/),
    ]);
    expect(await page.locator('[data-status="partial"] .markdown').textContent()).toContain('half an answer');
    expect(await note(page).getByRole('button').allTextContents()).toEqual(['Try again', 'Edit and send again']);
    await note(page).getByRole('button', { name: 'Edit and send again' }).click();
    await page.getByLabel('Edit your message').locator('textarea').fill('talk again');
    await page.keyboard.press('Enter');
    const turn = await bench.turn(id);
    expect(turn.turn.input).toBe('talk again');
    turn.complete();
  });

  test('[UI22] what helped is no longer offered under a turn that others came after', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    await bench.server().prompt(id, 'first');
    (await bench.turn(id)).fail({ code: 'network', message: 'No network.', retryable: true });
    await isStored(page);
    await bench.answered(id, 'second', 'answer');
    await until('it is there', async () => (await answersOn(page)).includes('answer'));
    expect(await note(page).count()).toBe(1);
    expect(await note(page).getByRole('button').count()).toBe(0);
  });

  test('[UI22] a page that hears nothing says so of itself, and not of the turn', async () => {
    const id = await bench.session();
    const relay = await createTcpRelay(bench.server().url);
    const page = await bench.open(id, {}, relay.url);
    await bench.server().prompt(id, 'talk');
    (await bench.turn(id)).text('begun');
    await page.getByText('Working…').waitFor();
    relay.cut();
    await page.locator('.working.unheard').waitFor();
    expect(await page.locator('.working').textContent()).toContain('Connection interrupted. The turn may go on');
    expect(await note(page).count()).toBe(0);
    relay.mend();
    await page.getByText('Working…').waitFor();
    (await bench.turn(id)).complete();
    await isStored(page);
    expect(await page.getByText('Response interrupted').count()).toBe(0);
  });

  test('[UI22] messages that cannot be loaded are said to be so, with a way to try again', async () => {
    const id = await bench.session();
    await bench.answered(id, 'question', 'answer');
    const page = await bench.open(await bench.session());
    await page.route(`**/${id}/messages?*`, (route) =>
      route.fulfill({ status: 503, json: { error: 'The disk is away.', code: 'storage_unavailable' } }),
    );
    await page.evaluate(`location.hash = '#/s/${id}'`);
    await page.getByText('The messages could not be loaded: The disk is away.').waitFor();
    await page.unroute(`**/${id}/messages?*`);
    await page.getByRole('button', { name: 'Try again' }).click();
    await until('they are there', async () => (await answersOn(page)).join() === 'answer');
  });

  test('[UI24] the plan of a turn and what its model has used are shown as they change, also after a reload and its end', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    await bench.server().prompt(id, 'plan');
    const turn = await bench.turn(id);
    const todos = [
      { content: 'look', status: 'completed' as const },
      { content: 'think', status: 'in_progress' as const },
    ];
    turn.say({ type: 'todo.updated', payload: { todos } });
    const plan = page.getByRole('list', { name: 'What the agent plans' }).getByRole('listitem');
    await until('it is shown', async () => (await plan.allTextContents()).join() === 'look (done),think (in progress)');
    await page.reload();
    await until('it is shown again', async () => (await plan.count()) === 2);
    turn.text('words');
    const usage = { input_tokens: 900, output_tokens: 100, context_used: 64_000, context_length: 128_000 };
    turn.say({ type: 'usage', payload: usage });
    const ring = page.locator('.usage summary');
    await until(
      'half is used',
      async () => (await ring.getAttribute('aria-label')) === 'Usage: 50 % of the context is used',
    );
    turn.complete();
    await isStored(page);
    const kept = page.locator('.card.plan');
    expect(await kept.locator('.card-preview').textContent()).toBe('1 of 2 done');
    await page.reload();
    await kept.locator('summary').click();
    expect(await plan.allTextContents()).toEqual(['look (done)', 'think (in progress)']);
    await ring.focus();
    await page.keyboard.press('Enter');
    await until('the counts are there', async () =>
      ((await page.locator('.usage-list').textContent()) ?? '').includes('64,000 of 128,000'),
    );
    await page.keyboard.press('Escape');
    expect(await page.locator('.usage[open]').count()).toBe(0);
  });

  test('[AP8] a tool card folds, and says arguments, output, change, time and error of a call', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    await bench.server().prompt(id, 'work');
    const turn = await bench.turn(id);
    const call = { tool_id: 't1', name: 'terminal', args: { command: 'make' }, preview: 'make' };
    turn.say({ type: 'reasoning.delta', payload: { text: 'First I\nthink.' } }, { type: 'tool.start', payload: call });
    const result = {
      tool_id: 't1',
      name: 'terminal',
      result: 'make: no rule\n[exit code 2]',
      is_error: true,
      duration_s: 2.5,
    };
    turn.say({ type: 'tool.complete', payload: result });
    turn.complete();
    await isStored(page);
    const card = page.locator('.card.tool');
    expect(await card.locator('.card-state').textContent()).toBe('failed · 2.5 s');
    expect(await page.locator('.tool-error').textContent()).toBe('make: no rule');
    await card.locator('summary').press('Enter');
    await until('it is open', async () =>
      ((await card.locator('.card-body').textContent()) ?? '').includes('"command": "make"'),
    );
    expect(await card.locator('.card-body').textContent()).toContain('[exit code 2]');
    await card.locator('summary').press('Enter');
    expect(await card.getAttribute('open')).toBeNull();
    await page.locator('.card.reasoning summary').click();
    expect(await page.locator('.reasoning-text').textContent()).toBe('First I\nthink.');
  });

  test('[UI1] what a person says to a running turn stands where it was said, once', async () => {
    const id = await bench.session();
    const page = await bench.open(id);
    await bench.server().prompt(id, 'begin');
    const turn = await bench.turn(id);
    turn.text('going');
    await page.locator('.live .markdown').waitFor();
    await bench.server().prompt(id, 'to the left', { mode: 'steer' });
    expect(await turn.turn.steer()).toHaveLength(1);
    turn.say({ type: 'message.start', payload: {} });
    turn.text('left then');
    const all = async () =>
      (await page.locator('.turns :is(.bubble-text, .markdown)').allTextContents()).map((one) => one.trim());
    const whole = ['begin', 'going', 'to the left', 'left then'];
    await until('it is shown as it was said', async () => (await all()).join() === whole.join());
    await page.reload();
    await until('it is shown once', async () => (await all()).filter((one) => one === 'to the left').length === 1);
    turn.complete();
    await isStored(page);
    expect(await all()).toEqual(whole);
  });
});
