import { describe, expect, test } from 'vitest';

// The page is plain JavaScript: its modules have no types to import.
// biome-ignore-start lint/suspicious/noExplicitAny: the state of the page is looked at as it is.
type State = any;
interface StoreModule {
  initialState(): State;
  reduce(state: State, action: object): State;
}
interface ConversationStore {
  isBusy(open: State): boolean;
}
interface DisplayItems {
  displayItems(open: State): any[];
}
// biome-ignore-end lint/suspicious/noExplicitAny: as above.
const moduleOf = (name: string): Promise<unknown> => import(new URL(`../../static/${name}`, import.meta.url).href);
const { initialState, reduce } = (await moduleOf('store.js')) as StoreModule;
const { isBusy } = (await moduleOf('conversation-store.js')) as ConversationStore;
const { displayItems } = (await moduleOf('display-items.js')) as DisplayItems;

const ID = '20260303_130002_abcdef';
const RUN = 'a'.repeat(32);

interface Row {
  id: string;
  role: string;
  content: string;
  run_id: string;
}

const event = (type: string, payload: object, seq?: number, run_id: string | undefined = RUN) => ({
  type: 'event',
  cursor: seq === undefined ? null : `${run_id}:${seq}`,
  event: { type, session_id: ID, run_id, seq, payload },
});
const told = (type: string, payload: object, cursor: string | null = null) => ({
  type: 'event',
  cursor,
  event: { type, session_id: ID, payload },
});
const session = (more: object = {}) => ({
  session_id: ID,
  title: 'T',
  status: 'idle',
  run: null,
  revision: 1,
  queue_length: 0,
  draft: '',
  pinned: false,
  archived: false,
  created_at: 1,
  last_message_at: null,
  ...more,
});
const snapshot = (run: object | null, more: object = {}) =>
  told('session.snapshot', { session: session(), run, queue: [], open_requests: [], revision: 1, ...more }, '0');
const start = (seq = 1) => event('run.start', { admission_id: 'x', input: 'hi', generation: 1, timestamp: 1 }, seq);
const delta = (seq: number, text: string) => event('message.delta', { text }, seq);
const complete = (seq: number, text: string) =>
  event('message.complete', { status: 'complete', text, outcome: 'completed', message_id: `${RUN}.1` }, seq);
const prompt: Row = { id: `${RUN}.0`, role: 'user', content: 'hi', run_id: RUN };
const answer = (content: string): Row => ({ id: `${RUN}.1`, role: 'assistant', content, run_id: RUN });
const asked = { type: 'rows.requested', sessionId: ID };
const rows = (messages: Row[], revision = 1) => ({
  type: 'rows.loaded',
  sessionId: ID,
  messages,
  has_more: false,
  revision,
});

const play = (...actions: object[]): State =>
  actions.reduce(reduce, reduce(initialState(), { type: 'session.open', sessionId: ID }));

/** What a person sees of each run, in order. */
function seen(state: State): string[] {
  return displayItems(state.open).map((item) => {
    if (item.kind === 'prompt') return `> ${item.text}`;
    if (item.kind === 'row') return item.row.role === 'user' ? `> ${item.row.content}` : item.row.content;
    return item.run.parts.map((part: { text?: string }) => part.text ?? '').join('');
  });
}

describe('events into the state of the page', () => {
  test('[UI1] an event that was applied is not applied again', () => {
    const state = play(
      asked,
      rows([]),
      snapshot(null),
      start(),
      delta(2, 'Hel'),
      delta(2, 'Hel'),
      delta(3, 'lo'),
      start(),
    );
    expect(seen(state)).toEqual(['> hi', 'Hello']);
    expect(state.open.cursor).toBe(`${RUN}:3`);
  });

  test('[UI1] missing events are noticed: the stream is asked for a snapshot, and nothing is shown from beyond the gap', () => {
    const lost = play(
      asked,
      rows([]),
      snapshot(null),
      start(),
      delta(2, 'a'),
      event('tool.start', { tool_id: 't' }, 4),
    );
    expect(lost.open).toMatchObject({ lost: true, cursor: null });
    const still = reduce(lost, delta(5, 'x'));
    expect(seen(still)).toEqual(['> hi', 'a']);
    const parts = [{ type: 'text', text: 'abc' }];
    const mended = reduce(
      still,
      snapshot({ run_id: RUN, input: 'hi', generation: 1, text: 'abc', parts, tools: [], last_seq: 5 }),
    );
    expect(mended.open.lost).toBe(false);
    expect(seen(mended)).toEqual(['> hi', 'abc']);
  });

  test('[UI1] a run whose beginning was not seen is a gap', () => {
    expect(play(asked, rows([prompt]), snapshot(null), delta(7, 'x')).open.lost).toBe(true);
  });

  test('[UI1] the output of a running tool grows in its card, and that of an unknown one nowhere', () => {
    const state = play(
      asked,
      rows([]),
      snapshot(null),
      start(),
      event('tool.start', { tool_id: 't', name: 'terminal' }, 2),
      event('tool.output', { tool_id: 't', text: 'a' }, 3),
      event('tool.output', { tool_id: 't', text: 'bcd' }, 6),
      event('tool.output', { tool_id: 'other', text: 'x' }, 7),
    );
    expect(state.open.lost).toBe(false);
    expect(state.open.runs[0].tools).toEqual({ t: { tool_id: 't', name: 'terminal', output: 'abcd' } });
  });

  test('[UI1] deltas that the server joined for a slow reader are no gap', () => {
    const state = play(asked, rows([]), snapshot(null), start(), delta(2, 'a'), delta(9, 'bcdefgh'));
    expect(state.open.lost).toBe(false);
    expect(seen(state)).toEqual(['> hi', 'abcdefgh']);
  });

  test('[UI1] a snapshot in mid-turn is continued by the events behind it', () => {
    const run = {
      run_id: RUN,
      input: 'hi',
      generation: 1,
      text: 'Hel',
      parts: [{ type: 'text', text: 'Hel' }],
      tools: [],
      last_seq: 4,
    };
    const state = play(asked, snapshot(run), rows([prompt]), delta(3, 'el'), delta(4, 'l'), delta(5, 'lo'));
    expect(seen(state)).toEqual(['> hi', 'Hello']);
  });

  test('[UI1] the rows of a turn take the place of its live view, whichever comes first', () => {
    const before = play(asked, rows([]), snapshot(null), start(), delta(2, 'Hello'));
    const done = reduce(before, complete(3, 'Hello'));
    expect(seen(done)).toEqual(['> hi', 'Hello']);
    expect(done.open.wanted).toBeGreaterThan(done.open.loaded);
    const settled = [asked, rows([prompt, answer('Hello')], 2)].reduce(reduce, done);
    expect(seen(settled)).toEqual(['> hi', 'Hello']);
    expect(settled.open.runs).toEqual([]);
    // The rows overtook the end of the stream.
    const early = [{ type: 'rows.requested', sessionId: ID }, rows([prompt, answer('Hello')], 2)].reduce(
      reduce,
      before,
    );
    expect(seen(early)).toEqual(['> hi', 'Hello']);
    expect(seen(reduce(early, complete(3, 'Hello')))).toEqual(['> hi', 'Hello']);
  });

  test('[UI1] rows that were read before a turn ended do not count as its rows', () => {
    const running = play(asked, rows([]), snapshot(null), start(), delta(2, 'Hello'));
    const state = [
      { type: 'event', cursor: null, event: { type: 'session.reset', session_id: 'other', payload: {} } },
      asked,
      complete(3, 'Hello'),
      rows([prompt], 1),
    ].reduce(reduce, running);
    expect(seen(state)).toEqual(['> hi', 'Hello']);
    expect(state.open.wanted).toBeGreaterThan(state.open.loaded);
  });

  test('[UI1] rows read while the output was hidden, then a snapshot without a run: the rows are read again', () => {
    const state = play(asked, rows([prompt], 5), snapshot(null, { session: session({ revision: 5 }) }));
    expect(state.open.wanted).toBeGreaterThan(state.open.loaded);
    const again = [asked, rows([prompt, answer('Hello')], 5)].reduce(reduce, state);
    expect(seen(again)).toEqual(['> hi', 'Hello']);
    expect(again.open.wanted).toBe(again.open.loaded);
  });

  test('[UI1] a turn without any output is asked for once, not for ever', () => {
    const state = play(snapshot(null), asked, rows([prompt]));
    expect(state.open.wanted).toBe(state.open.loaded);
  });

  test('[UI1] answers for a session that was left change nothing', () => {
    const left = reduce(play(asked), { type: 'session.open', sessionId: 'another' });
    expect(reduce(left, rows([prompt]))).toBe(left);
    expect(reduce(left, delta(1, 'x'))).toBe(left);
  });

  test('[UI1] a prompt that was cancelled while it waited leaves the queue and shows nothing', () => {
    const queued = { admission_id: 'q', run_id: 'b'.repeat(32), text: 'later' };
    const state = play(
      asked,
      rows([]),
      snapshot(null, { queue: [queued] }),
      event('message.complete', { text: '', outcome: 'cancelled' }, undefined, queued.run_id),
    );
    expect(state.open.queue).toEqual([]);
    expect(displayItems(state.open)).toEqual([]);
  });

  test('[UI3] news from before the end of a turn does not make it run again', () => {
    const old = session({ status: 'running', run: { run_id: RUN, admission_id: 'x', started_at: 1 } });
    const ended = play(asked, rows([]), snapshot(null), start(), complete(2, ''));
    expect(isBusy(reduce(ended, told('session.info', { session: old, queue: [], open_requests: [] })).open)).toBe(
      false,
    );
  });
});

// ---------------------------------------------------------------- any order that a network may make

/** A small generator of numbers from 0 to 1, so that a seed is a whole story. */
function mulberry(seed: number): () => number {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

interface ModelRun {
  id: string;
  text: string;
  events: { type: string; payload: object }[];
  published: number;
}

/** What the first event of a run says of its prompt. */
const inputOf = ({ events: [start] }: ModelRun) => {
  const { input, generation } = start!.payload as { input: string; generation: number };
  return { input, generation };
};

/** The server as the interface describes it: rows hide the output of the running turn, and revisions move early. */
function createModel(random: () => number) {
  const runs: ModelRun[] = [1, 2, 3].map((number) => {
    const id = String(number).repeat(32);
    const words = Array.from({ length: 1 + Math.floor(random() * 5) }, (_, at) => `${number}${'abcdef'[at]} `);
    return {
      id,
      text: words.join(''),
      published: 0,
      events: [
        { type: 'run.start', payload: { admission_id: id, input: `p${number}`, generation: number, timestamp: 1 } },
        ...words.map((text) => ({ type: 'message.delta', payload: { text } })),
        { type: 'message.complete', payload: { status: 'complete', text: words.join(''), outcome: 'completed' } },
      ],
    };
  });
  let revision = 1;
  const isDone = (run: ModelRun) => run.published === run.events.length;
  const live = () => runs.find((run) => run.published > 0 && !isDone(run)) ?? null;
  const cursor = () => {
    const last = runs.findLast((run) => run.published > 0);
    return last ? `${last.id}:${last.published}` : '0';
  };
  const view = () => {
    const run = live();
    return session({ revision, status: run ? 'running' : 'idle', run: run && { run_id: run.id } });
  };
  const envelope = (run: ModelRun, seq: number) =>
    event(run.events[seq - 1]!.type, run.events[seq - 1]!.payload, seq, run.id);
  return {
    runs,
    finished: () => runs.every(isDone),
    /** The next thing that happens; what readers are told of it. */
    step(): object[] {
      const run = runs.find((one) => !isDone(one))!;
      // A settle moves the revision before its end is told.
      if (run.published === 0 || run.published === run.events.length - 2) revision += 1;
      run.published += 1;
      const info = told('session.info', { session: view(), queue: [], open_requests: [] });
      return run.published === 1 || isDone(run) ? [envelope(run, run.published), info] : [envelope(run, run.published)];
    },
    rows: () => ({
      revision,
      messages: runs.flatMap((run) => [
        ...(run.published > 0
          ? [{ id: `${run.id}.0`, role: 'user', content: run.events[0]!.payload, run_id: run.id }]
          : []),
        ...(isDone(run) ? [{ id: `${run.id}.1`, role: 'assistant', content: run.text, run_id: run.id }] : []),
      ]),
    }),
    /** What a new connection begins with. */
    attach(at: string | null): object[] {
      if (at === null) {
        const run = live();
        const text =
          run?.events
            .slice(1, run.published)
            .map((one) => (one.payload as { text: string }).text)
            .join('') ?? '';
        const parts = text === '' ? [] : [{ type: 'text', text }];
        const shown = run && {
          ...inputOf(run),
          run_id: run.id,
          text,
          parts,
          tools: [],
          last_seq: run.published,
        };
        return [told('session.snapshot', { session: view(), run: shown, queue: [], open_requests: [] }, cursor())];
      }
      const [runId, seq] = at === '0' ? [null, 0] : [at.slice(0, 32), Number(at.slice(33))];
      const from = runId === null ? 0 : runs.findIndex((run) => run.id === runId);
      const frames = runs.slice(from).flatMap((run, place) => {
        const after = place === 0 && runId !== null ? seq : 0;
        return run.events.slice(after, run.published).map((_, offset) => envelope(run, after + offset + 1));
      });
      return [...frames, told('session.info', { session: view(), queue: [], open_requests: [] })];
    },
  };
}

/** What is shown of each run's output. @throws when one is shown from two sources */
function outputs(state: State): Map<string, string> {
  const found = new Map<string, string>();
  for (const item of displayItems(state.open)) {
    const isOutput = item.kind === 'live' || (item.kind === 'row' && item.row.role !== 'user');
    if (!isOutput) continue;
    const id = item.kind === 'live' ? item.run.id : item.row.run_id;
    if (found.has(id)) throw new Error(`the output of ${id} is shown twice`);
    const text =
      item.kind === 'live' ? item.run.parts.map((part: { text: string }) => part.text).join('') : item.row.content;
    found.set(id, text);
  }
  return found;
}

describe('any order of frames, answers and connections', () => {
  test('[UI1] every character of every turn is shown once, and never goes back', () => {
    for (let seed = 1; seed <= 1000; seed += 1) {
      const random = mulberry(seed);
      const server = createModel(random);
      let state = play();
      let wire = server.attach(null);
      /** Answers to GET messages: asked for, then read on the server, then delivered. */
      let answerOnItsWay: { messages: unknown[]; revision: number } | 'not read' | null = null;
      const longest = new Map<string, number>();
      const check = (): void => {
        const now = outputs(state);
        for (const run of server.runs) {
          const text = now.get(run.id) ?? '';
          if (!run.text.startsWith(text)) throw new Error(`seed ${seed}: "${text}" is no beginning of "${run.text}"`);
          if (text.length < (longest.get(run.id) ?? 0)) throw new Error(`seed ${seed}: text of ${run.id} went back`);
          longest.set(run.id, text.length);
        }
      };
      for (let step = 0; step < 400; step += 1) {
        const choice = random();
        if (choice < 0.3 && !server.finished()) wire.push(...server.step());
        else if (choice < 0.65 && wire.length) state = reduce(state, wire.shift()!);
        else if (choice < 0.75 && answerOnItsWay === null && state.open.wanted > state.open.loaded) {
          state = reduce(state, asked);
          answerOnItsWay = 'not read';
        } else if (choice < 0.85 && answerOnItsWay === 'not read') answerOnItsWay = server.rows();
        else if (choice < 0.93 && answerOnItsWay !== null && answerOnItsWay !== 'not read') {
          state = reduce(state, { type: 'rows.loaded', sessionId: ID, has_more: false, ...answerOnItsWay });
          answerOnItsWay = null;
        } else if (choice > 0.97) wire = server.attach(random() < 0.7 ? state.open.cursor : null);
        if (state.open.lost) throw new Error(`seed ${seed}: a gap where none was`);
        check();
      }
      while (!server.finished()) wire.push(...server.step());
      for (let round = 0; round < 20; round += 1) {
        for (const frame of wire.splice(0)) state = reduce(state, frame);
        if (answerOnItsWay === null && state.open.wanted > state.open.loaded) {
          state = reduce(state, asked);
          answerOnItsWay = 'not read';
        }
        if (answerOnItsWay === 'not read') answerOnItsWay = server.rows();
        if (answerOnItsWay)
          state = reduce(state, { type: 'rows.loaded', sessionId: ID, has_more: false, ...answerOnItsWay });
        answerOnItsWay = null;
        check();
      }
      const shown = [...outputs(state).values()];
      expect(shown, `seed ${seed}`).toEqual(server.runs.map((run) => run.text));
      expect(state.open, `seed ${seed}`).toMatchObject({ runs: [], loading: null });
      expect(state.open.wanted, `seed ${seed}`).toBe(state.open.loaded);
      expect(isBusy(state.open), `seed ${seed}`).toBe(false);
    }
  });
});
