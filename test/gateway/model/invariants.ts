/** What must be true of every reader behind each operation, and of everything that is stored at the end. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { until } from '../../support/until.ts';
import type { Turn } from './conn.ts';
import type { Line, Shown } from './line.ts';
import type { Model } from './model.ts';

const CANARY = /cnry-s\d+-\d{3}/g;
const canariesIn = (text: string): string[] => [...new Set(text.match(CANARY))];

const turnsOf = (model: Model): Turn[] => [...model.sessions.values()].flatMap(({ turns }) => turns);
const endsOf = (line: Line, { runId }: Turn): Shown[] =>
  line.shown().filter((event) => event.type === 'message.complete' && event.runId === runId);

/** Behind each operation. */
export async function checkStep(model: Model): Promise<void> {
  const { world, conns } = model;
  const owners = new Map(turnsOf(model).map(({ canary, key }) => [canary, key]));
  const faults = [...world.faults, ...conns.flatMap((conn) => conn.faults().map((fault) => `${conn.name}: ${fault}`))];
  for (const line of model.lines()) {
    faults.push(...line.faults().map((fault) => `GW3, EV1: ${line.name}: ${fault}`));
    const shown = line.shown();
    const news = shown.slice(model.looked.get(line) ?? 0);
    model.looked.set(line, shown.length);
    for (const canary of canariesIn(JSON.stringify(news))) {
      const owner = owners.get(canary);
      if (owner !== line.key) faults.push(`GW5, EV1: ${line.name} was shown ${canary} of ${owner}`);
    }
    const ends = shown.flatMap((event) => (event.type === 'message.complete' ? (event.runId ?? []) : []));
    if (new Set(ends).size < ends.length) faults.push(`EV2: ${line.name} was shown an end twice: ${ends}`);
  }
  const keys = (await world.active()).map((row) => row.session_key);
  for (const key of new Set(keys)) {
    if (keys.filter((other) => other === key).length > 1) faults.push(`GW1: ${key} has two live sessions`);
  }
  expect(faults).toEqual([]);
}

/** When everything has come to rest. */
export async function checkEnd(model: Model): Promise<void> {
  for (const { key, isGone } of model.sessions.values()) if (!isGone) await model.idle(key);
  for (const line of model.lines()) if (line.isOpen()) await checkReader(model, line);
  checkSameNumbers(model);
  await checkStored(model);
  checkRuns(model);
  await checkStep(model);
}

/** EV2, GW4: an open line was shown each turn once, with all of its text and nothing besides. */
async function checkReader(model: Model, line: Line): Promise<void> {
  for (const turn of model.sessions.get(line.key)!.turns) {
    const wanted = line.endedBefore.has(turn.runId) ? 0 : 1;
    if (wanted === 1) await model.ends(line, turn);
    const ends = endsOf(line, turn);
    expect(ends.length, `EV2: ends of ${turn.canary} that ${line.name} was shown`).toBe(wanted);
    if (wanted === 0) continue;
    const { payload } = ends[0]!;
    const deltas = line.shown().filter((event) => event.type === 'message.delta' && event.runId === turn.runId);
    const before = line.begun?.runId === turn.runId ? line.begun.text : '';
    const text = before + deltas.map((event) => event.payload.text).join('');
    const isWhole = payload.outcome === 'completed';
    if (turn.fate === 'whole') expect(payload.outcome, `${turn.canary} ends by itself`).toBe('completed');
    else expect(['interrupted', 'completed'], `${turn.canary} is accounted for`).toContain(payload.outcome);
    if (isWhole)
      expect([text, payload.text], `GW4: ${line.name} of ${turn.canary}`).toEqual([turn.answer, turn.answer]);
    else expect(turn.answer.startsWith(text), `GW4: ${line.name} was shown ${text}`).toBe(true);
  }
}

/** GW3: a number is the same event for everybody. */
function checkSameNumbers(model: Model): void {
  const seen = new Map<string, string>();
  for (const { runtimeId, name, shown } of model.lines()) {
    if (runtimeId === null) continue;
    for (const { seq, firstSeq, ...event } of shown()) {
      if (seq !== firstSeq) continue;
      const place = `${runtimeId}:${seq}`;
      const text = JSON.stringify(event);
      expect(text, `GW3: ${place} of ${name}`).toBe(seen.get(place) ?? text);
      seen.set(place, text);
    }
  }
}

interface MessageRow {
  session_id: string;
  role: string;
  content: string | null;
  run_id: string | null;
}

/** AD1, GW2, GW7: prompts and answers where they belong, once and in order, in the rows and in what a person reads. */
async function checkStored({ world, sessions }: Model): Promise<void> {
  const rows = world.rows<MessageRow>('SELECT session_id, role, content, run_id FROM messages ORDER BY id');
  const known = world.rows<{ id: string }>('SELECT id FROM sessions').map(({ id }) => id);
  const wanted = [...sessions.values()].filter(({ isStored, isGone }) => isStored && !isGone);
  expect(known.sort(), 'GW2, GW7: sessions that are stored').toEqual(wanted.map(({ key }) => key).sort());
  for (const { key, turns } of sessions.values()) {
    const isThere = wanted.some((one) => one.key === key);
    const admissions = world.rows<{ run_id: string; status: string }>(
      'SELECT run_id, status FROM session_admissions WHERE target_session_id = ? ORDER BY seq',
      key,
    );
    if (!isThere) {
      expect(
        rows.filter((row) => row.session_id === key),
        'GW7',
      ).toEqual([]);
      expect(admissions, 'GW7').toEqual([]);
      expect(world.rows('SELECT 1 FROM active_sessions WHERE session_id = ?', key), 'GW7').toEqual([]);
      await until(`no file of ${key} is left`, () => !existsSync(path.join(world.home, 'sessions', `${key}.json`)));
      continue;
    }
    expect(admissions, 'AD1').toEqual(turns.map(({ runId }) => ({ run_id: runId, status: 'terminal' })));
    const { json } = await world.server().call('GET', `/api/sessions/${key}/messages?limit=100000`);
    const person: MessageRow[] = json.messages.map((row: MessageRow) => ({ ...row, session_id: key }));
    for (const [where, all] of Object.entries({ rows, person })) {
      checkTranscript(`${where} of ${key}`, all, key, turns);
    }
  }
}

function checkTranscript(where: string, rows: readonly MessageRow[], key: string, turns: readonly Turn[]): void {
  const prompts = rows.filter((row) => row.session_id === key && row.role === 'user');
  expect(
    prompts.map((row) => row.content),
    `AD1: prompts in ${where}`,
  ).toEqual(turns.map(({ text }) => text));
  for (const turn of turns) {
    const replies = rows.filter((row) => row.role === 'assistant' && (row.content ?? '').includes(turn.canary));
    for (const row of replies) expect(row.session_id, `the answer to ${turn.canary} in ${where}`).toBe(key);
    const texts = replies.map((row) => row.content);
    if (turn.fate === 'whole') expect(texts, `the answer to ${turn.canary} in ${where}`).toEqual([turn.answer]);
    else {
      expect(texts.length, `answers to ${turn.canary} in ${where}`).toBeLessThanOrEqual(1);
      expect(turn.answer.startsWith(texts[0] ?? ''), `${texts[0]} in ${where}`).toBe(true);
    }
  }
}

/** Each prompt went to the model once: none was lost, none was run twice. */
function checkRuns(model: Model): void {
  for (const turn of turnsOf(model)) {
    const asked = model.world.provider.requests.filter(({ body }) => {
      const last = body.messages?.at(-1)?.content;
      return typeof last === 'string' && canariesIn(last.split('\n\n').at(-1)!).includes(turn.canary);
    });
    // One that was killed may have been about to ask.
    const wanted = turn.fate === 'killed' ? [0, 1] : [1];
    expect(wanted, `${turn.canary} was asked for ${asked.length} times`).toContain(asked.length);
  }
  expect(model.world.provider.violations).toEqual([]);
}

/** GW6: when all clients have left, nothing is held for them. */
export async function checkRelease({ world, conns, late }: Model): Promise<void> {
  for (const conn of conns) if (conn.isOpen()) await conn.drop();
  for (const reader of late) reader.drop();
  await until('no live session is left', async () => (await world.active()).length === 0);
  // What a killed server has left stands in nobody's way (LE4).
  const { pid } = world.server().process;
  await until('no lease is left', () => world.rows('SELECT 1 FROM active_sessions WHERE pid = ?', pid).length === 0);
}
