/**
 * Which sessions of a Hermes state.db are conversations of a person, and which rows of one they see: children of every kind,
 * hidden sources, compaction within a session, structured and broken content.
 */
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';
import { type HermesRow, openHermesHome, turn } from './hermes-home.ts';

const textsOf = (rows: Message[]): string[] => rows.map((row) => row.content);

async function withHermes() {
  const hermes = openHermesHome(path.join(await temporaryFolder(), 'hermes'));
  return { hermes, start: () => startTestServer({ config: `foreign: {state_db: ${hermes.file}}` }) };
}

describe('sessions of a state.db', () => {
  it('[FH7] the list shows roots, branches, resets and the ends of compressed conversations; no helper and no job', async () => {
    const { hermes, start } = await withHermes();
    const compressed = { ended_at: 1_700_000_050, end_reason: 'compression' };
    hermes.session('root', { title: 'Talk', ...compressed }, turn('q1', 'a1'));
    hermes.session('helper', { parent_session_id: 'root', started_at: 1_700_000_020 }, turn('h', 'h'));
    const after = { started_at: 1_700_000_060 };
    hermes.session('delegate', { parent_session_id: 'root', ...after, model_config: '{"_delegate_from": "root"}' });
    hermes.session(
      'middle',
      { parent_session_id: 'root', ...after, ...compressed, ended_at: 1_700_000_070 },
      turn('q2', 'a2'),
    );
    hermes.session('tip', { parent_session_id: 'middle', started_at: 1_700_000_080 }, [
      { role: 'user', content: 'Summary of it all', _compressed_summary: 1, display_kind: 'hidden' },
      ...turn('q2', 'a2'),
      ...turn('q3', 'a3', 1_700_000_100),
    ]);
    hermes.session('branch', { parent_session_id: 'tip', model_config: '{"_branched_from": "tip"}' }, turn('b', 'b'));
    hermes.session('reset', { parent_session_id: 'tip', model_config: '{"_reset_from": "tip"}' }, turn('r', 'r'));
    hermes.session('old-root', { end_reason: 'branched' }, turn('o', 'o'));
    hermes.session('old-branch', { parent_session_id: 'old-root' }, turn('ob', 'ob'));
    hermes.db.pragma('foreign_keys = OFF');
    hermes.session('orphan', { parent_session_id: 'never-there' }, turn('x', 'x'));
    for (const source of ['tool', 'cron', 'kanban', 'subagent']) hermes.session(source, { source }, turn('j', 'j'));
    hermes.session('hidden', { hidden: 1 });
    hermes.session('archived', { archived: 1 });
    const server = await start();
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    const ids = sessions.map((one: { session_id: string }) => one.session_id).sort();
    expect(ids).toEqual(['branch', 'old-branch', 'old-root', 'orphan', 'reset', 'tip']);
    expect(sessions.find((one: { session_id: string }) => one.session_id === 'tip')).toMatchObject({
      title: 'Talk',
      created_at: 1_700_000_000,
    });
    expect(textsOf(await server.messages('tip'))).toEqual(['q1', 'a1', 'q2', 'a2', 'q3', 'a3']);
    expect(textsOf(await server.messages('middle'))).toEqual(['q1', 'a1', 'q2', 'a2']);
    expect(textsOf(await server.messages('branch'))).toEqual(['b', 'b']);
    expect(textsOf(await server.messages('hidden'))).toEqual([]);
  });

  it('[FH7] sessions that name each other in a circle are shown, and are no endless conversation', async () => {
    const { hermes, start } = await withHermes();
    const end = { ended_at: 1, end_reason: 'compression' };
    hermes.db.pragma('foreign_keys = OFF');
    hermes.session('a', { parent_session_id: 'b', ...end }, turn('qa', 'aa'));
    hermes.session('b', { parent_session_id: 'a', ...end }, turn('qb', 'ab'));
    hermes.session('self', { parent_session_id: 'self', ...end }, turn('qs', 'as'));
    let parent: string | null = null;
    for (let n = 0; n < 30; n += 1) {
      hermes.session(`c${n}`, { parent_session_id: parent, ...end }, turn(`q${n}`, `a${n}`));
      parent = `c${n}`;
    }
    const server = await start();
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    const ids = sessions.map((one: { session_id: string }) => one.session_id).sort();
    expect(ids).toEqual(['a', 'b', 'c29', 'self']);
    expect(textsOf(await server.messages('a'))).toEqual(['qb', 'ab', 'qa', 'aa']);
    expect(textsOf(await server.messages('self'))).toEqual(['qs', 'as']);
    // Twenty hops back, and no more.
    expect(await server.messages('c29')).toHaveLength(42);
  });

  it('[FH4] what a compaction archived is still shown, once and in its order; its summary and what was rewound are not', async () => {
    const { hermes, start } = await withHermes();
    const archived = { active: 0, compacted: 1 };
    hermes.session('s', {}, [
      { role: 'user', content: 'first', ...archived, display_identity: Buffer.from('1'), display_order: 1 },
      { role: 'assistant', content: 'second', ...archived, display_identity: Buffer.from('2'), display_order: 2 },
      { role: 'user', content: 'rewound', active: 0, display_order: 3 },
      { role: 'user', content: 'A summary', _compressed_summary: 1, display_order: 4 },
      { role: 'assistant', content: 'second', display_identity: Buffer.from('2'), display_order: 2 },
      { role: 'assistant', content: 'fourth', display_order: 6 },
      { role: 'user', content: 'third', display_order: 5 },
    ]);
    const server = await start();
    expect(textsOf(await server.messages('s'))).toEqual(['first', 'second', 'third', 'fourth']);
    hermes.session('plain', {}, [
      { role: 'user', content: 'kept', active: 0, compacted: 1 },
      { role: 'user', content: 'gone', active: 0 },
      { role: 'user', content: 'here' },
    ]);
    expect(textsOf(await server.messages('plain'))).toEqual(['kept', 'here']);
  });

  it('[FH4] content of every kind: structured, calls and results, nothing, and what is no text at all', async () => {
    const { hermes, start } = await withHermes();
    const call = { id: 'c1', type: 'function', function: { name: 'terminal', arguments: '{"command":"ls"}' } };
    const rows: HermesRow[] = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'image_url', image_url: { url: 'data:x' } },
        ],
      },
      { role: 'assistant', content: '', tool_calls: [call], reasoning: 'hm', api_content: 'secret bytes' },
      { role: 'tool', content: 'a.txt', tool_call_id: 'c1', tool_name: 'terminal' },
      { role: 'assistant', content: null },
      { role: 'assistant', content: '\0json:{broken' },
      { role: 'assistant', content: Buffer.from('bytes') as unknown as string },
      { role: 'weird', content: 'of another role' },
      { role: 'user', content: 'half a pair \ud800' },
    ];
    hermes.session('s');
    const broken = rows.map((row) => (Buffer.isBuffer(row.content) ? { ...row, content: '' } : row));
    hermes.rows('s', broken);
    hermes.db.prepare("UPDATE messages SET content = x'6279746573' WHERE id = 6").run();
    hermes.db.prepare("UPDATE messages SET timestamp = 'soon', tool_calls = 'not json' WHERE id = 7").run();
    hermes.db
      .prepare("UPDATE sessions SET title = 5, started_at = 'x', message_count = -3, pinned = 'yes' WHERE id = 's'")
      .run();
    const server = await start();
    const shown = await server.messages('s');
    expect(textsOf(shown).slice(0, 3)).toEqual(['look\n[image]', '', 'a.txt']);
    expect(shown[1]).toMatchObject({ tool_calls: [call], reasoning: 'hm' });
    expect(shown[2]).toMatchObject({ role: 'tool', tool_call_id: 'c1', name: 'terminal' });
    expect(JSON.stringify(shown)).not.toContain('secret bytes');
    expect(shown.at(-1).content).toMatch(/^half a pair \ufffd+$/);
    expect(textsOf(shown)).toContain('bytes');
    const { status, json } = await server.call('GET', '/api/sessions');
    expect(status).toBe(200);
    expect(json.sessions[0]).toMatchObject({ session_id: 's', message_count: 0, pinned: false });
    expect((await server.call('GET', '/api/sessions/s/export')).status, JSON.stringify(server.logs.at(-1))).toBe(200);
  });
});
