/**
 * The import: conversation by conversation, each whole in the state DB first and then its files (IM1). Killed at any
 * moment it leaves whole sessions and, of the last few, some without all their files: the next run finishes those.
 */
import type { Paths } from '../../db/files/paths.ts';
import type { SidecarStore } from '../../db/files/sidecar-store.ts';
import type { ImportStore, ImportTurn, OwnState } from '../../db/import-store.ts';
import type { LeaseRequest } from '../../db/stores.ts';
import { formatSessionId } from '../core/ids.ts';
import type { Conversation, Loaded, Source } from './conversation.ts';
import { createFileWrites } from './file-writes.ts';
import { createNewcomers } from './newcomers.ts';
import { openRun } from './open-turn.ts';
import { createRecords, type Known } from './records.ts';
import { addProblem, type ImportReport, newReport, type Outcome } from './report.ts';
import { parentOf, sessionFields, titleOfSecond } from './session-fields.ts';
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

const PARTED = {
  check: 'it went on there and is another one here: what is there becomes a session of its own',
  done: 'it went on there and is another one here: what is there became a session of its own',
} as const;

export async function importHome(
  source: Source,
  parts: ImportHomeParts,
  options: ImportOptions,
): Promise<ImportReport> {
  const { store, signal, progress } = parts;
  const { check } = options;
  const report = newReport(options.home, source.home, check);
  for (const place of source.profiles) {
    addProblem(report, { id: null, code: 'profile', message: `${place} is a home of its own: import it by its name` });
  }
  if (!check) await store.begin();
  const records = createRecords(await store.records(), source.home);
  const files = createSessionFiles(source, parts, report);
  const writes = createFileWrites();

  /** Which sessions have all their files by now is noted with the next one. */
  const turn = (): ImportTurn => ({ lease: parts.lease(), done: writes.finished(), now: parts.now() });
  const tell = (id: string, outcome: Outcome, message?: string): void => {
    report.counts[outcome] += 1;
    if (message !== undefined && (outcome === 'parted' || outcome === 'unreadable' || outcome === 'busy')) {
      addProblem(report, { id, code: outcome, message });
    }
  };

  /** What became of a conversation that could not be had: another import brings it, or somebody is at work in it. */
  const refused = (id: string, byImport: boolean): void =>
    byImport ? tell(id, 'brought') : tell(id, 'busy', 'somebody is at work in it here: run the import again');

  const fresh = (): string => formatSessionId(parts.now(), parts.newIdSuffix());
  const newcomers = createNewcomers(store, turn, fresh);

  const byId = new Map(source.conversations.map((one) => [one.id, one]));
  const handled = new Set<string>();

  async function importOne(conversation: Conversation): Promise<void> {
    const { id, seen } = conversation;
    if (handled.has(id)) return;
    handled.add(id);
    const before = records.find(id);
    if (before && !before.isThere && !options.again) return tell(id, 'deleted');
    const isHere = before?.isThere === true;
    if (isHere && before.files_done && before.seen === seen) return tell(id, 'unchanged');
    const loaded = await conversation.load();
    if (typeof loaded === 'string') return tell(id, 'unreadable', loaded);
    if (!loaded) return;
    if (conversation.waits && !check) {
      addProblem(report, { id, code: 'waiting', message: 'prompts of it wait there and are not imported' });
    }
    // What it went on from comes first: it is named by this one, and steps behind it.
    for (const part of loaded.before?.parts ?? []) {
      const there = byId.get(part.id);
      if (there) await importOne(there);
    }
    if (isHere) return again(conversation, loaded, before);
    if (!loaded.rows.length && !isPending(loaded)) return tell(id, 'empty');
    // The same home may be found at another place: what came from there is not to be here twice.
    const same = options.again ? null : records.elsewhere(conversation, loaded);
    if (same === 'deleted') return tell(id, 'deleted');
    if (same) return again(conversation, loaded, same);
    await create(conversation, loaded, null, () => tell(id, 'imported'));
  }

  /** A conversation that was imported before, and is not as it was, or not finished. */
  async function again(conversation: Conversation, loaded: Loaded, record: Known): Promise<void> {
    const { id } = conversation;
    const own = await store.look(record.session_id, record.last_row);
    if (!own) return tell(id, 'deleted');
    const verdict = judgeKnown(record, loaded.rows, openRun(loaded), own);
    switch (verdict.kind) {
      case 'unchanged':
        if (!check) {
          if (!record.files_done) {
            const held = await finish(conversation, loaded, record, own);
            if (held !== 'done') return refused(id, held === 'by_import');
          } else {
            await store.note({ ...record, seen: conversation.seen }, parts.now());
            records.remember({ ...record, seen: conversation.seen });
          }
        }
        return tell(id, record.files_done ? 'unchanged' : 'imported');
      case 'grown':
        if (!check) {
          const held = await grow(conversation, loaded, record, own, verdict);
          if (held !== 'done') return refused(id, held === 'by_import');
        }
        report.messages += loaded.rows.length - verdict.from;
        return tell(id, 'extended');
      case 'parted':
        return create(conversation, loaded, record, () => tell(id, 'parted', PARTED[check ? 'check' : 'done']));
    }
  }

  /** @param told says what became of it, once it is here or would be */
  async function create(
    conversation: Conversation,
    loaded: Loaded,
    parted: Known | null,
    told: () => void,
  ): Promise<void> {
    const { id, seen, summary } = conversation;
    const done = (): void => {
      report.messages += loaded.rows.length;
      told();
    };
    if (check) return done();
    const parent = parentOf(loaded.header, summary);
    const parents = loaded.before?.parts.map((part) => part.id) ?? [];
    // Their ids here are needed.
    if ([...parents, parent].some((one) => one !== null && newcomers.has(one))) await newcomers.flush();
    const fields = sessionFields({
      header: loaded.header,
      summary,
      before: loaded.before?.parts ?? [],
      projects: source.projects,
      idHere: (original) => records.find(original)?.session_id ?? null,
      modelHere: parts.modelHere,
      lastAt: loaded.rows.at(-1)?.message.timestamp || null,
      now: parts.now(),
    });
    const session = parted
      ? { ...fields, title: titleOfSecond(fields.title, source.label), title_source: 'user' as const }
      : fields;
    const { loaded: planned, attached } = await files.plan(conversation, loaded);
    const { rows } = planned;
    await newcomers.add({
      made: {
        session_id: conversation.keepsId && !parted ? id : fresh(),
        session,
        rows,
        record: {
          home: source.home,
          original_id: id,
          digest: digestOf(rows),
          seen,
          row_count: rows.length,
          edit_number: 0,
        },
        expected: records.find(id)?.session_id ?? null,
        // A conversation that somebody went on with here stays one.
        behind: session.hidden ? [] : parents.flatMap((one) => records.find(one) ?? []),
      },
      async created(row, record) {
        records.remember(record);
        done();
        const write = () => files.write(conversation, planned, row, attached, null);
        await writes.add(row.session_id, write);
      },
      moved: () => tell(id, 'brought'),
    });
  }

  async function grow(
    conversation: Conversation,
    loaded: Loaded,
    record: Known,
    own: OwnState,
    { from, settled }: { from: number; settled: string[] },
  ): Promise<Brought> {
    const plan = await files.plan(conversation, loaded);
    const rows = withIds(plan.loaded.rows, own.ids);
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
    if (outcome.kind !== 'grown') return unlessBrought(outcome);
    const { session } = outcome;
    records.remember(outcome.record);
    await writes.add(session.session_id, () =>
      files.write(conversation, { ...plan.loaded, rows }, session, plan.attached, null),
    );
    return 'done';
  }

  /** Brings the files of a session whose rows are here already. */
  async function finish(conversation: Conversation, loaded: Loaded, record: Known, own: OwnState): Promise<Brought> {
    const held = await store.hold(record.session_id, turn());
    if (held.kind !== 'held') return unlessBrought(held);
    const plan = await files.plan(conversation, loaded);
    const rows = withIds(plan.loaded.rows, own.ids);
    const touched = isUntouched(record, own) ? null : { wasEdited: own.session.edit_number !== record.edit_number };
    records.remember({ ...record, seen: conversation.seen });
    await writes.add(record.session_id, () =>
      files.write(conversation, { ...plan.loaded, rows }, held.session, plan.attached, touched),
    );
    return 'done';
  }

  let at = 0;
  try {
    for (const conversation of source.conversations) {
      if (signal.aborted) break;
      progress(at, source.conversations.length);
      at += 1;
      await importOne(conversation);
    }
    await newcomers.flush();
    report.interrupted = at < source.conversations.length && signal.aborted;
  } finally {
    await writes.settle();
    const done = writes.finished();
    if (!check && done.length > 0) await store.finish({ lease: parts.lease(), done });
  }
  writes.check();
  progress(at, source.conversations.length);
  return report;
}

/** Whether a session that is here already was brought up to date, or who has it instead. */
type Brought = 'done' | 'by_import' | 'by_others';

const unlessBrought = (refusal: { kind: string; byImport?: boolean }): Brought =>
  refusal.byImport ? 'by_import' : 'by_others';

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

/** Whether a conversation without rows has a prompt that was never answered. */
const isPending = ({ header }: Loaded): boolean => isText(header?.pending_user_message);
