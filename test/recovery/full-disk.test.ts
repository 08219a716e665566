/** The disk is full: reads work, writes are refused and change nothing, and all is well once there is room again. */
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesOf } from '../support/child-server.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { smallDisk, whyNoSmallDisk } from '../support/small-disk.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const reason = whyNoSmallDisk();

describe.skipIf(reason !== null)(`on a full disk${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  it('[SC2][RE3] a sidecar that cannot be healed costs the reader nothing, and is healed once there is room', async () => {
    const disk = smallDisk(8);
    const overrides = { runner: createEchoRunner().runner };
    const server = await startTestServer({ home: disk.home, overrides });
    const sessionId = await server.session({ title: 'Kept' });
    await server.ask(sessionId, 'one');
    await server.ask(sessionId, 'two');
    const rows = await server.messages(sessionId);
    const sidecar = path.join(disk.home, 'sessions', `${sessionId}.json`);
    await rm(sidecar);
    disk.fill();
    const before = await filesOf(disk.home);
    expect(await server.messages(sessionId)).toEqual(rows);
    expect(await server.messages(sessionId)).toEqual(rows);
    expect(await filesOf(disk.home)).toEqual(before);
    disk.free();
    expect(await server.messages(sessionId)).toEqual(rows);
    expect(JSON.parse(await readFile(sidecar, 'utf8')).messages).toEqual(rows);
    const healed = await filesOf(disk.home);
    expect(await server.messages(sessionId)).toEqual(rows);
    expect(await filesOf(disk.home)).toEqual(healed);
  });

  it('[DB7][AD1] a prompt and an edit are refused with a code, nothing of them is kept, and the next one works', async () => {
    const disk = smallDisk(8);
    const server = await startTestServer({ home: disk.home, overrides: { runner: createEchoRunner().runner } });
    const sessionId = await server.session({ title: 'Kept' });
    await server.ask(sessionId, 'one');
    const rows = await server.messages(sessionId);
    const { revision } = (await server.call('GET', `/api/sessions/${sessionId}`)).json.session;
    disk.fill();
    const text = 'word '.repeat(20_000);
    const refused = await server.call('POST', `/api/sessions/${sessionId}/prompts`, { text });
    expect(refused.status).toBe(503);
    expect(refused.json.code).toBe('disk_full');
    expect(refused.headers.get('retry-after')).not.toBeNull();
    expect(await server.messages(sessionId)).toEqual(rows);
    expect((await server.call('GET', `/api/sessions/${sessionId}/prompts`)).json.admissions).toHaveLength(1);
    disk.free();
    const rewound = await server.call('POST', `/api/sessions/${sessionId}/rewind`, { turns: 1, revision });
    expect([rewound.status, rewound.json]).toEqual([200, expect.objectContaining({ removed: 2 })]);
    await server.ask(sessionId, 'two');
    expect((await server.messages(sessionId)).map((row) => row.content)).toEqual(['two', 'echo: two']);
  });

  it('[CL3][JO2] a turn that runs waits for room, shows nothing that is not kept, and loses nothing', async () => {
    const disk = smallDisk(8);
    const agent = createScriptedRunner();
    const server = await startTestServer({ home: disk.home, overrides: { runner: agent.runner } });
    const sessionId = await server.session({ title: 'Kept' });
    await server.prompt(sessionId, 'one');
    const run = await agent.turn(0);
    const reader = await server.stream(`/api/sessions/${sessionId}/events`);
    await reader.next((event) => event.type === 'session.snapshot');
    run.say({ type: 'message.start', payload: {} });
    run.text('before ');
    await reader.next((event) => event.type === 'message.delta');
    disk.fill();
    run.text('while it was full '.repeat(2_000));
    await until('it is told in the log', () =>
      server.logs.find((line) => line.msg.includes('storage') && line.level >= 40),
    );
    expect(reader.events.filter((event) => event.type === 'message.delta')).toHaveLength(1);
    disk.free();
    run.text('after');
    run.complete();
    const complete = await reader.next((event) => event.type === 'message.complete');
    expect(complete.json.payload.outcome).toBe('completed');
    const expected = `before ${'while it was full '.repeat(2_000)}after`;
    expect((await server.messages(sessionId)).at(-1)?.content).toBe(expected);
    const shown = reader.events.filter((event) => event.type === 'message.delta');
    expect(shown.map((event) => event.json.payload.text).join('')).toBe(expected);
  });
});
