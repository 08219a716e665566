/** An imported conversation goes on: the next prompt is accepted by a strict provider, which is given what was said before. */
import { describe, expect, it } from 'vitest';
import { openHermesHome, turn } from '../foreign/hermes-home.ts';
import { openWebuiHome } from '../foreign/webui-home.ts';
import { counts, goOn, importFrom, providerHome, serve, textsOf, twoHomes } from './homes.ts';

const T = 1_700_000_000;
const CALL = { id: 'c1', type: 'function', function: { name: 'read_file', arguments: '{"path":"a.txt"}' } };

describe('a home of Hermes', () => {
  it.each(['bare', 'v16', 'current'] as const)(
    '[IM2][IM7] of the %s build: a plain conversation goes on',
    async (build) => {
      const { theirs, home } = await twoHomes();
      const provider = await providerHome(home);
      const hermes = openHermesHome(theirs, build);
      hermes.session('20260101_000000_aaaaaa', {}, turn('[Workspace::v1: /w]\nthe first question', 'the first answer'));
      hermes.close();
      const imported = await importFrom(theirs, home);
      expect([imported.code, counts(imported)]).toEqual([0, { imported: 1 }]);
      const server = await serve(home);
      const id = '20260101_000000_aaaaaa';
      const rows = await server.messages(id);
      expect(textsOf(rows)).toEqual(['the first question', 'the first answer']);
      expect(await goOn(server, provider, id)).toEqual([
        'user: the first question',
        'assistant: the first answer',
        'user: and now?',
      ]);
      expect(await goOn(server, provider, id, 'and then?')).toHaveLength(5);
      expect(textsOf(await server.messages(id)).slice(0, 3)).toEqual([
        'the first question',
        'the first answer',
        'and now?',
      ]);
    },
  );

  it('[IM7] calls keep their results, and a picture is told of', async () => {
    const { theirs, home } = await twoHomes();
    const provider = await providerHome(home);
    const hermes = openHermesHome(theirs);
    hermes.session('tools', {}, [
      { role: 'user', content: 'read it', timestamp: T },
      { role: 'assistant', content: '', tool_calls: [CALL], timestamp: T + 1 },
      { role: 'tool', content: 'what it says', tool_call_id: 'c1', tool_name: 'read_file', timestamp: T + 2 },
      { role: 'assistant', content: 'it says so', timestamp: T + 3 },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'and this picture' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,YWJj' } },
        ],
        timestamp: T + 4,
      },
      { role: 'assistant', content: 'a cat', timestamp: T + 5 },
    ]);
    hermes.close();
    expect((await importFrom(theirs, home)).code).toBe(0);
    const server = await serve(home);
    const sent = await goOn(server, provider, 'tools');
    expect(sent[1]).toContain('[read_file]');
    expect(sent[2]).toBe('tool: what it says');
    expect(sent[4]).toMatch(/^user: and this picture\n\[/);
    expect(sent.at(-2)).toBe('assistant: a cat');
    expect((await server.messages('tools'))[4].content).toBe('and this picture\n[image]');
  });

  it('[IM7] after a compaction all of it is shown, and the model is given the summary and what followed', async () => {
    const { theirs, home } = await twoHomes();
    const provider = await providerHome(home);
    const hermes = openHermesHome(theirs);
    hermes.session('long', {}, [
      ...turn('an old question', 'an old answer', T).map((row) => ({ ...row, active: 0, compacted: 1 })),
      {
        role: 'user',
        content: '[CONTEXT COMPACTION] they talked of old things',
        timestamp: T + 2,
        _compressed_summary: 1,
      },
      { role: 'assistant', content: 'I know', timestamp: T + 3, display_kind: 'hidden' },
      ...turn('a new question', 'a new answer', T + 4),
    ]);
    hermes.close();
    await importFrom(theirs, home);
    const server = await serve(home);
    expect(textsOf(await server.messages('long'))).toEqual([
      'an old question',
      'an old answer',
      'a new question',
      'a new answer',
    ]);
    const compacted = [
      'user: [CONTEXT COMPACTION] they talked of old things',
      'assistant: I know',
      'user: a new question',
      'assistant: a new answer',
      'user: and now?',
    ];
    expect(await goOn(server, provider, 'long')).toEqual(compacted);
    const again = await goOn(server, provider, 'long', 'and then?');
    expect(again.slice(0, 5)).toEqual(compacted);
    expect(again.at(-1)).toBe('user: and then?');
    expect(again).toHaveLength(7);
  });
});

describe('a home of hermes-webui', () => {
  it('[IM7] a context of its own is what the model is given, with an anchor and without one', async () => {
    const { theirs, home } = await twoHomes();
    const provider = await providerHome(home);
    const webui = openWebuiHome(theirs);
    const rows = [...turn('an old question', 'an old answer', T), ...turn('a new question', 'a new answer', T + 10)];
    const context_messages = [
      { role: 'user', content: '[CONTEXT COMPACTION] old things', timestamp: T + 5 },
      { role: 'assistant', content: 'I know', timestamp: T + 6 },
      ...rows.slice(2),
    ];
    const compression_anchor_message_key = { role: 'assistant', text: 'an old answer', ts: T + 1, attachments: 0 };
    webui.save('anchored', rows, { context_messages, compression_anchor_message_key });
    webui.save('loose', rows, { context_messages });
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 2 });
    const server = await serve(home);
    for (const id of ['anchored', 'loose']) {
      expect(textsOf(await server.messages(id))).toHaveLength(4);
      const sent = await goOn(server, provider, id);
      expect(sent).toEqual([
        'user: [CONTEXT COMPACTION] old things',
        'assistant: I know',
        'user: a new question',
        'assistant: a new answer',
        'user: and now?',
      ]);
      const again = await goOn(server, provider, id, 'and then?');
      expect([again.length, again[4], again.at(-1)]).toEqual([7, 'user: and now?', 'user: and then?']);
    }
  });

  it('[IM7] a turn that died there is settled here from its journal, and the conversation goes on', async () => {
    const { theirs, home } = await twoHomes();
    const provider = await providerHome(home);
    const webui = openWebuiHome(theirs);
    const run = 'ab'.repeat(16);
    webui.save('dead', turn('a question', 'an answer', T), {
      active_stream_id: run,
      pending_user_message: 'the last prompt',
      pending_started_at: T + 10,
    });
    webui.journal('dead', run, [['token', { text: 'half an ans' }]], T + 11);
    expect((await importFrom(theirs, home)).report).toMatchObject({ journals: 1, counts: { imported: 1 } });
    const server = await serve(home);
    const rows = await server.messages('dead');
    expect(textsOf(rows).slice(0, 4)).toEqual(['a question', 'an answer', 'the last prompt', 'half an ans']);
    expect(rows[4].error).toMatchObject({ code: 'interrupted', recovery: 'recovered' });
    const sent = await goOn(server, provider, 'dead');
    expect(sent.join('\n')).toContain('the last prompt');
    expect(sent.at(-1)).toContain('and now?');
    // It was told there how it ended, after all: a longer answer takes the place of what was found here.
  });
});
