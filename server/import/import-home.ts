/**
 * The import: conversation by conversation, each one transaction of the state DB and then its files (IM1). Killed at any
 * moment it leaves whole sessions and, of the last few, some without all their files: the next run finishes those.
 */
import type { Paths } from '../../db/files/paths.ts';
import type { SidecarStore } from '../../db/files/sidecar-store.ts';
import type { ImportRecord, ImportStore, ImportTurn, OwnState } from '../../db/import-store.ts';
import type { LeaseRequest } from '../../db/stores.ts';
import { formatSessionId } from '../core/ids.ts';
import type { Conversation, Loaded, Source } from './conversation.ts';
import { addProblem, type ImportReport, newReport, type Outcome } from './report.ts';
import { sessionFields, titleOfSecond } from './session-fields.ts';
import { createSessionFiles } from './session-files.ts';
import { digestOf, withIds } from './transcript.ts';
import { isUntouched, judgeKnown } from './verdict.ts';

export interface ImportHomeParts {
  store: ImportStore;
  sidecars: SidecarStore;
  paths: Paths;
  /** The id that a model has here; null when no provider has it. */
  modelHere(name: string, provider: string | null): string | null;
  lease(): LeaseRequest;
  /** Epoch seconds. */
  now(): number;
  /** Six hexadecimal digits, new each time. */
  newIdSuffix(): string;
  signal: AbortSignal;
  progress(done: number, of: number): void;
}

export interface ImportOptions {
  home: string;
  check: boolean;
  /** Also what was deleted here since it was imported. */
  again: boolean;
}

/** Conversations whose files are written at the same time: a disk that syncs many is hardly slower than for one. */
const AT_ONCE = 8;

type Known = ImportRecord & { isThere: boolean };

export async function importHome(
  source: Source,
  parts: ImportHomeParts,
  options: ImportOptions,
): Promise<ImportReport> {
  const { store, signal, progress } = parts;
  const { check } = options;
  const report = newReport(options.home, source.home, check);
  if (!check) await store.begin();
  const known = new Map<string, Known>();
  const elsewhere = new Map<string, Known[]>();
  for (const record of await store.records()) {
    if (record.home === source.home) known.set(record.original_id, record);
    else elsewhere.set(record.original_id, [...(elsewhere.get(record.original_id) ?? []), record]);
  }
  const files = createSessionFiles(source, parts, report);
  /** Sessions that have all their files, to be noted with the next one. */
  let done: string[] = [];
  const writing = new Set<Promise<void>>();
  let failure: { error: unknown } | null = null;

  const turn = (): ImportTurn => {
    const finished = done;
    done = [];
    return { lease: parts.lease(), done: finished, now: parts.now() };
  };
  const tell = (id: string, outcome: Outcome, message?: string): void => {
    report.counts[outcome] += 1;
    if (message !== undefined && (outcome === 'parted' || outcome === 'unreadable' || outcome === 'busy')) {
      addProblem(report, { id, code: outcome, message });
    }
  };

  const busy = (id: string): void => tell(id, 'busy', 'somebody is at work in it here: run the import again');

  /** Writes the files of a session beside what comes next, but never of too many. */
  const later = async (sessionId: string, work: () => Promise<void>): Promise<void> => {
    while (writing.size >= AT_ONCE) await Promise.race(writing);
    if (failure) throw failure.error;
    const task: Promise<void> = work()
      .then(() => void done.push(sessionId))
      .catch((error: unknown) => {
        failure ??= { error };
      })
      .finally(() => writing.delete(task));
    writing.add(task);
  };

  const remember = (record: ImportRecord): void => {
    known.set(record.original_id, { ...record, isThere: true });
  };

  async function importOne(conversation: Conversation): Promise<void> {
    const { id, seen } = conversation;
    const before = known.get(id) ?? null;
    if (before && !before.isThere && !options.again) return tell(id, 'deleted');
    const isHere = before?.isThere === true;
    if (isHere && before.files_done && before.seen === seen) return tell(id, 'unchanged');
    const loaded = await conversation.load();
    if (typeof loaded === 'string') return tell(id, 'unreadable', loaded);
    if (!loaded) return;
    if (conversation.waits && !check) {
      addProblem(report, { id, code: 'waiting', message: 'prompts of it wait there and are not imported' });
    }
    if (isHere) return again(conversation, loaded, before);
    if (!loaded.rows.length && !isPending(loaded)) return tell(id, 'empty');
    // The same home may be found at another place: what came from there is not to be here twice.
    const same = options.again ? null : await sameElsewhere(conversation, loaded);
    if (same === 'deleted') return tell(id, 'deleted');
    if (same) return again(conversation, loaded, same);
    if (!(await create(conversation, loaded, null))) return busy(id);
    report.messages += loaded.rows.length;
    tell(id, 'imported');
  }

  /** What was imported from another place under the same id, and begins with the same rows. */
  async function sameElsewhere({ id, keepsId }: Conversation, { rows }: Loaded): Promise<Known | 'deleted' | null> {
    if (!keepsId) return null;
    for (const record of elsewhere.get(id) ?? []) {
      if (record.row_count === 0 || rows.length < record.row_count) continue;
      if (digestOf(rows, record.row_count) !== record.digest) continue;
      return record.isThere ? { ...record, home: source.home } : 'deleted';
    }
    return null;
  }

  /** A conversation that was imported before, and is not as it was, or not finished. */
  async function again(conversation: Conversation, loaded: Loaded, record: Known): Promise<void> {
    const { id } = conversation;
    const own = await store.look(record.session_id, record.last_row);
    if (!own) return tell(id, 'deleted');
    const verdict = judgeKnown(record, loaded.rows, own);
    switch (verdict.kind) {
      case 'unchanged':
        if (!check) {
          if (!record.files_done) {
            if (!(await finish(conversation, loaded, record, own))) return busy(id);
          } else {
            await store.note({ ...record, seen: conversation.seen }, parts.now());
            remember({ ...record, seen: conversation.seen });
          }
        }
        return tell(id, record.files_done ? 'unchanged' : 'imported');
      case 'grown':
        if (!check && !(await grow(conversation, loaded, record, own, verdict))) return busy(id);
        report.messages += loaded.rows.length - verdict.from;
        return tell(id, 'extended');
      case 'parted':
        if (!(await create(conversation, loaded, record))) return busy(id);
        report.messages += loaded.rows.length;
        return tell(
          id,
          'parted',
          `it went on there and is another one here: what is there ${check ? 'becomes' : 'became'} a session of its own`,
        );
    }
  }

  async function create(conversation: Conversation, loaded: Loaded, parted: Known | null): Promise<boolean> {
    if (check) return true;
    const { id, seen, summary } = conversation;
    const fields = sessionFields({
      header: loaded.header,
      summary,
      projects: source.projects,
      idHere: (original) => known.get(original)?.session_id ?? null,
      modelHere: parts.modelHere,
      lastAt: loaded.rows.at(-1)?.message.timestamp || null,
      now: parts.now(),
    });
    const session = parted
      ? { ...fields, title: titleOfSecond(fields.title, source.label), title_source: 'user' as const }
      : fields;
    const { rows, attached } = await files.plan(conversation, loaded);
    const record = {
      home: source.home,
      original_id: id,
      digest: digestOf(rows),
      seen,
      row_count: rows.length,
      edit_number: 0,
    };
    const expected = known.get(id)?.session_id ?? null;
    let wanted = conversation.keepsId && !parted ? id : fresh();
    for (;;) {
      const made = { session_id: wanted, session, rows, record: { ...record, session_id: wanted }, expected };
      const outcome = await store.create(made, turn());
      if (outcome.kind === 'moved') return false;
      if (outcome.kind === 'created') {
        remember(outcome.record);
        const { session: row } = outcome;
        await later(wanted, () => files.write(conversation, { ...loaded, rows }, row, attached, null));
        return true;
      }
      wanted = fresh();
    }
  }

  const fresh = (): string => formatSessionId(parts.now(), parts.newIdSuffix());

  async function grow(
    conversation: Conversation,
    loaded: Loaded,
    record: Known,
    own: OwnState,
    { from, settled }: { from: number; settled: string[] },
  ): Promise<boolean> {
    const plan = await files.plan(conversation, loaded);
    const rows = withIds(plan.rows, own.ids);
    const last = rows[from - 1]?.message;
    const now = {
      home: record.home,
      original_id: record.original_id,
      session_id: record.session_id,
      digest: digestOf(rows),
      seen: conversation.seen,
      row_count: rows.length,
    };
    const outcome = await store.grow(
      {
        record: now,
        seen: own,
        rows: rows.slice(from),
        cut: settled.length
          ? { kept: last ? { id: last.id, timestamp: last.timestamp } : null, remove: settled }
          : null,
        lastMessageAt: rows.at(-1)?.message.timestamp || null,
      },
      turn(),
    );
    if (outcome.kind !== 'grown') return false;
    const { session } = outcome;
    remember(outcome.record);
    await later(session.session_id, () => files.write(conversation, { ...loaded, rows }, session, plan.attached, null));
    return true;
  }

  /** Brings the files of a session whose rows are here already. */
  async function finish(conversation: Conversation, loaded: Loaded, record: Known, own: OwnState): Promise<boolean> {
    const held = await store.hold(record.session_id, turn());
    if (held.kind !== 'held') return false;
    const plan = await files.plan(conversation, loaded);
    const rows = withIds(plan.rows, own.ids);
    const touched = isUntouched(record, own) ? null : { wasEdited: own.session.edit_number !== record.edit_number };
    remember({ ...record, seen: conversation.seen });
    await later(record.session_id, () =>
      files.write(conversation, { ...loaded, rows }, held.session, plan.attached, touched),
    );
    return true;
  }

  let at = 0;
  try {
    for (const conversation of source.conversations) {
      if (signal.aborted) break;
      progress(at, source.conversations.length);
      at += 1;
      await importOne(conversation);
    }
    report.interrupted = at < source.conversations.length && signal.aborted;
  } finally {
    await Promise.all(writing);
    if (!check && done.length) await store.finish({ lease: parts.lease(), done });
  }
  if (failure) throw (failure as { error: unknown }).error;
  progress(at, source.conversations.length);
  return report;
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

/** Whether a conversation without rows has a prompt that was never answered. */
const isPending = ({ header }: Loaded): boolean => isText(header?.pending_user_message);
