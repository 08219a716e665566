/** The import as its user calls it, in this process; and what a home has afterwards. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import { createImportCommand } from '../../server/commands/import.ts';
import type { ImportReport } from '../../server/import/report.ts';
import { writeProviderHome } from '../support/child-server.ts';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

export interface Imported {
  code: number;
  out: string;
  report: ImportReport;
}

let ids = 0;

export const importCommand = () =>
  createImportCommand({
    now: () => Date.now() / 1000,
    monotonic: () => performance.now(),
    random: Math.random,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    newId(bytes) {
      ids += 1;
      return ids.toString(16).padStart(bytes * 2, '0');
    },
  });

/** Imports, and says what was reported. */
export async function importFrom(place: string, home: string, ...flags: string[]): Promise<Imported> {
  let out = '';
  const terminal = {
    out: (text: string) => {
      out += text;
    },
    err: () => {},
    isPerson: false,
  };
  const code = await importCommand().run([place, '--home', home, '--json', ...flags], terminal, {});
  return { code, out, report: JSON.parse(out) };
}

/** Why nothing could be imported. */
export async function refusal(place: string, home: string, ...flags: string[]): Promise<string> {
  const error = await importFrom(place, home, ...flags).catch((thrown: unknown) => thrown);
  if ((error as { exitCode?: number }).exitCode !== 2) throw error;
  return (error as Error).message;
}

/** The counts that are not 0. */
export const counts = ({ report }: Imported): Record<string, number> =>
  Object.fromEntries(Object.entries(report.counts).filter(([, count]) => count > 0));

/** A folder for homes of others, and a new home of ours in it. */
export async function twoHomes(): Promise<{ theirs: string; home: string }> {
  const folder = await temporaryFolder();
  return { theirs: path.join(folder, 'theirs'), home: path.join(folder, 'ours') };
}

/** Our home with a provider that refuses whatever the pickiest one would. */
export async function providerHome(home: string): Promise<FakeProvider> {
  const provider = await startFakeProvider();
  onTestFinished(() => provider.close());
  await writeProviderHome(home, provider.baseUrl);
  return provider;
}

/** Goes on with a conversation; what the provider was given, without the system prompt: `role: text`. */
export async function goOn(
  server: TestServer,
  provider: FakeProvider,
  id: string,
  text = 'and now?',
): Promise<string[]> {
  const before = provider.requests.length;
  const answer = await server.ask(id, text);
  if (provider.violations.length) throw new Error(provider.violations.join('\n'));
  if (answer.outcome !== 'completed' && answer.admission?.outcome !== 'completed') {
    throw new Error(`it ended badly: ${JSON.stringify(answer)}`);
  }
  const { body } = provider.requests[before]!;
  return body.messages.slice(1).map(({ role, content, tool_calls }) => {
    const said = typeof content === 'string' ? content : JSON.stringify(content ?? '');
    return `${role}: ${said}${tool_calls ? ` [${tool_calls.map((call) => call.function.name)}]` : ''}`;
  });
}

export const serve = (home: string): Promise<TestServer> => startTestServer({ home });

export const textsOf = (rows: readonly { content: string }[]): string[] => rows.map((row) => row.content);

/** Asks our state DB. */
export function ask<T>(home: string, text: string): T[] {
  const db = new Database(path.join(home, 'state.db'), { readonly: true });
  try {
    return db.prepare(text).all() as T[];
  } finally {
    db.close();
  }
}
