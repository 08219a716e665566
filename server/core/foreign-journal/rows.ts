/**
 * The rows of a run that another program journaled (JO5): its lines become our events, and those go through the one fold
 * (EV4). What its writer means otherwise than our events do is said here:
 *
 * Text and reasoning gather in a segment, which its next closing line makes a row. A segment of blanks is none. Calls
 * that follow each other share the row before them, so the results wait until a new row begins.
 */
import type { RunEvent } from '../events.ts';
import { createFold } from '../fold.ts';
import { isMarker } from '../marker.ts';
import type { Message } from '../terms.ts';
import { isRecord, wellFormed, wellFormedJson } from '../text.ts';
import { type ForeignRecord, isTerminalEvent, secondsIn, textIn } from './records.ts';

/** The fold counts from the prompt, which such a journal does not hold. */
const PROMPT: RunEvent = {
  type: 'run.start',
  payload: { admission_id: '', input: '', generation: 0, timestamp: 0, model: '' },
};

/** A call that has no result yet. */
interface OpenCall {
  id: string;
  tid: string;
  name: string;
}

/**
 * The assistant and tool rows of a run, without its prompt: ids from `<run id>.1` on, each marked as recovered.
 * @param completed whether the run came to its end; if not, the row that was being written is `partial`
 */
export function rowsOf(records: readonly ForeignRecord[], runId: string, completed: boolean): Message[] {
  const fold = createFold(runId);
  const calls: OpenCall[] = [];
  const tids = new Set<string>();
  const ids = new Set<string>();
  let results: { event: RunEvent; at: number }[] = [];
  let segment = { text: '', reasoning: '', at: 0 };
  /** The writer has closed the fold's open row; only calls may still join it. */
  let sealed = false;

  const settleResults = (): void => {
    for (const { event, at } of results) fold.apply(event, at);
    results = [];
  };

  /** Ends the segment. Whether it was worth a row, which then is the fold's open one. */
  const flush = (): boolean => {
    const { text, reasoning, at } = segment;
    segment = { text: '', reasoning: '', at: 0 };
    if (text.trim() === '' && reasoning.trim() === '') return false;
    settleResults();
    fold.apply({ type: 'message.start', payload: {} }, at);
    // Whole texts, because a chunk of its writer may end within a character.
    if (reasoning.trim() !== '') fold.apply({ type: 'reasoning.delta', payload: { text: wellFormed(reasoning) } }, at);
    if (text.trim() !== '') fold.apply({ type: 'message.delta', payload: { text: wellFormed(text) } }, at);
    sealed = false;
    return true;
  };

  const gather = (part: 'text' | 'reasoning', piece: string, at: number): void => {
    if (segment.text === '' && segment.reasoning === '') segment.at = at;
    segment[part] += piece;
  };

  const startCall = ({ seq, payload }: ForeignRecord, at: number): void => {
    const { args } = payload;
    const tid = wellFormed(textIn(payload.tid));
    const wanted = tid || `journal-${seq}`;
    let id = wanted;
    for (let n = 2; ids.has(id); n += 1) id = `${wanted}-${n}`;
    const name = nameOf(payload);
    ids.add(id);
    tids.add(tid);
    calls.push({ id, tid, name });
    const start = { tool_id: id, name, args: isRecord(args) ? wellFormedJson(args) : {}, preview: '' };
    fold.apply({ type: 'tool.start', payload: start }, at);
    sealed = false;
  };

  const endCall = ({ payload }: ForeignRecord, at: number): void => {
    const call = takeCall(calls, wellFormed(textIn(payload.tid)), nameOf(payload), tids);
    if (!call) return;
    // Also without a text: a call without its row would count as one that never finished.
    const result = wellFormed(textIn(payload.snippet) || textIn(payload.preview));
    const duration_s = secondsIn(payload.duration) ?? Number.NaN;
    const complete = { tool_id: call.id, name: call.name, result, is_error: payload.is_error === true, duration_s };
    results.push({ event: { type: 'tool.complete', payload: complete }, at });
  };

  fold.apply(PROMPT, 0);
  let at = 0;
  for (const record of records) {
    at = record.at ?? at;
    const text = textIn(record.payload.text);
    switch (record.event) {
      case 'token':
        gather('text', text, at);
        break;
      case 'reasoning':
        gather('reasoning', text, at);
        break;
      case 'interim_assistant':
        if (record.payload.already_streamed !== true && text.trim() !== '') {
          gather('text', segment.text.trim() === '' ? text : `\n\n${text}`, at);
        }
        if (flush()) sealed = true;
        break;
      case 'tool':
        flush();
        startCall(record, at);
        break;
      case 'tool_complete':
        endCall(record, at);
        break;
      default:
        if (isTerminalEvent(record.event)) flush();
    }
  }
  flush();
  settleResults();
  if (sealed) fold.apply({ type: 'message.start', payload: {} }, at);
  fold.end(completed ? { kind: 'complete' } : { kind: 'dead', cause: 'unknown' }, at);
  // Whether a marker belongs behind them is for the caller to say.
  return fold
    .rows()
    .filter((row) => row.role !== 'user' && !isMarker(row))
    .map(asRecovered);
}

/** The name of a tool; its rows need one. */
const nameOf = (payload: ForeignRecord['payload']): string => wellFormed(textIn(payload.name)) || 'tool';

/** Takes the call that a completion is for: the one it names by id, else the latest open one of its name. */
function takeCall(calls: OpenCall[], tid: string, name: string, tids: ReadonlySet<string>): OpenCall | null {
  // An id that was seen is the id of that call, even when it has finished already.
  const known = tid !== '' && tids.has(tid);
  const index = calls.findLastIndex((call) => (known ? call.tid === tid : call.name === name));
  return index < 0 ? null : (calls.splice(index, 1)[0] ?? null);
}

function asRecovered(row: Message): Message {
  const { duration_s, ...rest } = row;
  const recovered: Message = { ...rest, recovered: true };
  if (duration_s !== undefined && !Number.isNaN(duration_s)) recovered.duration_s = duration_s;
  return recovered;
}
