/** `turnkeep doctor`: examines a home, and with `--repair` mends what is safe to mend (DR1 to DR6). */
import { parseArgs } from 'node:util';
import { readKnownSchema } from '../../db/doctor-schema.ts';
import { createHomeCopies, stampOf } from '../../db/files/home-copies.ts';
import { createHomeFiles } from '../../db/files/home-files.ts';
import { createPaths } from '../../db/files/paths.ts';
import { createSidecarStore } from '../../db/files/sidecar-store.ts';
import { type StorageTroubleKind, storageTroubleKind } from '../../db/storage-trouble.ts';
import { ConfigError, loadConfig, resolveHome } from '../config.ts';
import { type ExaminationParts, examine } from '../doctor/examine.ts';
import { type Finding, isProblem } from '../doctor/finding.ts';
import { repair } from '../doctor/repair.ts';
import { documentOf, lineOf, repairLine, summaryLine, summaryOf } from '../doctor/report.ts';
import { readVersion } from '../installation.ts';
import { isAlive } from '../lease/process-identity.ts';
import { type Command, CommandError, type Terminal } from './command.ts';

const usage = `Usage: turnkeep doctor [options]

Examines a home and changes nothing in it, also while a server runs.

  --home DIR   the home (TURNKEEP_HOME, else ~/.turnkeep)
  --repair     mend what is safe to mend; the server must be stopped. What is touched is
               first copied into <home>/doctor-<time>
  --json       one JSON document instead of lines
  --help       print this

Exit code: 0 all is well, 1 there are warnings or errors (with --repair: some are left),
2 the home cannot be examined or repaired.
`;

/** The exit code of a home that cannot be examined. */
const CANNOT = 2;
const STORAGE: Record<StorageTroubleKind, string> = {
  busy: 'the state DB is locked by another program: end that one, then try again.',
  disk_full: 'the disk is full: make room, then try again. What was not repaired is as it was.',
  unavailable: 'the home cannot be read or written: see that the disk works and that the files are yours.',
};
/** Each round may show what the one before had hidden: rows of a database whose pages are sound again. */
const ROUNDS = 3;
const DEFAULT_KEEP_H = 24;

/** @param now epoch seconds */
export function createDoctorCommand({ now }: { now(): number }): Command {
  return { usage, run: (args, terminal, env) => run(args, terminal, env, now()) };
}

async function run(args: readonly string[], terminal: Terminal, env: NodeJS.ProcessEnv, now: number): Promise<number> {
  const flags = readFlags(args);
  const home = homeOf(flags, env);
  const known = readKnownSchema();
  if (!known)
    throw new CommandError('the database migrations are missing from this installation: install it again.', CANNOT);
  const config = configOf(home, env);
  const progress = progressOf(terminal);
  const version = readVersion();
  const parts: ExaminationParts = {
    files: createHomeFiles(home),
    stateDb: createPaths(home).stateDb,
    known,
    now,
    journalKeepS: config.keepH * 3600,
    isAlive,
    uid: process.geteuid?.() ?? null,
    version,
    nodeVersion: process.version,
    progress: progress.show,
  };
  const report = {
    version,
    home,
    repairs: null as { code: string; message: string }[] | null,
    copies: null as string | null,
  };
  const say = (line: string): void => {
    progress.clear();
    if (!flags.json) terminal.out(`${line}\n`);
  };
  try {
    let outcome = await examined(parts, flags.repair ? () => {} : (finding) => say(lineOf(finding)));
    if (flags.repair) {
      await checkMayRepair(parts, outcome);
      const repairs: { code: string; message: string }[] = [];
      const copies = createHomeCopies(home, stampOf(now));
      const headerOf = createSidecarStore(createPaths(home)).readHeader;
      const done = (code: string, message: string): void => {
        repairs.push({ code, message });
        say(repairLine(message));
      };
      const { stateDb } = parts;
      for (let round = 0, tried = ''; round < ROUNDS; round += 1) {
        const wanted = JSON.stringify(outcome.findings.flatMap((finding) => finding.repair ?? []));
        // What was tried and did not help is left to a person.
        if (wanted === '[]' || wanted === tried) break;
        tried = wanted;
        const sentence = await repair(
          { copies, stateDb, known, headerOf, now, done },
          outcome.findings,
          outcome.canBeAsked,
        );
        if (sentence !== null) {
          if (round === 0) await copies.discard();
          throw new CommandError(sentence, CANNOT);
        }
        outcome = await examined(parts);
      }
      report.repairs = repairs;
      report.copies = copies.folder();
      for (const finding of outcome.findings) say(lineOf(finding));
    }
    const findings = [...outcome.findings, ...config.findings];
    for (const finding of config.findings) say(lineOf(finding));
    progress.clear();
    if (flags.json) terminal.out(`${JSON.stringify(documentOf({ ...report, findings }), null, 2)}\n`);
    else {
      if (report.copies) terminal.out(`copies of what was changed are in ${home}/${report.copies}\n`);
      terminal.out(`${summaryLine(summaryOf(findings))}\n`);
    }
    return findings.some(isProblem) ? 1 : 0;
  } catch (error) {
    const kind = storageTroubleKind(error);
    if (kind === null || error instanceof CommandError) throw error;
    throw new CommandError(`${STORAGE[kind]} (${(error as Error).message})`, CANNOT);
  } finally {
    progress.clear();
  }
}

function readFlags(args: readonly string[]): { home?: string; repair: boolean; json: boolean } {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { home: { type: 'string' }, repair: { type: 'boolean' }, json: { type: 'boolean' } },
    });
    const { home, repair = false, json = false } = values;
    return { repair, json, ...(home === undefined ? {} : { home }) };
  } catch (error) {
    throw new CommandError(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`, CANNOT);
  }
}

function homeOf(flags: { home?: string }, env: NodeJS.ProcessEnv): string {
  try {
    return resolveHome(flags, env);
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError(error.message, CANNOT);
    throw error;
  }
}

async function examined(parts: ExaminationParts, found?: (finding: Finding) => void) {
  const outcome = await examine(parts, found);
  if (outcome.kind === 'refused') throw new CommandError(outcome.sentence, CANNOT);
  return outcome;
}

/** A repair needs the home for itself, the rights of its owner, and room for the copies. */
async function checkMayRepair(
  { files, uid }: ExaminationParts,
  { serving }: { serving: readonly number[] },
): Promise<void> {
  if (serving.length) {
    throw new CommandError(
      `process ${serving.join(', ')} serves this home: stop it, then repair. Without --repair it may run on.`,
      CANNOT,
    );
  }
  const home = await files.entry('');
  if (home && uid !== null && home.uid !== uid) {
    throw new CommandError(`the home belongs to user ${home.uid}: repair it as that one, not as ${uid}.`, CANNOT);
  }
  const { free } = await files.space();
  const stateDb = await files.stateDb();
  // Its copy, and a new one made of it.
  if (free < 2 * (stateDb.bytes + (stateDb.wal ?? 0))) {
    throw new CommandError('the disk has no room for the copies that a repair makes: make room first.', CANNOT);
  }
}

/** What the configuration says, and what is wrong with it. */
function configOf(home: string, env: NodeJS.ProcessEnv): { keepH: number; findings: Finding[] } {
  const load = (more: NodeJS.ProcessEnv): number => loadConfig({ home }, { ...more, ...env }).journal.keep_h;
  const refusal = (attempt: () => number): { keepH: number } | string => {
    try {
      return { keepH: attempt() };
    } catch (error) {
      if (error instanceof ConfigError) return error.message;
      throw error;
    }
  };
  const read = refusal(() => load({}));
  if (typeof read !== 'string') return { ...read, findings: [] };
  // A service may give its token where no other command sees it.
  const withToken = refusal(() => load({ TURNKEEP_TOKEN: 'of the service' }));
  const isOnlyToken = typeof withToken !== 'string';
  const finding: Finding = {
    severity: isOnlyToken ? 'info' : 'error',
    area: 'config',
    code: isOnlyToken ? 'token_not_seen' : 'config_refused',
    message: read,
    remedy: isOnlyToken
      ? 'nothing, if the server is given its token elsewhere'
      : 'correct it: no server starts with it',
  };
  return { keepH: isOnlyToken ? withToken.keepH : DEFAULT_KEEP_H, findings: [finding] };
}

/** A line that is drawn over, for a person only. */
function progressOf({ err, isPerson }: Terminal): { show(text: string): void; clear(): void } {
  let isShown = false;
  const clear = (): void => {
    if (isShown) err('\r\x1b[K');
    isShown = false;
  };
  const show = (text: string): void => {
    if (!isPerson) return;
    clear();
    err(text);
    isShown = true;
  };
  return { show, clear };
}
