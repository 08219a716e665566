/** What of an open conversation is to be shown, in order; pure. */
import { shownRows } from './past-store.js';

/**
 * The conversation as a list of things to show, each once, oldest first:
 * `{key, kind: 'row', row, results, plan}` (a stored row; results are the tool rows that its calls led to, plan what the
 * agent meant to do, on the last row of its turn that says so),
 * `{key, kind: 'prompt', text, attachments}` and `{key, kind: 'live', run, requests}`. Away from the end there are rows only.
 */
export function displayItems(open) {
  const { rows, hasNewer } = shownRows(open);
  const live = new Map(hasNewer ? [] : open.runs.map((run) => [run.id, run]));
  const results = new Map();
  const lastOf = new Map();
  const planOf = new Map();
  for (const row of rows) {
    if (row.role === 'tool' && row.tool_call_id) results.set(`${row.run_id}/${row.tool_call_id}`, row);
    if (row.run_id) lastOf.set(row.run_id, row);
    if (row.todos) planOf.set(row.run_id, row);
  }
  const shown = new Set();
  const items = [];
  for (const row of rows) {
    if (row.role === 'system') continue;
    const own = [];
    for (const call of row.tool_calls ?? []) {
      const key = `${row.run_id}/${call.id}`;
      shown.add(key);
      own.push(results.get(key) ?? null);
    }
    if (row.role === 'tool' && shown.has(`${row.run_id}/${row.tool_call_id}`)) continue;
    const plan = planOf.get(row.run_id) === row && row.todos.length > 0 ? row.todos : null;
    items.push({ key: row.id, kind: 'row', row, results: own, plan });
    const run = row.run_id && lastOf.get(row.run_id) === row ? live.get(row.run_id) : undefined;
    if (run) {
      items.push(liveItem(open, run));
      live.delete(run.id);
    }
  }
  for (const run of live.values()) {
    if (run.input !== null) {
      items.push({ key: `${run.id}.0`, kind: 'prompt', text: run.input, attachments: run.attachments });
    }
    items.push(liveItem(open, run));
  }
  return items;
}

const liveItem = (open, run) => ({
  key: `live:${run.id}`,
  kind: 'live',
  run,
  requests: open.requests.filter((request) => request.run_id === run.id),
});
