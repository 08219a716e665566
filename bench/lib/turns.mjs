// @ts-check
/** Running prompts against a target and measuring what its subscribers got. */
import { createHash } from 'node:crypto';
import { withTimeout } from './clock.mjs';
import { latencyMs, readStamps } from './stamp.mjs';

/**
 * @typedef {import('../targets/base.mjs').Target} Target
 * @typedef {{chunks: number, size: number, rate: number, delay: number}} Shape
 * @typedef {{events: number, chunks: number, characters: number, latencies: number[],
 *            firstAt: number, lastAt: number, indices: number[], intact: boolean}} Received
 */

let counter = 0;

/** A prompt text and the id that finds it in the provider's log. @param {Shape} shape */
export function makePrompt({ chunks, size, rate, delay }) {
  counter += 1;
  const id = `${process.pid.toString(36)}-${counter}`;
  return { id, text: `Please answer. bench:id=${id},chunks=${chunks},size=${size},rate=${rate},delay=${delay}` };
}

/**
 * Runs one turn with `count` subscribers to its session.
 * @param {Target} target @param {import('./context.mjs').ProviderLog} provider
 * @param {string} session @param {Shape} shape
 * @param {{count?: number, timeoutMs?: number}} [options]
 */
export async function runTurn(target, provider, session, shape, { count = 1, timeoutMs = 120_000 } = {}) {
  const { id, text } = makePrompt(shape);
  const open = () => Array.from({ length: count }, () => target.subscribe(session));
  let streams = target.subscribeWhen === 'before' ? open() : [];
  await Promise.all(streams.map((stream) => stream.opened));
  const { sentAt, acceptedAt } = await target.prompt(session, text);
  if (target.subscribeWhen === 'after') streams = open();
  try {
    await withTimeout(Promise.all(streams.map((stream) => stream.done)), timeoutMs, `turn ${text} on ${target.name}`);
  } finally {
    for (const stream of streams) stream.close();
  }
  const record = await provider.record(id);
  const received = streams.map((stream) => examine(stream.events(), record));
  return { sentAt, acceptedAt, record, received, bytes: streams.reduce((sum, stream) => sum + stream.bytes, 0) };
}

/**
 * What one subscriber received of one turn. `intact` is true when the text is
 * exactly what the provider sent.
 * @param {Iterable<import('../targets/base.mjs').StreamEvent>} events
 * @param {import('../provider.mjs').RequestRecord | null} record
 * @returns {Received}
 */
export function examine(events, record) {
  let text = '';
  let count = 0;
  let firstAt = NaN;
  let lastAt = NaN;
  const latencies = [];
  const indices = [];
  let unparsed = '';
  for (const event of events) {
    if (event.type !== 'delta' || !event.text) continue;
    count += 1;
    text += event.text;
    if (Number.isNaN(firstAt)) firstAt = event.receivedAt;
    lastAt = event.receivedAt;
    // A stamp may be split over two events; it counts when it is complete.
    unparsed += event.text;
    for (const { index, sentUs } of readStamps(unparsed)) {
      indices.push(index);
      latencies.push(latencyMs(sentUs, event.receivedAt));
    }
    const cut = unparsed.lastIndexOf('~');
    unparsed = cut >= 0 && unparsed.length - cut < 12 ? unparsed.slice(cut) : '';
  }
  const sha256 = createHash('sha256').update(text).digest('hex');
  return {
    events: count,
    chunks: indices.length,
    characters: text.length,
    latencies,
    firstAt,
    lastAt,
    indices,
    intact: record !== null && sha256 === record.sha256,
  };
}
