/**
 * A backup: one file that holds a home as it was at one moment, taken beside the server that works on it (BK1, BK2, BK3, BK6).
 *
 * The moment is that of the state DB's copy; everything else is taken so that the home it makes is one that a crash at that
 * moment could have left, which recovery brings back by rules that have their own tests:
 * - sidecars before it. They may be older than the database and never newer, and an older one is brought up, cut at an edit
 *   that it has not seen, and known as deleted by the tombstone. A newer one could bring answers of prompts that wait.
 * - journals after it. That of an ended run was sealed before, that of a running one has at least what was shown; those of
 *   prompts that waited, or did not exist, are left out: they have not begun.
 * - other files after it, so that what an accepted prompt names is there.
 *
 * The form is a compressed tar file: one thing to copy away, which `tar` lists, and unpacks to a home that can be served.
 */
import path from 'node:path';
import {
  BACKUPS,
  copyFile,
  describeFile,
  type HomeCopy,
  journalOf,
  linksIn,
  listHome,
  sessionOf,
} from '../../db/files/archive-home.ts';
import { FORMAT, FORMAT_VERSION, type Manifest, type ManifestFile } from '../../db/files/archive-manifest.ts';
import { isWithin, makeWorkplace, placeAt, realPlace, removeAll, sizeOf } from '../../db/files/archive-place.ts';
import { writeArchive } from '../../db/files/archive-write.ts';
import { makeFolder } from '../../db/files/atomic.ts';
import { type Snapshot, takeSnapshot } from '../../db/snapshot.ts';
import { CommandError } from '../commands/command.ts';
import type { Progress } from './progress.ts';
import { readBackup } from './read-backup.ts';

export interface BackupRequest {
  /** Absolute path of the home. */
  home: string;
  /** A file or a folder, absolute; null for the home's own folder of backups. */
  to: string | null;
  /** Whether `.env` goes with it. */
  secrets: boolean;
  /** The version of this Turnkeep. */
  version: string;
}

export interface BackupParts {
  /** Epoch seconds. */
  now(): number;
  signal: AbortSignal;
  progress: Progress;
  /** Something that a person should know. */
  warn(sentence: string): void;
}

export interface BackupResult {
  /** Absolute path of the archive. */
  file: string;
  bytes: number;
  manifest: Manifest;
}

/**
 * Makes a backup, and proves it by reading it again.
 * @throws CommandError for a home that cannot be backed up, or a place that cannot take it; StateDbRefused; a storage error.
 *   Nothing is left then
 */
export async function backUp(request: BackupRequest, parts: BackupParts): Promise<BackupResult> {
  const home = await realPlace(request.home);
  await checkHome(home);
  const target = await targetOf(home, request.to, parts.now());
  const work = await makeWorkplace(target);
  try {
    const folder = path.join(work.folder, 'home');
    const manifest = await collect(home, folder, request, parts);
    const archive = path.join(work.folder, path.basename(target));
    const bytes = manifest.files.reduce((sum, one) => sum + one.size, 0);
    parts.progress.begin('packing', bytes);
    await writeArchive(archive, { manifest, folder, now: parts.now() }, parts.signal, parts.progress.add);
    // Room for the database that the check unpacks.
    await removeAll(folder);
    parts.progress.begin('checking', bytes);
    await readBackup({ file: archive, folder: work.folder, keep: 'database' }, parts);
    if ((await placeAt(target)) !== 'nothing') throw new CommandError(`${target} is there already.`);
    await work.moveTo(archive, target);
    return { file: target, bytes: await sizeOf(target), manifest };
  } finally {
    await work.remove();
  }
}

async function checkHome(home: string): Promise<void> {
  const links = await linksIn(home);
  if (links.length > 0) {
    throw new CommandError(
      `${links.join(', ')} in ${home} is a link, and links are not followed: a backup without it would be none.`,
    );
  }
  if ((await placeAt(path.join(home, 'state.db'))) === 'file') return;
  throw new CommandError(`there is no state.db in ${home}: it is no home that a server has used (--home DIR).`);
}

/** Where the archive goes. */
async function targetOf(home: string, to: string | null, now: number): Promise<string> {
  const isFolder = to?.endsWith(path.sep) || (to !== null && /folder$/.test(await placeAt(to)));
  if (to === null) return freeName(path.join(home, BACKUPS), now);
  const target = await realPlace(isFolder ? await freeName(to, now) : to);
  if (isWithin(home, target) && !isWithin(path.join(home, BACKUPS), target)) {
    throw new CommandError(`${target} lies in the home itself: choose ${path.join(home, BACKUPS)} or another place.`);
  }
  if ((await placeAt(target)) === 'nothing') return target;
  throw new CommandError(`${target} is there already, and a backup takes no other file's place: choose another name.`);
}

/** A name by the time, of which another backup may have been made in the same second, or before a clock was set back. */
async function freeName(folder: string, now: number): Promise<string> {
  const time = new Date(now * 1000).toISOString().slice(0, 19).replaceAll(':', '-');
  for (let n = 0; ; n += 1) {
    const name = path.join(folder, `turnkeep-${time}Z${n === 0 ? '' : `-${n}`}.tar.gz`);
    if ((await placeAt(name)) === 'nothing') return name;
  }
}

/** Copies everything into a folder, in the order that makes it one moment. */
async function collect(
  home: string,
  folder: string,
  { secrets, version }: BackupRequest,
  { now, signal, progress, warn }: BackupParts,
): Promise<Manifest> {
  const copy: HomeCopy = { home, folder, signal, onBytes: progress.add };
  const files: ManifestFile[] = [];
  const damaged: string[] = [];
  const take = async (name: string): Promise<void> => {
    signal.throwIfAborted();
    const copied = await copyFile(copy, name);
    if (copied.kind === 'gone') return;
    files.push(copied.file);
    if (copied.damaged) damaged.push(name);
  };

  progress.begin('copying conversations', null);
  await makeFolder(folder);
  const before = await listHome(home);
  for (const name of before.files) if (isTranscript(name)) await take(name);
  progress.begin('copying the database', null);
  const moment = now();
  const snapshot = takeSnapshot(path.join(home, 'state.db'), path.join(folder, 'state.db'), moment);
  progress.begin('copying turns', null);
  const after = await listHome(home);
  const known = new Set(before.files);
  for (const name of after.files) {
    if (isTranscript(name) || (name === '.env' && !secrets)) continue;
    if (!journalOf(name) || hasBegun(name, snapshot, known)) await take(name);
  }
  for (const name of after.left) warn(`${name} is left out: links and what is no file are not copied.`);

  const kept = files.filter(({ path: name }) => !snapshot.tombstones.has(sessionOf(name) ?? ''));
  // Behind all others: who unpacks it half has no database yet.
  kept.push(await describeFile(folder, 'state.db'));
  const { schema, sessions, messages, waiting, running } = snapshot;
  return {
    format: FORMAT,
    format_version: FORMAT_VERSION,
    version,
    schema,
    created_at: new Date(moment * 1000).toISOString(),
    sessions,
    messages,
    waiting,
    running,
    journals: kept.filter((one) => journalOf(one.path)).length,
    secrets: kept.some((one) => one.path === '.env'),
    damaged: damaged.filter((name) => kept.some((one) => one.path === name)),
    files: kept,
  };
}

/** Whether a file is a transcript, or one that was put aside. */
const isTranscript = (name: string): boolean => sessionOf(name) !== null && journalOf(name) === null;

/** Whether the run of a journal had begun at the moment of the snapshot. */
function hasBegun(name: string, { begunRuns, waitingRuns }: Snapshot, known: ReadonlySet<string>): boolean {
  const { runId } = journalOf(name)!;
  // Of a run that the database does not know: another program's, or its row is lost. A younger one came after it.
  return begunRuns.has(runId) || (!waitingRuns.has(runId) && known.has(name));
}
