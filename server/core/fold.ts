/**
 * The fold: the rows of a run are by definition `fold(journal events)`. Settle, snapshot and recovery all call this one,
 * so what a person saw live, what is stored and what comes back after a crash are the same (EV3, RE1).
 *
 * An assistant row opens with the first event of a message and closes at the first `tool.complete` after it, at the
 * next `message.start`, or at the end. A tool row follows for each `tool.complete`.
 */
import type { MessageInput, RunEvent } from './events.ts';
import { isMarkerId } from './ids.ts';
import { markerRow } from './marker.ts';
import { promptRow } from './prompt-row.ts';
import type { MarkerCause, Message, Todo, TurnError, Usage } from './terms.ts';

/** How a run ended, as far as its rows are concerned. */
export type FoldEnd =
  | { kind: 'complete' }
  | { kind: 'interrupted'; error?: TurnError }
  | { kind: 'error'; error: TurnError }
  /** `armed`: its journal could not be read yet, so that output may still appear. */
  | { kind: 'dead'; cause: MarkerCause; armed?: boolean };

/** A tool call as a snapshot shows it. */
export interface ToolView {
  tool_id: string;
  name: string;
  args: unknown;
  preview: string;
  /** The end of what it put out so far, at most 64 kB; no part of any row. */
  output?: string;
  result?: string;
  is_error?: boolean;
  duration_s?: number;
  diff?: string;
  denied?: true;
}

/** Characters of a running tool's output that a view has. */
const MAX_OUTPUT = 64 * 1024;

export type Part =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'tool'; tool_id: string }
  /** What a person said to the turn while it ran. */
  | { type: 'input'; text: string };

/** What a reader without a cursor is shown of a running turn. */
export interface FoldView {
  text: string;
  reasoning: string;
  tools: ToolView[];
  parts: Part[];
  todos: Todo[];
  /** The last status of the agent, for example that it waits for a provider. */
  notice: { kind: string; text: string } | null;
}

export interface Fold {
  /**
   * Takes the next event; returns the rows that it closed, oldest first.
   * @param at epoch seconds of the event, as its journal line has it
   */
  apply(event: RunEvent, at: number): Message[];
  /** The rows that a person's words would come behind now: the open one, if it says something, and the one after it. */
  nextInput(input: MessageInput): Message[];
  /** Takes rows of the run that another store has and these events do not. Only between the last event and the end. */
  adopt(committed: readonly Message[]): void;
  /** Ends the run; returns the rows that this closed, the marker of a dead run last. Called once. */
  end(end: FoldEnd, at: number): Message[];
  /** All rows closed so far, the prompt first. */
  rows(): readonly Message[];
  view(): FoldView;
  /** Token counts of all steps together; context figures of the last step. */
  usage(): Usage | null;
}

/** The row that `message.complete` names, and its text: the last assistant row; a dead run's marker only if alone. */
export function finalRow(rows: readonly Message[]): Message | null {
  const replies = rows.filter((row) => row.role === 'assistant');
  return replies.findLast((row) => !isMarkerId(row.id)) ?? replies.at(-1) ?? null;
}

/** Adds the counts of one step to those of a run or session. */
export function addUsage(total: Usage | null, step: Usage): Usage {
  if (!total) return { ...step };
  const sum = (a?: number, b?: number) => (a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0));
  return dropUndefined({
    input_tokens: total.input_tokens + step.input_tokens,
    output_tokens: total.output_tokens + step.output_tokens,
    cached_tokens: sum(total.cached_tokens, step.cached_tokens),
    reasoning_tokens: sum(total.reasoning_tokens, step.reasoning_tokens),
    cost_usd: sum(total.cost_usd, step.cost_usd),
    context_used: step.context_used ?? total.context_used,
    context_length: step.context_length ?? total.context_length,
    context_estimated: step.context_used === undefined ? total.context_estimated : step.context_estimated,
  });
}

function dropUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as T;
}

/** Starts the fold of one run. */
export function createFold(runId: string): Fold {
  const rows: Message[] = [];
  const tools = new Map<string, ToolView>();
  const parts: Part[] = [];
  let open: Message | null = null;
  let next = 0;
  let model: string | undefined;
  let usage: Usage | null = null;
  let todos: Todo[] = [];
  /** The list, while no row has it. */
  let unkept: Todo[] | undefined;
  let notice: FoldView['notice'] = null;

  const openRow = (at: number): Message => {
    open ??= dropUndefined<Message>({
      id: `${runId}.${next}`,
      role: 'assistant',
      content: '',
      timestamp: at,
      run_id: runId,
      status: 'complete',
      model,
      todos: unkept,
    });
    unkept = undefined;
    return open;
  };

  const push = (row: Message): Message => {
    rows.push(row);
    next += 1;
    return row;
  };

  const close = (change: Partial<Message> = {}): Message[] => {
    if (!open) return [];
    const row = push({ ...open, ...change });
    open = null;
    return [row];
  };

  const inputRow = ({ input, timestamp, attachments }: MessageInput, at: number): Message =>
    dropUndefined<Message>({
      id: `${runId}.${at}`,
      role: 'user',
      content: input,
      timestamp,
      run_id: runId,
      attachments: attachments?.length ? attachments : undefined,
    });

  const isEmpty = (row: Message): boolean => row.content === '' && !row.reasoning && !row.tool_calls;

  const grow = (type: 'text' | 'reasoning', text: string): void => {
    const last = parts.at(-1);
    if (last?.type === type) last.text += text;
    else parts.push({ type, text });
  };

  return {
    apply(event, at) {
      switch (event.type) {
        case 'run.start': {
          const { input, timestamp, attachments } = event.payload;
          model = event.payload.model || undefined;
          const prompt = promptRow({ run_id: runId, text: input, attachments: attachments ?? [] }, timestamp);
          return [push(prompt)];
        }
        case 'message.start': {
          const closed: Message[] = open && !isEmpty(open) ? close() : [];
          openRow(at);
          return closed;
        }
        case 'message.input': {
          const closed: Message[] = open && !isEmpty(open) ? close() : [];
          unkept = open?.todos ?? unkept;
          open = null;
          parts.push({ type: 'input', text: event.payload.input });
          return [...closed, push(inputRow(event.payload, next))];
        }
        case 'message.delta': {
          openRow(at).content += event.payload.text;
          grow('text', event.payload.text);
          return [];
        }
        case 'reasoning.delta': {
          const row = openRow(at);
          row.reasoning = (row.reasoning ?? '') + event.payload.text;
          grow('reasoning', event.payload.text);
          return [];
        }
        case 'tool.start': {
          const { tool_id, name, args, preview } = event.payload;
          const row = openRow(at);
          row.tool_calls ??= [];
          row.tool_calls.push({
            id: tool_id,
            type: 'function',
            function: { name, arguments: JSON.stringify(args ?? {}) },
          });
          tools.set(tool_id, { tool_id, name, args, preview });
          parts.push({ type: 'tool', tool_id });
          return [];
        }
        case 'tool.output': {
          const view = tools.get(event.payload.tool_id);
          if (view) view.output = ((view.output ?? '') + event.payload.text).slice(-MAX_OUTPUT).toWellFormed();
          return [];
        }
        case 'tool.complete': {
          const { tool_id, name, result, is_error, duration_s, diff, denied } = event.payload;
          const view = tools.get(tool_id);
          if (view) Object.assign(view, dropUndefined({ result, is_error, duration_s, diff, denied }));
          const closed = close();
          const row: Message = {
            id: `${runId}.${next}`,
            role: 'tool',
            content: result,
            timestamp: at,
            run_id: runId,
            status: 'complete',
            tool_call_id: tool_id,
            name,
            duration_s,
          };
          if (is_error) row.is_error = true;
          if (diff !== undefined) row.diff = diff;
          if (denied) row.denied = true;
          return [...closed, push(row)];
        }
        case 'usage': {
          usage = addUsage(usage, event.payload);
          if (open) open.usage = event.payload;
          return [];
        }
        case 'todo.updated':
          todos = event.payload.todos;
          if (open) open.todos = todos;
          else unkept = todos;
          return [];
        case 'status':
          notice = event.payload;
          return [];
        case 'message.complete':
          return [];
      }
    },

    nextInput(input) {
      const said = open && !isEmpty(open) ? [{ ...open }] : [];
      return [...said, inputRow(input, next + said.length)];
    },

    adopt(committed) {
      if (open) return; // A message is closed before its row is committed: whoever has an open one has all others.
      const known = new Set(rows.map((row) => row.id));
      for (const row of committed) if (!known.has(row.id)) push({ ...row });
    },

    end(end, at) {
      switch (end.kind) {
        case 'complete':
          return open && isEmpty(open) && rows.length > 1 ? [] : close();
        case 'interrupted':
          openRow(at);
          return close(end.error ? { status: 'interrupted', error: end.error } : { status: 'interrupted' });
        case 'error':
          openRow(at);
          return close({ status: 'error', error: end.error });
        case 'dead': {
          for (const row of rows) if (row.role !== 'user') row.recovered = true;
          if (open && isEmpty(open)) open = null;
          const closed = close({ status: 'partial', recovered: true });
          const recovered = rows.some((row) => row.role !== 'user');
          const marker = markerRow(runId, at, end.cause, recovered ? 'recovered' : end.armed ? 'pending' : 'none');
          rows.push(marker);
          return [...closed, marker];
        }
      }
    },

    rows: () => rows,

    view() {
      const text = (type: 'text' | 'reasoning') => parts.map((part) => (part.type === type ? part.text : '')).join('');
      return {
        text: text('text'),
        reasoning: text('reasoning'),
        tools: [...tools.values()].map((tool) => ({ ...tool })),
        parts: parts.map((part) => ({ ...part })),
        todos,
        notice,
      };
    },

    usage: () => usage,
  };
}
