/** A server that is killed while it waits for a person: what was asked is withdrawn, what was said is kept. */
import { access } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { startChildServer } from '../support/child-server.ts';
import { temporaryFolder } from '../support/home.ts';
import { until } from '../support/until.ts';

it('[AP7] kill -9 withdraws the question: the turn is interrupted with everything kept, and nothing was done', async () => {
  const home = await temporaryFolder();
  const workspace = await temporaryFolder();
  const first = await startChildServer({ home });
  const created = await first.call('POST', '/api/sessions', { workspace });
  const address = `/api/sessions/${created.json.session.session_id}`;
  await first.call('POST', `${address}/prompts`, { text: '/write a.txt hello' });
  const requests = async (server: typeof first) => (await server.call('GET', `${address}/requests`)).json.requests;
  const [request] = await until('it asks', async () => {
    const asked = await requests(first);
    return asked.length > 0 ? asked : null;
  });
  await first.kill();

  const second = await startChildServer({ home });
  const rows = (await second.call('GET', `${address}/messages`)).json.messages;
  expect(rows[0]).toMatchObject({ role: 'user', content: '/write a.txt hello' });
  expect(rows[1]).toMatchObject({ role: 'assistant', tool_calls: [{ function: { name: 'write_file' } }] });
  expect(rows.at(-1)).toMatchObject({ error: { code: 'interrupted', cause: 'process_restart' } });
  expect(await requests(second)).toEqual([]);
  const late = await second.call('POST', `${address}/requests/${request.id}`, { choice: 'once' });
  expect(late.json).toEqual({ status: 'expired' });
  await expect(access(path.join(workspace, 'a.txt'))).rejects.toThrow();

  // The next turn asks anew, and its answer counts.
  const again = second.call('POST', `${address}/prompts?wait=1`, { text: '/write a.txt hello' });
  const [anew] = await until('it asks again', async () => {
    const asked = await requests(second);
    return asked.length > 0 ? asked : null;
  });
  expect(anew.id).not.toBe(request.id);
  await second.call('POST', `${address}/requests/${anew.id}`, { choice: 'once' });
  expect((await again).json.admission.outcome).toBe('completed');
  await access(path.join(workspace, 'a.txt'));
});
