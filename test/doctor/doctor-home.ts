/** Homes for the doctor: made by a real server, then damaged; and what the doctor says of them. */
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { createDoctorCommand } from '../../server/commands/doctor.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';

export interface Home {
  home: string;
  /** Sessions with one turn each. */
  ids: string[];
  /** Run ids of those turns. */
  runs: string[];
  file(...parts: string[]): string;
  /** Changes the state DB as another program would. */
  sql(text: string): void;
  ask<T>(text: string): T;
}

/** A home of a server that was stopped well. */
export async function homeWithSessions(count = 2): Promise<Home> {
  const overrides = { runner: createEchoRunner().runner };
  const server = await startTestServer({ overrides });
  const ids: string[] = [];
  const runs: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const id = await server.session({ title: `Session ${n}` });
    await server.ask(id, `question ${n}`);
    runs.push((await server.messages(id))[0].run_id);
    ids.push(id);
  }
  await server.close();
  return { ids, runs, ...homeAt(server.home) };
}

export function homeAt(home: string): Omit<Home, 'ids' | 'runs'> {
  const file = (...parts: string[]): string => path.join(home, ...parts);
  const open = <T>(work: (db: Database.Database) => T): T => {
    // Unsafe: damage is what no statement may do.
    const db = new Database(file('state.db')).unsafeMode(true);
    try {
      db.pragma('foreign_keys = OFF');
      return work(db);
    } finally {
      db.close();
    }
  };
  return {
    home,
    file,
    sql: (text) => open((db) => void db.exec(text)),
    ask: <T>(text: string) => open((db) => db.prepare(text).pluck().get() as T),
  };
}

export interface Answer {
  code: number;
  out: string;
  err: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever it says.
  json: any;
}

/** Runs the doctor in this process. */
export async function doctor(home: string, ...flags: string[]): Promise<Answer> {
  let out = '';
  let err = '';
  const terminal = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
    isPerson: false,
  };
  const command = createDoctorCommand({ now: () => Date.now() / 1000 });
  const code = await command.run(['--home', home, ...flags], terminal, {});
  return { code, out, err, json: flags.includes('--json') ? JSON.parse(out) : null };
}

/** The codes of what is wrong, each once. */
export async function problems(home: string, ...flags: string[]): Promise<string[]> {
  const { json, code } = await doctor(home, '--json', ...flags);
  const found = json.findings.filter((one: { severity: string }) => ['warn', 'error'].includes(one.severity));
  if ((code === 1) !== found.length > 0) throw new Error(`exit code ${code} with ${found.length} problems`);
  return [...new Set(found.map((one: { code: string }) => one.code as string))].sort() as string[];
}

/** Every file of the home: its bytes, its mode, and when it was changed. The shared memory of a WAL is no content. */
export async function stateOf(home: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const entry of await readdir(home, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.name === 'state.db-shm') continue;
    const { mtimeMs, mode, ino } = await stat(file);
    const bytes = entry.isFile() ? (await readFile(file)).toString('base64') : '';
    // A folder's own time moves when SQLite makes and takes away its shared memory.
    files.set(path.relative(home, file), `${entry.isFile() ? mtimeMs : ''} ${mode} ${ino} ${bytes}`);
  }
  return files;
}
