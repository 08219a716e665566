/** A backup that is taken while everything happens at once, restored elsewhere and compared message by message. */
import { expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { ask, backedUp, newSession, providedHome, restored, rewind } from '../backup/homes.ts';
import { type ChildServer, filesOf, startChildServer } from '../support/child-server.ts';
import { messagesOf, shownIn } from '../support/kill-rounds.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { until } from '../support/until.ts';

interface Accepted {
  sessionId: string;
  runId: string;
  text: string;
}

/** Clients that never rest, until they are told to. */
function startLoad(server: ChildServer, streaming: readonly string[], edited: string, seed: number) {
  const random = seededRandom(seed);
  const accepted: Accepted[] = [];
  const deleted: string[] = [];
  const states: Message[][] = [];
  let isOver = false;
  let count = 0;

  const submit = async (sessionId: string): Promise<void> => {
    count += 1;
    const text = `script:chunks=${10 + Math.floor(random() * 40)},delay=3,id=p${count}`;
    const { status, json } = await server.call('POST', `/api/sessions/${sessionId}/prompts`, { text });
    expect(status, `seed ${seed}`).toBe(202);
    accepted.push({ sessionId, runId: json.run_id, text });
  };
  const keepBusy = async (sessionId: string): Promise<void> => {
    while (!isOver) {
      const waiting = (await server.call('GET', `/api/sessions/${sessionId}`)).json.session.queue_length;
      if (waiting < 3) await submit(sessionId);
    }
  };
  const makeAndDelete = async (): Promise<void> => {
    while (!isOver) {
      const sessionId = await newSession(server);
      await ask(server, sessionId, 'soon gone');
      const { status } = await server.call('DELETE', `/api/sessions/${sessionId}`);
      expect(status, `seed ${seed}`).toBeLessThan(300);
      deleted.push(sessionId);
    }
  };
  const takeBack = async (): Promise<void> => {
    for (let n = 0; !isOver; n += 1) {
      await ask(server, edited, `take ${n} back`);
      states.push(await messagesOf(server, edited));
      await rewind(server, edited);
      states.push(await messagesOf(server, edited));
    }
  };
  const all = Promise.all([...streaming.map(keepBusy), makeAndDelete(), takeBack()]);
  return {
    accepted,
    deleted,
    states,
    async end() {
      isOver = true;
      await all;
    },
  };
}

const idle = async (server: ChildServer, sessionIds: readonly string[]): Promise<boolean> => {
  const answers = await Promise.all(sessionIds.map((id) => server.call('GET', `/api/sessions/${id}`)));
  return answers.every((answer) => answer.json.session.status === 'idle');
};

it('[BK1][BK2] what was accepted, said and deleted before a backup is in it so, whatever happened meanwhile', async () => {
  const seed = testSeed();
  console.info(`seed ${seed}`);
  const { provider, home } = await providedHome();
  const server = await startChildServer({ home });

  const settled = await Promise.all([newSession(server), newSession(server)]);
  for (const sessionId of settled) {
    for (const text of ['one', 'script:reasoning=3,chunks=30,id=a', 'three']) await ask(server, sessionId, text);
    await rewind(server, sessionId);
    await ask(server, sessionId, 'three again');
  }
  const fork = (await server.call('POST', `/api/sessions/${settled[0]}/fork`)).json.session.session_id;
  settled.push(fork);
  const streaming = [await newSession(server), await newSession(server), await newSession(server)];
  const edited = await newSession(server);
  await ask(server, edited, 'stays');
  const readers = await Promise.all(streaming.map((id) => server.stream(`/api/sessions/${id}/events`)));
  const load = startLoad(server, streaming, edited, seed);
  await until('everything has begun', () => load.deleted.length > 0 && load.states.length > 1);
  const keptBefore = new Map(await Promise.all(settled.map(async (id) => [id, await messagesOf(server, id)] as const)));

  const backups = [];
  for (let round = 0; round < 2; round += 1) {
    await until('all of them stream', async () => {
      const answers = await Promise.all(streaming.map((id) => server.call('GET', `/api/sessions/${id}`)));
      return answers.every((answer) => answer.json.session.status !== 'idle');
    });
    const [accepted, deleted] = [load.accepted.slice(), load.deleted.slice()];
    const from = load.states.length - 1;
    const shown = new Map(accepted.map(({ runId }) => [runId, shownIn(readers, runId)]));
    const ended = new Set(
      readers.flatMap((one) => one.events).flatMap((one) => (one.type === 'message.complete' ? [one.json.run_id] : [])),
    );
    const file = await backedUp(home);
    backups.push({ file, accepted, deleted, shown, ended, from, to: load.states.length, all: load.accepted.length });
  }
  // The server went on meanwhile.
  expect(backups.every((one) => one.all > one.accepted.length)).toBe(true);
  await load.end();
  await until('all has ended', () => idle(server, streaming), 60_000);
  const original = new Map(await Promise.all(streaming.map(async (id) => [id, await messagesOf(server, id)] as const)));
  expect(server.stderr()).not.toMatch(/"level":(50|60)/);
  await server.kill();

  for (const backup of backups) {
    const asked = provider.requests.length;
    const there = await startChildServer({ home: await restored(backup.file) });
    for (const [id, rows] of keptBefore) expect(await messagesOf(there, id), `seed ${seed}`).toEqual(rows);
    for (const id of backup.deleted) expect((await there.call('GET', `/api/sessions/${id}`)).status).toBe(404);

    // The conversation that was edited all the time is one of its states, at most with the turn that was asked then.
    const rows = await messagesOf(there, edited);
    const isState = load.states.slice(backup.from, backup.to + 2).some((state) => {
      const rest = rows.slice(state.length);
      const same = JSON.stringify(rows.slice(0, state.length)) === JSON.stringify(state);
      return same && new Set(rest.map((row) => row.run_id)).size <= 1 && state.length + rest.length <= 5;
    });
    expect(isState, `seed ${seed}: ${JSON.stringify(rows.map((row) => row.content))}`).toBe(true);

    await until('all has ended', () => idle(there, streaming), 60_000);
    const again = provider.requests.slice(asked).map((one) => String(one.body.messages?.at(-1)?.content));
    for (const id of streaming) {
      const rows = await messagesOf(there, id);
      const prompts = rows.filter((row) => row.role === 'user').map((row) => row.run_id);
      const wanted = backup.accepted.filter((one) => one.sessionId === id).map((one) => one.runId);
      // Each of them once, in order; behind them those that came while the backup began.
      expect(prompts.slice(0, wanted.length), `seed ${seed}`).toEqual(wanted);
      expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
      for (const { runId, text } of backup.accepted.filter((one) => one.sessionId === id)) {
        const own = rows.filter((row) => row.run_id === runId);
        const atHome = original.get(id)!.filter((row) => row.run_id === runId);
        const ranAgain = again.filter((content) => content.split('\n\n').at(-1) === text).length;
        const said = own.filter((row) => row.role === 'assistant' && !row.id.endsWith('.m')).map((row) => row.content);
        const shown = backup.shown.get(runId)!;
        const what = `seed ${seed}: ${text}`;
        if (backup.ended.has(runId)) expect(own, what).toEqual(atHome);
        // It ran when the backup was made, or waited; never both.
        expect(ranAgain, what).toBeLessThanOrEqual(shown === '' ? 1 : 0);
        expect(said.join('').startsWith(shown), what).toBe(true);
        if (ranAgain === 1) expect(own.at(-1), what).toMatchObject({ status: 'complete' });
      }
    }
    expect(again.length, `seed ${seed}`).toBeGreaterThan(0);
    expect(there.stderr()).not.toMatch(/"level":(50|60)/);
    const files = await filesOf(await homeOf(there));
    for (const id of [...settled, ...streaming]) await messagesOf(there, id);
    expect(await filesOf(await homeOf(there)), `seed ${seed}`).toEqual(files);
    await there.kill();
  }
  expect(provider.violations).toEqual([]);
}, 180_000);

it('[BK2] a home that is restored beside its living original owns its conversations', async () => {
  const { provider, home } = await providedHome();
  const server = await startChildServer({ home });
  const sessionId = await newSession(server);
  const reader = await server.stream(`/api/sessions/${sessionId}/events`);
  await server.call('POST', `/api/sessions/${sessionId}/prompts`, { text: 'script:chunks=3,hang=1,id=a' });
  await reader.next((event) => event.type === 'message.delta' && event.json.payload.text.includes(':2]'));
  const there = await startChildServer({ home: await restored(await backedUp(home)) });
  const rows = await messagesOf(there, sessionId);
  expect(rows.map((row) => row.status ?? row.role)).toEqual(['user', 'partial', 'error']);
  expect(rows[1]!.content).toBe('[a:0] [a:1] [a:2] ');
  await ask(there, sessionId, 'here');
  expect(await messagesOf(there, sessionId)).toHaveLength(5);
  // The original still runs it.
  expect((await server.call('GET', `/api/sessions/${sessionId}`)).json.session.status).toBe('running');
  expect(provider.requests).toHaveLength(2);
});

/** The home that a server names in its arguments. */
const homeOf = async (server: ChildServer): Promise<string> => JSON.parse(server.process.spawnargs.at(-1)!).home;
