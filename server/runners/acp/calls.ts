/**
 * The tool calls of an agent during one turn. Owns which are open, and the order of their events: each is announced once,
 * before it puts anything out and before any other that is known already ends, and ends once, whatever the agent says and
 * repeats. A call is announced when its input is known or it runs.
 */

import { type KeptOutput, keepOutput } from '../../workspace/output.ts';
import type { RunnerEvent } from '../runner.ts';
import { callResult } from './call-result.ts';
import { keyOf, saysWhat, statusOf } from './call-update.ts';
import { type CallFields, callArguments, callName, callPreview, hasInput, mergeFields } from './call-words.ts';
import { type CallContent, plain, readContent } from './content.ts';
import { isEmptyValue, oneLineOf, type Raw, recordOf, stringOf, weightOf } from './raw.ts';

/** Characters of a running call's output that are told; and bytes at each end of it that are kept for its result. */
const OUTPUT_CHARACTERS = 256 * 1024;
const KEPT_BYTES = 16 * 1024;
/** Output of terminals that no call shows yet: characters of each, and terminals. */
const EARLY_CHARACTERS = 64 * 1024;
const EARLY_TERMINALS = 64;

/** Characters that are kept of what was said of all open calls. */
const MOST_KEPT = 64 * 1024 * 1024;

const TOO_MUCH = '[What the agent tells of this is too much to be kept.]';
const NO_END = 'The agent did not say how this ended.';

export interface KnownCall {
  /** As its events have it. */
  readonly id: string;
  /** What the agent has said of it, all its updates together, as it came. */
  readonly fields: CallFields;
}

interface Call extends KnownCall {
  fields: CallFields;
  /** Characters of them. */
  weight: number;
  /** The title that it had before its input was known; null until it has said anything. */
  firstTitle: string | null;
  /** As it was announced; null until then. */
  name: string | null;
  runs: boolean;
  /** Epoch seconds from which its duration counts. */
  since: number;
  /** The person said yes to some of it. */
  allowed: boolean;
  /** The person said no, and yes to nothing of it. */
  denied: boolean;
  content: CallContent;
  /** Of terminals. */
  output: KeptOutput;
  /** Characters of output that may still be told. */
  left: number;
}

/** What a person has said to a question about a call. */
export type Said = 'yes' | 'no' | 'nothing';

export interface CallParts {
  /** Epoch seconds. */
  now(): number;
  /** The folder of the session. */
  cwd: string | null;
  emit(event: RunnerEvent): void;
  /** Called before a call is announced: there is a message that it belongs to. */
  begins(): void;
  /** Called after a call has ended: what comes next belongs to another message. */
  ended(): void;
}

export interface Calls {
  /** A `tool_call` or `tool_call_update`. */
  take(update: Raw, isFirst: boolean): void;
  /** Announces a call, whatever is known of it. */
  announce(update: Raw): void;
  /** Announces what is still held back. */
  announceAll(): void;
  /** It waited for the person, who said this; what it takes counts from now. */
  answered(update: Raw, said: Said): void;
  terminalOutput(terminalId: string, text: string): void;
  /** An open call, by the agent's id. */
  known(toolCallId: string): KnownCall | null;
  open(): number;
  /** Open calls end as errors. */
  endAll(): void;
}

export function createCalls({ now, cwd, emit, begins, ended }: CallParts): Calls {
  /** Open ones by the agent's id, oldest first. */
  const calls = new Map<string, Call>();
  /** Those of them that are not announced yet. */
  const held = new Set<Call>();
  const over = new Set<string>();
  const ids = new Set<string>();
  /** Characters of the fields of all calls. */
  let kept = 0;
  const early = new Map<string, string>();

  /** The agent's id in letters that fit everywhere, made different where another call of the turn has it. */
  function uniqueId(agentId: string): string {
    const wanted = agentId.slice(0, 64).replace(/[^\w.:-]/g, '_') || 'call';
    let id = wanted;
    for (let n = ids.size; ids.has(id); n += 1) id = `${wanted}_${n}`;
    ids.add(id);
    return id;
  }

  function create(key: string): Call {
    const content = { text: '', changes: [], terminals: [] };
    const rest = {
      fields: {},
      weight: 0,
      firstTitle: null,
      name: null,
      runs: false,
      since: now(),
      allowed: false,
      denied: false,
      left: OUTPUT_CHARACTERS,
    };
    const call: Call = { id: uniqueId(key), ...rest, content, output: keepOutput(KEPT_BYTES, KEPT_BYTES) };
    calls.set(key, call);
    held.add(call);
    return call;
  }

  /** Announces this call and those that were known before it. */
  function announceTo(last: Call | null): void {
    if (last?.name) return;
    for (const call of held) {
      held.delete(call);
      begins();
      call.name = callName(call.fields, call.firstTitle ?? '');
      call.since = now();
      const payload = { tool_id: call.id, name: call.name, args: callArguments(call.fields) };
      emit({ type: 'tool.start', payload: { ...payload, preview: callPreview(call.fields, call.name, cwd) } });
      if (call === last) return;
    }
  }

  function tell(call: Call, text: string): void {
    if (text === '' || call.left < 0) return;
    announceTo(call);
    const shown =
      text.length <= call.left ? text : `${text.slice(0, call.left)}\n[What follows is not shown before the end.]\n`;
    call.left -= text.length;
    emit({ type: 'tool.output', payload: { tool_id: call.id, text: shown.toWellFormed() } });
  }

  function put(call: Call, raw: string): void {
    const text = plain(raw);
    call.output.push(Buffer.from(text));
    tell(call, text);
  }

  /** `content` of an update replaces what was there; what it has more is output. */
  function takeContent(call: Call, given: unknown, isOver: boolean): void {
    if (isEmptyValue(given)) return;
    const read = readContent(given);
    if (read.changes.length === 0) read.changes = call.content.changes;
    const before = call.content.text;
    call.content = read;
    for (const id of read.terminals) {
      const text = early.get(id);
      early.delete(id);
      if (text !== undefined) put(call, text);
    }
    if (isOver || !call.runs || read.text === before) return;
    tell(call, read.text.startsWith(before) ? read.text.slice(before.length) : `\n${read.text}`);
  }

  function end(key: string, call: Call, isError: boolean, words: string | null = null): void {
    announceTo(null);
    const { rawOutput, _meta } = call.fields;
    const exit = recordOf(_meta).terminal_exit;
    const ending = { content: call.content, output: call.output.text(), rawOutput, exit: exit ?? rawOutput };
    const { denied } = call;
    const shown = callResult(ending, { isError, denied, cwd, words });
    const said = { is_error: isError, ...(denied ? { denied } : {}) };
    const payload = { tool_id: call.id, name: call.name!, ...said, ...shown };
    const duration_s = Math.max(0, now() - call.since);
    calls.delete(key);
    kept -= call.weight;
    over.add(key);
    emit({ type: 'tool.complete', payload: { ...payload, duration_s } });
    ended();
  }

  /** Takes an update of a call in. @returns whether there was room for it */
  function keep(call: Call, update: Raw): boolean {
    mergeFields(call.fields, update);
    kept -= call.weight;
    call.weight = weightOf(call.fields);
    const isKept = kept + call.weight <= MOST_KEPT;
    if (!isKept) {
      call.fields = { title: oneLineOf(stringOf(call.fields.title), 1000), kind: stringOf(call.fields.kind) };
      call.content = { text: TOO_MUCH, changes: [], terminals: [] };
      call.weight = weightOf(call.fields);
    }
    kept += call.weight;
    return isKept;
  }

  function merge(call: Call, update: Raw, isOver: boolean): void {
    const isKept = keep(call, update);
    if (!hasInput(call.fields)) call.firstTitle ??= stringOf(update.title);
    if (isKept) takeContent(call, update.content, isOver);
    for (const name of ['terminal_output', 'terminal_output_delta']) {
      const { data } = recordOf(recordOf(update._meta)[name]);
      if (typeof data === 'string') put(call, data);
    }
  }

  return {
    take(update, isFirst) {
      const key = keyOf(update);
      const status = statusOf(update);
      const isOver = status === 'completed' || status === 'failed';
      let call = calls.get(key);
      if (!call) {
        // The end of what is over is said twice; that of what never began belongs to an earlier turn.
        const isNew = isFirst ? !(isOver && over.has(key)) : !isOver && !over.has(key) && saysWhat(update);
        if (!isNew) return;
        call = create(key);
      }
      if (status === 'in_progress' && !call.runs) {
        call.runs = true;
        call.since = now();
      }
      // A title that comes with the run is no name.
      if (call.runs || isOver) call.firstTitle ??= '';
      merge(call, update, isOver);
      if (call.name === null && (call.runs || hasInput(call.fields))) announceTo(call);
      if (isOver) end(key, call, status === 'failed');
    },
    announce(update) {
      const call = calls.get(keyOf(update)) ?? create(keyOf(update));
      call.firstTitle ??= '';
      // The words of a question are nothing that the call has produced; what it would change may be told nowhere else.
      const { text } = call.content;
      merge(call, update, true);
      call.content.text = text;
      announceTo(call);
    },
    announceAll: () => announceTo(null),
    answered(update, said) {
      const call = calls.get(keyOf(update));
      if (!call) return;
      call.since = now();
      call.allowed ||= said === 'yes';
      call.denied = said === 'no' && !call.allowed;
    },
    terminalOutput(terminalId, text) {
      const showing = [...calls.values()].filter(({ content }) => content.terminals.includes(terminalId));
      for (const call of showing) put(call, text);
      if (showing.length > 0) return;
      if (early.size >= EARLY_TERMINALS && !early.has(terminalId)) return;
      early.set(terminalId, ((early.get(terminalId) ?? '') + text).slice(-EARLY_CHARACTERS));
    },
    known: (toolCallId) => calls.get(keyOf({ toolCallId })) ?? null,
    open: () => calls.size,
    endAll() {
      for (const [key, call] of calls) end(key, call, true, NO_END);
    },
  };
}
