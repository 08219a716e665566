/**
 * The conversation as a model is given it: the transcript; where it was compacted, the summary of its beginning and what
 * is behind that (CX3); or, where another program keeps a context of its own (shorter after a compaction, richer by what
 * only its agent added), that one brought up to date (RC9).
 */
import { createHash } from 'node:crypto';
import type { ContextSummary, Stores } from '../../db/stores.ts';
import { summaryRow } from '../core/compaction.ts';
import { type CompactionAnchor, toContext } from '../core/reconcile/context.ts';
import { toDisplay } from '../core/reconcile/display.ts';
import { fencesOf } from '../core/reconcile/fences.ts';
import { idOf, isOurId, type RawRow } from '../core/reconcile/row.ts';
import type { Message } from '../core/terms.ts';
import { CONTEXT_FIELD, contextOf } from './context-field.ts';
import type { Transcript } from './transcripts.ts';

/** The fields of a sidecar that say how its context is to be read. */
interface ContextFields {
  compression_anchor_message_key?: CompactionAnchor | null;
  is_cli_session?: unknown;
  read_only?: unknown;
}

/**
 * All that was said before a run.
 * @param runId the run that is about to begin: of it nothing is history
 */
export async function historyOf(
  stores: Pick<Stores, 'messages' | 'contexts'>,
  sessionId: string,
  runId: string,
  { rows, header, tail }: Transcript,
): Promise<Message[]> {
  const said = rows.filter((row) => row.runId !== runId);
  const summary = await stores.contexts.summary(sessionId);
  const covered = summary ? coveredBy(summary, said) : 0;
  const head = summary && covered > 0 ? [summaryRow(summary)] : [];
  const before = covered > 0 ? said.slice(covered) : said;
  const context = covered > 0 ? null : contextOf(tail[CONTEXT_FIELD]);
  if (!context && before.every((row) => isOurId(row.id))) {
    return [...head, ...before.map((row) => JSON.parse(row.json) as Message)];
  }
  const stored = (await stores.messages.raw(sessionId, null)).filter((row) => row.run_id !== runId);
  const given = new Map(stored.map((row) => [idOf(row), row.content]));
  // Pictures and notes that an agent added to a prompt are in its own copy alone; of an answer whichever has more.
  const transcript = before.map((row): RawRow => {
    const raw = JSON.parse(row.stored ?? row.json) as RawRow;
    const content = row.role === 'user' && !isOurId(row.id) ? given.get(row.id) : undefined;
    return content === undefined ? raw : { ...raw, content };
  });
  const fields = (header ?? {}) as ContextFields;
  const rowsForModel = toContext({
    transcript,
    context,
    state: withLost(stored, transcript),
    anchor: fields.compression_anchor_message_key ?? null,
    fences: fencesOf(header),
    liveRunId: runId,
    claimed: fields.is_cli_session === true && fields.read_only !== true,
  });
  return [...head, ...rowsForModel.map((row, at) => toDisplay(row, idOf(row) ?? `context.${at}`))];
}

/** A row of a transcript, as far as what is covered depends on it. */
type CoveredRow = { id: string; role: string };

/** What tells the rows that a summary covers from all others: an edit, or a row that was found late, makes them others. */
export function digestOf(rows: readonly CoveredRow[]): string {
  const hash = createHash('sha256');
  for (const { id } of rows) hash.update(`${id}\n`);
  return hash.digest('base64url');
}

/** How many rows of a transcript a summary stands for, whole tool blocks only; 0 when it does not fit them any more (CX4). */
export function coveredBy({ anchor, covers }: ContextSummary, rows: readonly CoveredRow[]): number {
  let count = rows.findIndex((row) => row.id === anchor) + 1;
  if (count === 0 || digestOf(rows.slice(0, count)) !== covers) return 0;
  while (rows[count]?.role === 'tool') count += 1;
  return count;
}

/**
 * The rows of the state DB, and among them those of ours that it has lost: each behind the row that it follows in the
 * transcript, so that calls keep their results. The transcript may stand behind a context that was made before them.
 */
function withLost(stored: readonly RawRow[], transcript: readonly RawRow[]): readonly RawRow[] {
  const known = new Set(stored.map(idOf));
  const lost = new Map<string | null, RawRow[]>();
  let before: string | null = null;
  for (const row of transcript) {
    const id = idOf(row);
    if (known.has(id)) before = id;
    else if (isOurId(id)) lost.set(before, [...(lost.get(before) ?? []), row]);
  }
  if (lost.size === 0) return stored;
  return [...(lost.get(null) ?? []), ...stored.flatMap((row) => [row, ...(lost.get(idOf(row) ?? '') ?? [])])];
}
