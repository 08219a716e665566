/** A server is killed when words for a running turn are stored as a part of it, and nobody has been shown them yet. */
import { expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { startChildServer, writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';

it.each([
  ['between two steps', 'script:tool=list_files,args={},delay=150 script:chunks=4,delay=150,id=abc'],
  ['behind its last step', 'script:chunks=6,delay=150,id=abc'],
])(
  '[ST1][AD1][RE1] said %s and killed: the words stay in the turn, once, and never run',
  { timeout: 60_000 },
  async (_when, script) => {
    const provider = await startFakeProvider();
    const home = await temporaryFolder();
    await writeProviderHome(home, provider.baseUrl);
    const first = await startChildServer({ home, crashAt: 'steer-absorbed', times: 1 });
    const created = await first.call('POST', '/api/sessions', { workspace: home });
    const id: string = created.json.session.session_id;
    const reader = await first.stream(`/api/sessions/${id}/events`);
    const accepted = await first.call('POST', `/api/sessions/${id}/prompts`, { text: script });
    await reader.next((event) => event.type === 'message.start');
    const body = { text: 'no, the other way', mode: 'steer', request_id: 'k' };
    const steered = (await first.call('POST', `/api/sessions/${id}/prompts`, body)).json;
    expect(steered.admission.status).toBe('queued');
    expect(await first.exited).toBe('SIGKILL');

    const second = await startChildServer({ home });
    const read = async (): Promise<Message[]> =>
      (await second.call('GET', `/api/sessions/${id}/messages?limit=1000`)).json.messages;
    const rows = await read();
    const users = rows.filter((row) => row.role === 'user');
    expect(users.map((row) => row.content)).toEqual([script, body.text]);
    expect(users.map((row) => row.run_id)).toEqual([accepted.json.run_id, accepted.json.run_id]);
    // In its place: behind all that the turn had shown, before the marker.
    expect(rows.at(-1)!.id).toMatch(/\.m$/);
    expect(rows.at(-2)).toMatchObject({ role: 'user', content: body.text });
    const again = (await second.call('POST', `/api/sessions/${id}/prompts`, body)).json.admission;
    expect(again).toMatchObject({ status: 'terminal', outcome: 'completed' });
    // The next prompt works, and the model is given what was said.
    const next = await second.call('POST', `/api/sessions/${id}/prompts?wait=1`, {
      text: 'script:chunks=2,delay=0,id=n',
    });
    expect(next.status).toBe(200);
    expect(JSON.stringify(provider.requests.at(-1))).toContain('no, the other way');
    expect((await read()).slice(0, rows.length)).toEqual(rows);
  },
);
