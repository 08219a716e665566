/** A prompt that was accepted there and never answered is not lost, whichever file tells of it, and is told once. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { turn } from '../foreign/hermes-home.ts';
import { openWebuiHome } from '../foreign/webui-home.ts';
import { counts, goOn, importFrom, providerHome, serve, textsOf, twoHomes } from './homes.ts';

const T = 1_700_000_000;
const RUN = 'ab'.repeat(16);

const submitted = (content: string, at: number, more: object = {}) => ({
  event: 'submitted',
  turn_id: `turn-${at}`,
  stream_id: RUN,
  created_at: at,
  role: 'user',
  content,
  ...more,
});

async function home() {
  const { theirs, home } = await twoHomes();
  const webui = openWebuiHome(theirs);
  webui.save('one', turn('a question', 'an answer', T));
  return { theirs, home, webui };
}

describe('a turn journal', () => {
  it('[IM2] tells of a prompt that reached no other file: it comes with what its run had said', async () => {
    const { theirs, home: ours, webui } = await home();
    webui.turns('one', [
      submitted('the last prompt', T + 10),
      { event: 'worker_started', turn_id: 't', created_at: T + 11 },
    ]);
    webui.journal('one', RUN, [['token', { text: 'half an ans' }]], T + 11);
    const provider = await providerHome(ours);
    expect(counts(await importFrom(theirs, ours))).toEqual({ imported: 1 });
    const server = await serve(ours);
    const texts = textsOf(await server.messages('one'));
    expect(texts.slice(0, 4)).toEqual(['a question', 'an answer', 'the last prompt', 'half an ans']);
    expect((await goOn(server, provider, 'one')).join('\n')).toContain('the last prompt');
    expect(counts(await importFrom(theirs, ours))).toEqual({ unchanged: 1 });
  });

  it('[IM2] of a turn that ended, or whose prompt was saved, adds nothing', async () => {
    const { theirs, home: ours, webui } = await home();
    webui.turns('one', [submitted('a question', T), submitted('ended', T + 5)]);
    webui.turns('one', [{ event: 'interrupted', turn_id: `turn-${T + 5}`, created_at: T + 6, reason: 'x' }], 8);
    webui.save('two', turn('saved', 'an answer', T));
    webui.turns('two', [submitted('saved', T)]);
    webui.write('_turn_journal/one.jsonl', '{"version": 1, broken\n\n[]\nnull\n');
    await importFrom(theirs, ours);
    const server = await serve(ours);
    for (const id of ['one', 'two']) expect(await server.messages(id)).toHaveLength(2);
  });

  it('[IM6] names attachments of its prompt, which come under the names that they have here', async () => {
    const { theirs, home: ours, webui } = await home();
    const file = path.join(theirs, 'attachments', 'one', '.odd$.txt');
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, 'text');
    webui.turns('one', [submitted('look', T + 10, { attachments: [{ name: '.odd$.txt', path: file }, 7] })]);
    await importFrom(theirs, ours);
    const server = await serve(ours);
    expect((await server.messages('one'))[2].attachments).toEqual(['odd_.txt']);
    expect(await readdir(path.join(ours, 'attachments', 'one'))).toEqual(['odd_.txt']);
  });
});

describe('a second import', () => {
  it('[IM3] brings a prompt that was accepted there since, once', async () => {
    const { theirs, home: ours, webui } = await home();
    await importFrom(theirs, ours);
    webui.turns('one', [submitted('accepted since', T + 10)]);
    expect(counts(await importFrom(theirs, ours))).toEqual({ extended: 1 });
    const server = await serve(ours);
    const rows = await server.messages('one');
    expect(textsOf(rows).slice(0, 3)).toEqual(['a question', 'an answer', 'accepted since']);
    webui.save('one', turn('a question', 'an answer', T), { title: 'Another title' });
    expect(counts(await importFrom(theirs, ours))).toEqual({ unchanged: 1 });
    expect(await server.messages('one')).toEqual(rows);
  });

  it('[IM4] brings it as a session of its own where the conversation went on here', async () => {
    const { theirs, home: ours, webui } = await home();
    const provider = await providerHome(ours);
    await importFrom(theirs, ours);
    const server = await serve(ours);
    await goOn(server, provider, 'one', 'said here');
    const here = await server.messages('one');
    webui.save('one', turn('a question', 'an answer', T), {
      active_stream_id: RUN,
      pending_user_message: 'accepted there',
      pending_started_at: T + 10,
    });
    expect(counts(await importFrom(theirs, ours))).toEqual({ parted: 1 });
    expect(await server.messages('one')).toEqual(here);
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    const second = sessions.find((one: { session_id: string }) => one.session_id !== 'one').session_id;
    expect(textsOf(await server.messages(second)).slice(0, 3)).toEqual(['a question', 'an answer', 'accepted there']);
    webui.save('one', turn('a question', 'an answer', T), {
      title: 'Another title',
      active_stream_id: RUN,
      pending_user_message: 'accepted there',
      pending_started_at: T + 10,
    });
    expect(counts(await importFrom(theirs, ours))).toEqual({ unchanged: 1 });
  });
});
