/** One run as its events tell it, as a pure function: what the agent has said and done so far, in order. */

/** A run of which nothing is known yet. */
export const newRun = (id) => ({
  id,
  seq: 0,
  /** The prompt; null when it is only known from its row. */
  input: null,
  /** Ids of what came with it. */
  attachments: [],
  generation: null,
  /** `{type: 'text' | 'reasoning', text}` or `{type: 'tool', tool_id}` or `{type: 'input', text}` (said to it while it ran), in order. */
  parts: [],
  tools: {},
  todos: null,
  /** Tokens so far, as its `usage` events told; null before the first. */
  usage: null,
  status: null,
  /** Payload of its `message.complete`. */
  end: null,
  /** Rows that are asked for from here on have it. */
  endedAt: null,
});

/**
 * A run from a snapshot.
 * @param known the same run as it was seen so far, or undefined; what it has and a snapshot has not stays
 */
export function runFromSnapshot(view, known) {
  if (known && known.seq >= view.last_seq) return known;
  return {
    ...(known ?? newRun(view.run_id)),
    input: view.input,
    generation: view.generation,
    seq: view.last_seq,
    parts: view.parts,
    tools: Object.fromEntries(view.tools.map((tool) => [tool.tool_id, tool])),
    todos: view.todos?.length ? view.todos : null,
    status: view.notice?.text ?? null,
  };
}

/** What may come as one for several. */
const DELTAS = new Set(['message.delta', 'reasoning.delta', 'tool.output']);

/**
 * Whether events are missing before this one. A delta may jump: for a reader that lags the server joins neighbouring
 * deltas into one, with the place of the last.
 */
export const isGap = (run, type, seq) => seq !== run.seq + 1 && (run.seq === 0 || !DELTAS.has(type));

/** Characters of a running tool's output that are kept; a snapshot has as many. */
const MOST_OUTPUT = 64 * 1024;

/** The run after one of its events. */
export function applyToRun(run, type, payload) {
  switch (type) {
    case 'run.start':
      return {
        ...run,
        input: payload.input,
        generation: payload.generation,
        attachments: payload.attachments ?? [],
      };
    case 'message.start':
      return run.parts.length ? { ...run, breakNext: true } : run;
    case 'message.input':
      return { ...run, parts: [...run.parts, { type: 'input', text: payload.input }], breakNext: true };
    case 'message.delta':
      return grow(run, 'text', payload.text);
    case 'reasoning.delta':
      return grow(run, 'reasoning', payload.text);
    case 'tool.start': {
      const { tool_id } = payload;
      return {
        ...run,
        parts: [...run.parts, { type: 'tool', tool_id }],
        tools: { ...run.tools, [tool_id]: payload },
      };
    }
    case 'tool.output': {
      const known = run.tools[payload.tool_id];
      if (!known) return run;
      const output = ((known.output ?? '') + payload.text).slice(-MOST_OUTPUT);
      return { ...run, tools: { ...run.tools, [payload.tool_id]: { ...known, output } } };
    }
    case 'tool.complete': {
      const tool = { ...run.tools[payload.tool_id], ...payload };
      return { ...run, tools: { ...run.tools, [payload.tool_id]: tool } };
    }
    case 'todo.updated':
      return { ...run, todos: payload.todos };
    case 'usage':
      return { ...run, usage: payload };
    case 'status':
      return { ...run, status: payload.text };
    default:
      return run;
  }
}

function grow(run, type, text) {
  const last = run.parts.at(-1);
  const parts = run.parts.slice();
  if (last?.type === type && !run.breakNext) parts[parts.length - 1] = { ...last, text: last.text + text };
  else parts.push({ type, text });
  return { ...run, parts, breakNext: false, status: null };
}
