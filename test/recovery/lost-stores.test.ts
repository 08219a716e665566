/** A server that died, and one of its stores besides: the others bring back what they know, and nothing is hidden. */
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { startChildServer, writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const PROMPT = 'script:tool=list_files,args={} script:chunks=12,delay=2,id=abc';

describe('after a death', () => {
  it('[RE1][RE4] with the journal lost too, rows that reached the state DB stay, and the marker says so', async () => {
    const provider = await startFakeProvider();
    const home = await temporaryFolder();
    await writeProviderHome(home, provider.baseUrl);
    const first = await startChildServer({ home, crashAt: 'row-committed' });
    const { json } = await first.call('POST', '/api/sessions', { workspace: home });
    const sessionId = json.session.session_id;
    await first.call('POST', `/api/sessions/${sessionId}/prompts`, { text: PROMPT }).catch(() => {});
    expect(await first.exited).toBe('SIGKILL');
    await rm(path.join(home, 'sessions/_run_journal'), { recursive: true });
    let rows: Message[] = [];
    for (let round = 0; round < 2; round += 1) {
      const next = await startChildServer({ home });
      const answer = await next.call('GET', `/api/sessions/${sessionId}?messages=all`);
      expect(answer.json.session.message_count).toBe(answer.json.messages.length);
      if (round > 0) expect(answer.json.messages).toEqual(rows);
      rows = answer.json.messages;
      await next.kill();
    }
    expect(rows.map((row) => row.role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(rows.at(-1)?.error).toMatchObject({ cause: 'process_restart', recovery: 'recovered' });
    await provider.close();
  });

  it('[RE1] files of a deleted session that cannot be removed do not keep queued prompts from running', async () => {
    const waits = createScriptedRunner();
    const server = await startTestServer({
      overrides: { runner: waits.runner, check: async () => ({ reason: 'not yet' }) },
    });
    const sessionId = await server.session();
    const deleted = await server.session();
    await server.prompt(sessionId, 'waits for the next start');
    await server.call('DELETE', `/api/sessions/${deleted}`);
    await server.close();
    await mkdir(path.join(server.home, 'sessions', `${deleted}.json`, 'not empty'), { recursive: true });
    const db = new Database(path.join(server.home, 'state.db'));
    db.prepare('UPDATE session_tombstones SET files_removed = 0').run();
    db.close();
    const next = await startTestServer({ home: server.home, overrides: { runner: createEchoRunner().runner } });
    await until('the prompt has run', async () => {
      const list = await next.call('GET', `/api/sessions/${sessionId}/prompts`);
      return list.json.admissions[0].outcome === 'completed';
    });
  });
});

describe('large turns', () => {
  it('[SU1][SU3] snapshots may be larger than any backlog, two of them on one stream', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const sessions = [await server.session(), await server.session()];
    const result = 'x'.repeat(5_000_000);
    for (const [index, sessionId] of sessions.entries()) {
      await server.prompt(sessionId, 'go');
      const turn = await script.turn(index);
      turn.say(
        { type: 'tool.start', payload: { tool_id: 't', name: 'big', args: {}, preview: '' } },
        { type: 'tool.complete', payload: { tool_id: 't', name: 'big', result, is_error: false, duration_s: 0 } },
      );
    }
    const reader = await server.stream(`/api/events?session=${sessions[0]}&session=${sessions[1]}`);
    const ofSession = (sessionId: string) => (event: { type: string; json: { session_id: string } }) =>
      event.type === 'session.snapshot' && event.json.session_id === sessionId;
    for (const sessionId of sessions) await reader.next(ofSession(sessionId));
    for (const turn of script.turns) turn.complete();
    for (const sessionId of sessions) {
      await reader.next((event) => event.type === 'message.complete' && event.json.session_id === sessionId);
    }
  });
});
