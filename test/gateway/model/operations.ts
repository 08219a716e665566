/** What clients do to each other and what happens to them, one operation after the other. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Line } from './line.ts';
import type { Model, Slot } from './model.ts';
import { expectUnknown, expectWhole, givenBack, liveOf } from './moments.ts';

export type Operation = (model: Model, slot: Slot) => Promise<void>;

/** The lid is closed for that long: the scenario itself, nothing is waited for. */
const ABSENCE_MS = 3_000;

async function create(model: Model, slot: Slot): Promise<void> {
  await model.create(slot);
  model.did('create');
}

/** Another session is put before the client; it stays attached to the one it had. */
async function change(model: Model, slot: Slot): Promise<void> {
  const others = model.openable(slot).filter(({ key }) => key !== slot.key);
  if (others.length === 0) return create(model, slot);
  await model.open(slot, model.pick(others).key);
  model.did('switch');
}

async function prompt(model: Model, slot: Slot): Promise<void> {
  await model.submit(slot, false);
  model.did('prompt');
}

/** It goes on while others do something else. */
async function promptSlow(model: Model, slot: Slot): Promise<void> {
  await model.submit(slot, true);
  model.did('prompt slow');
}

async function promptBehind(model: Model, slot: Slot): Promise<void> {
  const turn = await model.submit(slot, true);
  const behind = await model.submitBehind(slot);
  const line = slot.conn!.line(turn.key)!;
  await model.ends(line, behind);
  model.did('prompt behind');
}

async function interrupt(model: Model, slot: Slot): Promise<void> {
  const turn = await model.submit(slot, true);
  const line = slot.conn!.line(turn.key)!;
  await model.speaks(line, turn);
  turn.fate = 'stopped';
  await slot.conn!.interrupt(turn.key);
  await model.ends(line, turn);
  await model.idle(turn.key);
  model.did('interrupt');
}

/** GW7. Over REST a session is live for a delete while it runs. */
async function deleteLive(model: Model, slot: Slot): Promise<void> {
  const { key, turns } = await model.selected(slot);
  if (slot.kind === 'rest' || turns.length === 0 || model.random() < 0.5) {
    const turn = await model.submit(slot, slot.kind === 'rest' || model.random() < 0.5);
    if (turn.isSlow) await model.speaks(slot.conn!.line(key)!, turn);
  }
  const stored = () => ({
    session: model.world.rows('SELECT id, source, started_at, cwd FROM sessions WHERE id = ?', key),
    messages: model.world.rows('SELECT * FROM messages WHERE session_id = ? ORDER BY id', key),
  });
  const before = stored();
  expect(await slot.conn!.remove(key), `GW7: the delete of the live ${key} is refused`).toBe('session_live');
  const after = stored();
  expect(after.session, 'GW7').toEqual(before.session);
  expect(after.messages.slice(0, before.messages.length), 'GW7').toEqual(before.messages);
  model.did('delete live');
}

async function closeAndDelete(model: Model, slot: Slot): Promise<void> {
  const session = await model.create(slot);
  const turn = await model.submit(slot, false);
  const { conn } = slot;
  await model.ends(conn!.line(turn.key)!, turn);
  await model.idle(turn.key);
  await conn!.leave(turn.key);
  slot.key = null;
  expect(await liveOf(model, turn.key), `GW6: the closed ${turn.key} is live`).toBe(false);
  expect(await conn!.remove(turn.key)).toBeNull();
  session.isGone = true;
  model.did('close and delete');
}

/** GW6, EV2: the turn goes on, and whoever comes back has all of it. */
async function dropMidTurn(model: Model, slot: Slot): Promise<void> {
  const turn = await model.submit(slot, true);
  await model.speaks(slot.conn!.line(turn.key)!, turn);
  const before = await model.drop(slot);
  const line = await model.open(slot, turn.key, before);
  if (!line.endedBefore.has(turn.runId)) {
    if (line.runtimeId !== null)
      expect(line.runtimeId, 'GW6: a working session was given back').toBe(before!.runtimeId);
    await model.ends(line, turn);
  }
  await model.idle(turn.key);
  expectWhole(model, turn);
  model.did('drop mid-turn');
}

/** GW6: nobody is left; it is given back, a running one after its turn, and then another client takes it. */
async function orphan(model: Model, slot: Slot, isRunning: boolean): Promise<void> {
  const { key } = await model.create(slot);
  const first = await model.submit(slot, false);
  const line = slot.conn!.line(key)!;
  await model.ends(line, first);
  const turn = isRunning ? await model.submit(slot, true) : null;
  if (turn) await model.speaks(line, turn);
  await model.drop(slot);
  await givenBack(model, key, line.runtimeId, turn ?? first);
  const taker = model.pick(model.slots.filter((other) => other !== slot));
  const taken = await model.open(taker, key);
  if (line.runtimeId !== null) expect(taken.runtimeId, 'GW1').not.toBe(line.runtimeId);
  const next = await model.submit(taker, false);
  await model.ends(taken, next);
  model.did(isRunning ? 'orphan running' : 'orphan idle');
}

/** GW6: the one who asked is gone, the one who looks on has the turn. */
async function sharedOwnerDrop(model: Model, slot: Slot): Promise<void> {
  const { key, turns } = await model.selected(slot);
  if (turns.length === 0) await model.submit(slot, false);
  const watcher = model.pick(model.slots.filter((other) => other !== slot));
  const line = await model.open(watcher, key);
  const turn = await model.submit(slot, true);
  await model.speaks(line, turn);
  await model.drop(slot);
  await model.ends(line, turn);
  expectWhole(model, turn);
  await model.submit(watcher, false);
  model.did('shared owner drop');
}

async function absence(model: Model, slot: Slot): Promise<void> {
  const turn = await model.submit(slot, true);
  const line = slot.conn!.line(turn.key)!;
  await model.speaks(line, turn);
  slot.conn!.pause();
  await sleep(ABSENCE_MS);
  slot.conn!.resume();
  await model.ends(line, turn);
  expectWhole(model, turn);
  model.did('absence');
}

async function reconnect(model: Model, slot: Slot): Promise<void> {
  const before = slot.conn ? await model.drop(slot) : null;
  await comeBack(model, slot, before);
  model.did('reconnect');
}

/** GW1: everybody comes to a session at once, and sends it a prompt at once. */
async function together(model: Model, slot: Slot): Promise<void> {
  const { key, turns } = await model.selected(slot);
  if (turns.length === 0) await model.submit(slot, false);
  await model.idle(key);
  for (const one of model.slots) {
    if (one.conn) await model.drop(one);
    await model.connect(one);
  }
  const lines = await Promise.all(model.slots.map((one) => model.open(one, key)));
  const runtimes = new Set(lines.flatMap(({ runtimeId }) => runtimeId ?? []));
  expect(runtimes.size, `GW1: ${key} has the runtimes ${[...runtimes]}`).toBe(1);
  await model.submitTogether(key);
  await model.idle(key);
  model.did('together');
}

/** A second reader comes in the middle of a turn, and stays. */
async function lateReader(model: Model, slot: Slot): Promise<void> {
  const turn = await model.submit(slot, true);
  await model.speaks(slot.conn!.line(turn.key)!, turn);
  const line = await model.join(turn.key);
  expect(line.begun?.runId, 'it came while the turn ran').toBe(turn.runId);
  await model.ends(line, turn);
  model.did('late reader');
}

/**
 * The server dies in the middle of a turn, with a prompt behind it or not, and with a draft that only a connection has.
 * What was accepted is run once or accounted for, and everybody comes back.
 */
async function killAndRestart(model: Model, slot: Slot): Promise<void> {
  const { world, sessions, slots } = model;
  const draft = slot.kind === 'ws' && model.random() < 0.5 ? (await model.create(slot)).key : null;
  if (draft !== null) await change(model, slot);
  const turn = await model.submit(slot, true);
  if (model.random() < 0.5) await model.submitBehind(slot);
  await model.speaks(slot.conn!.line(turn.key)!, turn);
  await world.kill();

  const lines = new Map<Slot, Line | null>();
  for (const one of slots) if (one.conn) lines.set(one, await model.drop(one));
  for (const reader of model.late) reader.drop();
  const started = world.rows<{ run_id: string }>("SELECT run_id FROM session_admissions WHERE status = 'started'");
  const turns = [...sessions.values()].flatMap((session) => session.turns);
  for (const one of turns) if (started.some(({ run_id }) => run_id === one.runId)) one.fate = 'killed';
  expect(turn.fate, 'it was killed in the middle of the turn').toBe('killed');
  await world.start();

  for (const session of sessions.values()) {
    if (session.isGone || session.isStored) continue;
    await expectUnknown(model, session.key);
    session.isGone = true;
    model.did('lost draft');
  }
  for (const reader of model.late) if (!sessions.get(reader.key)!.isGone) await reader.again();
  for (const [one, before] of lines) await comeBack(model, one, before);
  for (const { key, isGone } of sessions.values()) if (!isGone) await model.idle(key);
  model.did('kill and restart');
}

export const operations: Readonly<Record<string, Operation>> = {
  create,
  switch: change,
  prompt,
  'prompt slow': promptSlow,
  'prompt behind': promptBehind,
  interrupt,
  'delete live': deleteLive,
  'close and delete': closeAndDelete,
  'drop mid-turn': dropMidTurn,
  'orphan idle': (model, slot) => orphan(model, slot, false),
  'orphan running': (model, slot) => orphan(model, slot, true),
  'shared owner drop': sharedOwnerDrop,
  absence,
  reconnect,
  together,
  'late reader': lateReader,
  'kill and restart': killAndRestart,
};

/** A client connects again and has its session before it, if that is still there. */
async function comeBack(model: Model, slot: Slot, before: Line | null): Promise<void> {
  await model.connect(slot);
  const session = model.openable(slot).find(({ key }) => key === slot.key);
  slot.key = null;
  if (session) await model.open(slot, session.key, before?.key === session.key ? before : null);
}
