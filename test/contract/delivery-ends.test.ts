/** Readers that are slow, stuck or gone, and a server that stops: how connections end, and what that costs others. */
import { describe, expect, it } from 'vitest';
import { connectGateway } from '../support/gateway.ts';
import { until } from '../support/until.ts';
import { createWire } from '../support/wire.ts';
import { gateway } from './delivery-gateway.ts';
import { createStage, flood, untilShown } from './delivery-scene.ts';
import { slowReaderContract } from './delivery-slow.ts';
import { many, post, sse } from './delivery-streams.ts';
import { expectExactly, expectWhole } from './delivery-truth.ts';

const CONNECTIONS = [sse, gateway, post, many];

// What /api/events writes to its connection it writes as a stream of one session does.
for (const connection of [sse, gateway, post]) slowReaderContract(connection);

describe('the end of connections', () => {
  it('[HT9][SU1] a server that stops ends every stream in time, stuck ones too', async () => {
    const config = 'server: {drain_s: 0.1}\nlive: {backlog_bytes: 100000000, send_deadline_s: 600}';
    const stage = await createStage({ config });
    const scene = await stage.scene();
    const open = () => Promise.all(CONNECTIONS.map((connection) => connection.attach(scene)));
    const healthy = await open();
    const stuck = await open();
    await scene.submit();
    const turn = await scene.turn();
    await until('the turn has begun', () => [...healthy, ...stuck].every((reader) => reader.shown().length === 1));
    for (const reader of stuck) reader.pause();
    await flood(stage, turn, stuck.length, (said) => healthy.every((reader) => reader.shown().length === said + 1));
    turn.text('the last words');
    // The drain and a second for what is still owed. The deadline of a send would be longer than the time of a test.
    await stage.server.app.close();
    await until('everybody hears of it', () => healthy.every((reader) => reader.closed()));
    const truth = await scene.truth();
    expect(truth.at(-1)).toMatchObject({ type: 'message.complete', payload: { outcome: 'interrupted' } });
    for (const reader of healthy) expectExactly(truth, reader.shown());
    expect(healthy.map((reader) => reader.closed())).toEqual(['ended', 1001, 'ended', 'ended']);
  });

  // Only a WebSocket has a sign of life that a peer must answer. On a stream of server-sent events heartbeats go one
  // way: a peer that is gone is found by TCP, which gives up on what nobody acknowledges.
  it('[SU1][GW6] a peer that is gone without a word is found, and its session goes on for others', async () => {
    const stage = await createStage({ heartbeatS: 0.1 });
    const scene = await stage.scene();
    const stays = await gateway.attach(scene);
    const wire = await createWire(stage.server.url);
    const lost = await gateway.attach(scene, wire.url);
    await until('it answers signs of life', () => lost.heartbeats() > 5);
    expect([stage.sockets(), lost.closed()]).toEqual([2, null]);
    wire.silence();
    await until('its connection is ended', () => stage.sockets() === 1);
    expect(stays.closed()).toBeNull();
    await scene.submit();
    (await scene.turn()).complete();
    await scene.over();
    expectWhole(await untilShown(scene, stays), stays);
  });

  it('[GW9] a peer that asks faster than it is answered is not taken for gone', async () => {
    const stage = await createStage({ heartbeatS: 0.05 });
    const scene = await stage.scene();
    await scene.submit();
    const turn = await scene.turn();
    const client = await connectGateway(`${stage.server.url}/`);
    const { session_id } = await client.call('session.resume', { session_id: scene.sessionId });
    // Waits for the turn, and what comes behind it waits too: more than is read ahead.
    const closing = client.request('session.close', { session_id });
    const pings = Array.from({ length: 400 }, () => client.request('ping'));
    const before = client.events('', 'heartbeat').length;
    await until('it has missed many signs of life', () => client.events('', 'heartbeat').length > before + 12);
    turn.complete();
    expect((await closing).result).toEqual({ closed: true });
    expect((await Promise.all(pings)).every(({ result }) => result.pong)).toBe(true);
    await client.close();
  });
});
