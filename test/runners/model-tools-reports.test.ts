/** What tools tell while they run side by side: in its place among the events, and nothing after their end. */
import { expect, it, onTestFinished } from 'vitest';
import type { RunnerEvent } from '../../server/runners/runner.ts';
import type { ToolContext, ToolDefinition } from '../../server/workspace/tools.ts';
import { type Step, startFakeProvider } from '../support/fake-provider.ts';
import { drive, modelRunnerOn, providerAt, turnOf } from './model-bench.ts';

const tool = (name: string, execute: ToolDefinition['execute']): ToolDefinition => ({
  name,
  description: name,
  effect: 'read',
  parameters: { type: 'object', properties: {} },
  preview: () => name,
  execute,
});

async function runnerWith(...tools: ToolDefinition[]) {
  const provider = await startFakeProvider();
  onTestFinished(async () => {
    await provider.close();
    expect(provider.violations).toEqual([]);
  });
  const steps: Step = { tool_calls: tools.map(({ name }) => ({ name, id: name })) };
  provider.next(steps);
  return modelRunnerOn(providerAt(provider.baseUrl), { tools });
}

const told = (events: readonly RunnerEvent[]): string[] =>
  events.flatMap((event) => {
    if (event.type === 'tool.output') return [`${event.payload.tool_id}: ${event.payload.text}`];
    if (event.type === 'tool.complete') return [`${event.payload.tool_id} ends: ${event.payload.result}`];
    return event.type === 'todo.updated' ? [`${event.payload.todos.length} to do`] : [];
  });

it('[TL3] output of two tools comes as it is put out, each before the end of its tool and none after', async () => {
  let late: ToolContext | null = null;
  let go = (): void => {};
  const firstSaid = new Promise<void>((resolve) => {
    go = resolve;
  });
  const first = tool('first', async (_args, context) => {
    late = context;
    context.output('1');
    context.output('2');
    return { result: 'done', is_error: false };
  });
  const second = tool('second', async (_args, context) => {
    await firstSaid;
    late!.output('too late');
    context.output('3');
    context.todos([{ content: 'x', status: 'pending' }]);
    return { result: 'done too', is_error: false };
  });
  const runner = await runnerWith(first, second);
  const { events, end } = await drive(runner, turnOf('go'), undefined, (event) => {
    if (event.type === 'tool.complete' && event.payload.tool_id === 'first') go();
  });
  expect(end).toEqual({ kind: 'completed' });
  expect(told(events)).toEqual([
    'first: 1',
    'first: 2',
    'first ends: done',
    'second: 3',
    '1 to do',
    'second ends: done too',
  ]);
});

it('[TL3] a tool that never stops talking is shown, and is left behind by an abort', async () => {
  const chatty = tool('chatty', async (_args, { output, signal }) => {
    for (let n = 0; !signal.aborted; n++) {
      output(`${n}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
    output('after the end');
    return { result: 'stopped', is_error: true };
  });
  const abort = new AbortController();
  let seen = 0;
  const { events } = await drive(await runnerWith(chatty), turnOf('go'), abort.signal, (event) => {
    if (event.type === 'tool.output') seen += 1;
    if (seen === 20) abort.abort();
  });
  const shown = told(events);
  expect(shown.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, n) => `chatty: ${n}`));
  expect(shown.join('\n')).not.toMatch(/after the end|ends/);
});
