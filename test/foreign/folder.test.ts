/**
 * A folder of sidecars of another program beside our home: listed, read as its person saw it and as its program could
 * bring it back, searched, exported, and never written.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';
import { openHermesHome, turn } from './hermes-home.ts';
import { openWebuiHome, stateBelow, type WebuiRow } from './webui-home.ts';

const RUN = 'ab'.repeat(16);
const ID = 'aabbccddeeff';
const NOW = 1_800_000_000;
const OLD: WebuiRow[] = [
  { role: 'user', content: 'old question', timestamp: 1_700_000_000 },
  { role: 'assistant', content: 'old answer', timestamp: 1_700_000_001 },
];
const PENDING = {
  active_stream_id: RUN,
  pending_user_message: 'new request',
  pending_started_at: 1_700_000_100,
  pending_attachments: [{ name: 'a.png', path: '/x/a.png' }],
};

async function withHome({ database = false } = {}) {
  const folder = path.join(await temporaryFolder(), 'webui');
  const webui = openWebuiHome(folder);
  const hermes = database ? openHermesHome(path.join(folder, '..', 'hermes')) : null;
  const clock = { now: NOW };
  const start = () =>
    startTestServer({
      config: `foreign:\n  sessions_dir: ${webui.sessions}\n${hermes ? `  state_db: ${hermes.file}\n` : ''}`,
      overrides: { now: () => clock.now },
    });
  return { webui, hermes: hermes!, start, clock };
}

const textsOf = (rows: Message[]): string[] => rows.map((row) => row.content);

describe('sidecars of another program', () => {
  it('[FH1] are listed with what their headers say, whatever the index says', async () => {
    const { webui, start } = await withHome();
    webui.save(ID, OLD, { title: 'Named', pinned: true, raw_source: 'webui', archived: false });
    webui.save('bbbbbbbbbbbb', OLD, { archived: true });
    webui.write('_index.json', JSON.stringify([{ session_id: ID, title: 'A lie' }, { session_id: 'gone' }, 7]));
    const server = await start();
    const { json } = await server.call('GET', '/api/sessions');
    expect(json.total).toBe(1);
    expect(json.sessions[0]).toMatchObject({
      session_id: ID,
      title: 'Named',
      source: 'webui',
      pinned: true,
      message_count: 2,
      model: 'm-2',
      workspace: '/work-folder',
      project_id: null,
      created_at: 1_700_000_000.25,
      flags: ['foreign'],
      usage: { input_tokens: 11, output_tokens: 12, cost_usd: 0.5, context_length: 1000 },
    });
    expect((await server.call('GET', '/api/sessions?archived=only')).json.sessions).toHaveLength(1);
    expect((await server.call('GET', '/api/sessions?q=named')).json.total).toBe(1);
    expect((await server.call('GET', '/api/sessions?source=cli&archived=1')).json.total).toBe(0);
    expect((await server.call('GET', '/api/sessions?source=webui&archived=1')).json.total).toBe(2);
  });

  it('[FH1] what their program saves is there at the next read, in the list too', async () => {
    const { webui, start } = await withHome();
    webui.save(ID, OLD);
    const server = await start();
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(1);
    webui.save('cccccccccccc', OLD, { title: 'New', updated_at: 1_700_001_000 });
    webui.save(ID, [...OLD, ...turn('more', 'and more', 1_700_000_300)], { title: 'Renamed' });
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    expect(sessions.map((one: { title: string }) => one.title)).toEqual(['New', 'Renamed']);
    expect(textsOf(await server.messages(ID))).toEqual(['old question', 'old answer', 'more', 'and more']);
  });

  it('[FH4] rows of both its stores are one transcript, each once', async () => {
    const { webui, hermes, start } = await withHome({ database: true });
    hermes.session(ID, { source: 'webui' }, [
      { role: 'user', content: '[Workspace::v1: /w]\nold question', timestamp: 1_700_000_000.4 },
      { role: 'assistant', content: 'old answer', timestamp: 1_700_000_001.2 },
      { role: 'user', content: 'only the agent has this', timestamp: 1_700_000_010 },
      { role: 'assistant', content: [{ type: 'text', text: 'structured' }], timestamp: 1_700_000_011 },
    ]);
    webui.save(ID, OLD);
    const server = await start();
    const rows = await server.messages(ID);
    expect(textsOf(rows)).toEqual(['old question', 'old answer', 'only the agent has this', 'structured']);
    expect(new Set(rows.map((row) => row.id)).size).toBe(4);
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(1);
    hermes.rows(ID, turn('later', 'answer', 1_700_000_020));
    expect(await server.messages(ID)).toEqual([...rows, expect.anything(), expect.anything()]);
    expect((await server.call('GET', `/api/sessions/${ID}`)).json.session.message_count).toBe(6);
  });

  it('[FH5] the backup counts where the live file is gone bad, or has lost rows without an edit', async () => {
    const { webui, start } = await withHome();
    const long = [...OLD, ...turn('q2', 'a2', 1_700_000_200)];
    for (const id of ['damaged', 'shrunk', 'cleared', 'edited', 'malformed', 'older']) webui.backup(id, long);
    webui.write('damaged.json', '{"session_id": "damaged", "messa');
    webui.save('shrunk', OLD);
    webui.save('cleared', [], { clear_generation: 'x1', truncation_watermark: 0, truncation_boundary: 0 });
    webui.save('edited', OLD, { intentional_shrink_generation: '0123456789ab4def8123456789abcdef' });
    webui.save('malformed', OLD, { intentional_shrink_generation: 'yes' });
    webui.save('older', [...long, ...turn('q3', 'a3')]);
    const server = await start();
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    const counts = Object.fromEntries(
      sessions.map((one: { session_id: string; message_count: number }) => [one.session_id, one.message_count]),
    );
    expect(counts).toEqual({ damaged: 4, shrunk: 4, cleared: 0, edited: 2, malformed: 4, older: 6 });
    for (const [id, count] of Object.entries(counts))
      expect(await server.messages(id), id).toHaveLength(count as number);
  });

  it('[FH5] a backup alone is a session only where the agent still has it, and nobody deleted it', async () => {
    const { webui, hermes, start } = await withHome({ database: true });
    for (const id of ['kept', 'unknown', 'deleted']) webui.backup(id, OLD);
    hermes.session('kept', { source: 'webui' }, turn('old question', 'old answer'));
    hermes.session('deleted', { source: 'webui' }, turn('old question', 'old answer'));
    hermes.session('deleted-cli', { source: 'cli' }, turn('q', 'a'));
    webui.save('saved-again', OLD);
    webui.tombstones('deleted', 'deleted-cli');
    const server = await start();
    const ids = async () =>
      (await server.call('GET', '/api/sessions')).json.sessions
        .map((one: { session_id: string }) => one.session_id)
        .sort();
    expect(await ids()).toEqual(['deleted-cli', 'kept', 'saved-again']);
    expect((await server.call('GET', '/api/sessions/deleted')).status).toBe(404);
    expect((await server.call('GET', '/api/sessions/unknown/messages')).status).toBe(404);
    expect(await server.messages('kept')).toHaveLength(2);
    webui.tombstones('deleted', 'deleted-cli', 'saved-again');
    expect(await ids()).toEqual(['deleted-cli', 'kept']);
    // A save takes the deletion back, also when its list could not be written any more.
    webui.save('saved-again', OLD);
    expect(await ids()).toEqual(['deleted-cli', 'kept', 'saved-again']);
  });

  it('[FH4] where the database is broken, the file is still what its person saw; and the other way round', async () => {
    const { webui, hermes, start } = await withHome({ database: true });
    const filler = 'x'.repeat(3000);
    for (let n = 0; n < 40; n += 1) {
      hermes.session(`s${n}`, { source: 'webui' }, turn(`question ${n}`, filler));
      webui.save(`s${n}`, turn(`question ${n}`, filler));
    }
    webui.write('s3.json', '{"broken');
    hermes.close();
    const bytes = readFileSync(hermes.file);
    // The leaves that hold rows of the middle.
    const at = bytes.indexOf('question 20') & ~4095;
    bytes.fill(0xff, at, at + 4096);
    writeFileSync(hermes.file, bytes);
    const server = await start();
    const { status, json } = await server.call('GET', '/api/sessions');
    expect(status).toBe(200);
    expect(json.total).toBe(40);
    expect(textsOf(await server.messages('s20'))[0]).toBe('question 20');
    expect(textsOf(await server.messages('s3'))[0]).toBe('question 3');
    expect((await server.call('GET', '/api/search?q=question')).status).toBe(200);
  });

  it('[FH6] an open turn is shown as it ended, the same at each read, and nothing of it is saved', async () => {
    const { webui, start } = await withHome();
    webui.save(ID, OLD, PENDING);
    webui.journal(ID, RUN, [
      ['token', { text: 'The scan ' }],
      ['token', { text: 'is halfw' }],
    ]);
    const before = stateBelow(webui.folder);
    const server = await start();
    const rows = await server.messages(ID);
    expect(textsOf(rows).slice(0, 4)).toEqual(['old question', 'old answer', 'new request', 'The scan is halfw']);
    expect(rows[2]).toMatchObject({ timestamp: 1_700_000_100, attachments: ['a.png'], recovered: true });
    expect(rows[4].error).toMatchObject({ code: 'interrupted', cause: 'lost_bookkeeping', recovery: 'recovered' });
    expect(rows).toHaveLength(5);
    expect(await server.messages(ID)).toEqual(rows);
    webui.journal(ID, RUN, [
      ['token', { text: 'The scan is halfway done.' }],
      ['done', {}, 'completed'],
    ]);
    expect(textsOf(await server.messages(ID)).slice(2)).toEqual(['new request', 'The scan is halfway done.']);
    const after = stateBelow(webui.folder);
    const changed = Object.keys(after).filter((name) => after[name] !== before[name]);
    expect(changed.filter((name) => !name.includes('_run_journal'))).toEqual([]);
  });

  it('[FH6] a turn that may still run is left as it stands: one that is young, or that said something just now', async () => {
    const { webui, start, clock } = await withHome();
    webui.save(ID, OLD, { ...PENDING, pending_started_at: NOW - 10 });
    webui.save('talking', OLD, PENDING);
    webui.journal('talking', RUN, [['token', { text: 'still here' }]], NOW - 5);
    const server = await start();
    expect(textsOf(await server.messages(ID))).toEqual(['old question', 'old answer']);
    expect(textsOf(await server.messages('talking'))).toEqual(['old question', 'old answer']);
    clock.now += 60;
    expect(textsOf(await server.messages(ID))[2]).toBe('new request');
    expect(textsOf(await server.messages('talking')).slice(2, 4)).toEqual(['new request', 'still here']);
  });

  it('[FH6] a prompt that only the turn journal has is shown; one that was answered there is not', async () => {
    const { webui, start } = await withHome();
    webui.save(ID, OLD);
    webui.save('answered', OLD);
    const submitted = { event: 'submitted', turn_id: 't1', stream_id: RUN, created_at: 1_700_000_100, role: 'user' };
    webui.turns(ID, [
      { ...submitted, content: 'never saved' },
      { event: 'worker_started', turn_id: 't1', created_at: 1_700_000_101 },
    ]);
    webui.turns('answered', [{ ...submitted, content: 'rewound' }]);
    webui.turns('answered', [{ event: 'completed', turn_id: 't1', created_at: 1_700_000_102 }], 8);
    // Its end was not written, but its prompt and answer are there.
    webui.save('saved', [...OLD, ...turn('got through', 'it did', 1_700_000_100)]);
    webui.turns('saved', [{ ...submitted, created_at: 1_700_000_100.7, content: 'got through' }]);
    webui.journal('saved', RUN, [['token', { text: 'it d' }]]);
    const server = await start();
    expect(textsOf(await server.messages('saved')).slice(2)).toEqual(['got through', 'it did']);
    expect(textsOf(await server.messages(ID)).slice(0, 3)).toEqual(['old question', 'old answer', 'never saved']);
    webui.turns(ID, [{ event: 'completed', turn_id: 't1', created_at: 1_700_000_103 }], 9);
    expect(textsOf(await server.messages(ID))).toEqual(['old question', 'old answer']);
    expect(textsOf(await server.messages('answered'))).toEqual(['old question', 'old answer']);
  });

  it('[FH7] a conversation that was compressed is one session: the last one, with what was said before', async () => {
    const { webui, start } = await withHome();
    webui.save('first', OLD, { pre_compression_snapshot: true, title: 'Long talk', created_at: 1_600_000_000 });
    webui.save('second', turn('q2', 'a2', 1_700_000_200), {
      parent_session_id: 'first',
      pre_compression_snapshot: true,
    });
    webui.save('third', [...turn('q2', 'a2', 1_700_000_200), ...turn('q3', 'a3', 1_700_000_300)], {
      parent_session_id: 'second',
    });
    webui.save('fork', turn('q9', 'a9', 1_700_000_900), { parent_session_id: 'third', session_source: 'fork' });
    const server = await start();
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    expect(sessions.map((one: { session_id: string }) => one.session_id).sort()).toEqual(['fork', 'third']);
    expect(sessions.find((one: { session_id: string }) => one.session_id === 'third')).toMatchObject({
      title: 'Long talk',
      created_at: 1_600_000_000,
    });
    expect(textsOf(await server.messages('third'))).toEqual(['old question', 'old answer', 'q2', 'a2', 'q3', 'a3']);
    expect(textsOf(await server.messages('fork'))).toEqual(['q9', 'a9']);
    expect(textsOf(await server.messages('first'))).toEqual(['old question', 'old answer']);
  });

  it('[FH1] nasty files cost the others nothing', async () => {
    const { webui, start } = await withHome();
    webui.save(ID, OLD);
    webui.write('empty.json', '');
    webui.write('list.json', '[1,2]');
    webui.write('other.json', JSON.stringify({ session_id: 'somebody', messages: [] }));
    webui.write('one-line.json', JSON.stringify({ session_id: 'one-line', message_count: 1, messages: [OLD[0]] }));
    webui.write('..hidden.json', '{}');
    webui.write('a b.json', '{}');
    webui.write('_index.json', 'not json');
    webui.write('folder.json/x.txt', 'a folder');
    webui.write(
      'odd-rows.json',
      JSON.stringify({ session_id: 'odd-rows', messages: [null, 7, { text: 'no role' }, ...OLD] }),
    );
    webui.write('reordered.json', JSON.stringify({ messages: OLD, title: 'Back to front', session_id: 'reordered' }));
    const server = await start();
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    const flags = Object.fromEntries(
      sessions.map((one: { session_id: string; flags: string[] }) => [one.session_id, one.flags]),
    );
    expect(flags).toEqual({
      [ID]: ['foreign'],
      'one-line': ['foreign'],
      'odd-rows': ['foreign'],
      reordered: ['foreign'],
      empty: ['foreign', 'damaged_sidecar'],
      list: ['foreign', 'damaged_sidecar'],
      other: ['foreign', 'damaged_sidecar'],
    });
    expect(textsOf(await server.messages('one-line'))).toEqual(['old question']);
    expect(textsOf(await server.messages('odd-rows'))).toEqual(['old question', 'old answer']);
    expect(textsOf(await server.messages('reordered'))).toEqual(['old question', 'old answer']);
    expect((await server.call('GET', '/api/sessions/reordered')).json.session).toMatchObject({
      title: 'Back to front',
    });
    expect(await server.messages('empty')).toEqual([]);
    writeFileSync(path.join(webui.sessions, 'empty.json'), JSON.stringify({ session_id: 'empty', messages: OLD }));
    expect(await server.messages('empty')).toHaveLength(2);
  });
});
