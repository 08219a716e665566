/**
 * What is known of a conversation elsewhere as a session of ours: title, flags, times, what it cost (IM5). A sidecar is
 * what its person saw and changed; the row of a state.db says what the sidecar does not. Pure.
 */

import { isHiddenSource } from '../../db/files/foreign/summary.ts';
import type { ImportSession } from '../../db/import-rows.ts';
import type { SourceSession } from '../../db/import-source.ts';
import type { Project, SessionRow } from '../../db/stores.ts';
import type { Usage } from '../core/terms.ts';
import { wellFormed } from '../core/text.ts';

/** The scalar fields of a sidecar, whoever wrote it. */
export type SourceHeader = Readonly<Record<string, unknown>>;

export interface FieldsInput {
  header: SourceHeader | null;
  summary: SourceSession | null;
  /** Sessions that it went on from, the last of them first. */
  before: readonly { header: SourceHeader | null; summary: SourceSession | null }[];
  /** Projects of the source, by their ids. */
  projects: ReadonlyMap<string, Project>;
  /** What the sessions of the source that were imported are called here. */
  idHere(originalId: string): string | null;
  /** The id that a model has here; null when no configured provider has it. */
  modelHere(name: string, provider: string | null): string | null;
  /** Epoch seconds of the last row; for sources without times. */
  lastAt: number | null;
  now: number;
}

const text = (value: unknown): string | null => (typeof value === 'string' && value.trim() !== '' ? value : null);
const number = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);
const time = (value: unknown): number | null => {
  const seconds = number(value);
  return seconds !== null && seconds > 0 ? seconds : null;
};
const count = (value: unknown): number => Math.max(0, Math.trunc(number(value) ?? 0));

/** Longest title, as everywhere. */
const MAX_TITLE = 500;

export function sessionFields(input: FieldsInput): ImportSession {
  const { header, summary, before, projects, idHere, modelHere, lastAt, now } = input;
  const titles = [input, ...before].map((part) => titleOf(part.header, part.summary));
  const title = titles.find((one) => one.title !== null) ?? titles[0]!;
  const source = text(header?.session_source) ?? text(header?.source_tag) ?? summary?.source ?? 'webui';
  const model = text(header?.model) ?? summary?.model ?? null;
  const times = [input, ...before].flatMap(
    (part) => time(part.header?.created_at) ?? time(part.summary?.created_at) ?? [],
  );
  const created = times.length > 0 ? Math.min(...times) : (lastAt ?? now);
  const updated = time(header?.updated_at) ?? time(summary?.updated_at) ?? time(summary?.activity) ?? lastAt ?? created;
  const parent = parentOf(header, summary);
  const project = text(header?.project_id) ?? summary?.project_id ?? null;
  const draft = header?.composer_draft;
  const draftText = typeof draft === 'object' && draft !== null && 'text' in draft ? text(draft.text) : null;
  return {
    source: wellFormed(source).slice(0, 64),
    title: title.title,
    title_source: title.source,
    model: model === null ? null : modelHere(model, text(header?.model_provider)),
    workspace: workspaceOf(text(header?.workspace) ?? summary?.workspace ?? null),
    // A child that is no continuation goes its own way: as a parent's child it would count as one.
    parent_session_id: parent !== null && continues(header, summary) ? idHere(parent) : null,
    project: project === null ? null : (projects.get(project) ?? null),
    created_at: created,
    updated_at: updated,
    pinned: header && 'pinned' in header ? header.pinned === true : summary?.pinned === true,
    archived: header && 'archived' in header ? header.archived === true : summary?.archived === true,
    hidden: isHidden(header, summary, source),
    draft: wellFormed(draftText ?? summary?.draft ?? ''),
    usage: usageOf(header, summary),
  };
}

/** The session that it names as the one before it, by the id there. */
export const parentOf = (header: SourceHeader | null, summary: SourceSession | null): string | null =>
  text(header?.parent_session_id) ?? summary?.parent_session_id ?? null;

const continues = (header: SourceHeader | null, summary: SourceSession | null): boolean =>
  summary ? summary.kind === 'continuation' : header?.session_source !== 'fork';

/** As its own program lists it; a child that has a file of its own is one that somebody opened: a fork, say. */
function isHidden(header: SourceHeader | null, summary: SourceSession | null, source: string): boolean {
  if (!summary) return isHiddenSource(source);
  return summary.hidden && !(header && summary.kind === 'child' && !isHiddenSource(summary.source));
}

const workspaceOf = (folder: string | null): string | null =>
  folder?.startsWith('/') && !folder.includes('\0') ? folder : null;

function titleOf(
  header: SourceHeader | null,
  summary: SourceSession | null,
): { title: string | null; source: SessionRow['title_source'] } {
  const own = text(header?.title);
  const title = own !== null && own !== 'Untitled' ? own : (summary?.title ?? null);
  if (title === null || title.trim() === '') return { title: null, source: null };
  const cut = wellFormed(title.slice(0, MAX_TITLE));
  if (header?.manual_title === true) return { title: cut, source: 'user' };
  const said = summary?.title_source;
  if (said === 'user' || said === 'llm' || said === 'derived') return { title: cut, source: said };
  // Whoever made it, its person knows the conversation by it.
  return { title: cut, source: 'llm' };
}

/** The title of a conversation that went on in two places. */
export function titleOfSecond(title: string | null, from: string): string {
  const suffix = ` (from ${from})`;
  return wellFormed((title ?? 'Untitled').slice(0, MAX_TITLE - suffix.length)) + suffix;
}

/** What was spent: each store counts what it saw, so the larger figure is the truth. */
function usageOf(header: SourceHeader | null, summary: SourceSession | null): Usage {
  const theirs = summary?.usage;
  const most = (field: string, other: number | undefined) => Math.max(count(header?.[field]), other ?? 0);
  const usage: Usage = {
    input_tokens: most('input_tokens', theirs?.input_tokens),
    output_tokens: most('output_tokens', theirs?.output_tokens),
  };
  const cached = most('cache_read_tokens', theirs?.cached_tokens);
  if (cached > 0) usage.cached_tokens = cached;
  if (theirs?.reasoning_tokens) usage.reasoning_tokens = theirs.reasoning_tokens;
  const cost = Math.max(number(header?.estimated_cost) ?? -1, theirs?.cost_usd ?? -1);
  if (cost >= 0) usage.cost_usd = cost;
  const used = count(header?.last_prompt_tokens) || summary?.context_used || 0;
  if (used > 0) usage.context_used = used;
  const window = count(header?.context_length) || summary?.context_length || 0;
  if (window > 0) usage.context_length = window;
  return usage;
}
