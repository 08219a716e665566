/** `turnkeep` as a process of its own, started as its user starts it. None outlives its test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { onTestFinished } from 'vitest';
import { mainEntry } from './compile-children.ts';
import { type Answer, call } from './test-server.ts';

export interface MainProcess {
  process: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Resolves when both its streams have ended: the exit code, or the signal. */
  exited: Promise<number | NodeJS.Signals>;
}

/**
 * @param env besides PATH; nothing else of the environment of the tests reaches it
 * @param entry the file that is run, by default as it is compiled for the tests
 * @param input what is piped in
 */
export function startMain(
  args: readonly string[],
  env: Record<string, string> = {},
  entry: string = mainEntry,
  input = '',
): MainProcess {
  const child = spawn(process.execPath, [entry, ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => {}).end(input);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const exited = new Promise<number | NodeJS.Signals>((resolve) => {
    child.on('close', (code, signal) => resolve(signal ?? code ?? 0));
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return { process: child, stdout: () => stdout, stderr: () => stderr, exited };
}

export interface MainServer extends MainProcess {
  url: string;
  call(method: string, address: string, body?: unknown): Promise<Answer>;
}

/** Serves a home at a port that the system chooses; resolves when it listens. */
export async function serveMain(home: string, ...more: string[]): Promise<MainServer> {
  const main = startMain(['serve', '--home', home, '--port', '0', ...more]);
  const port = await new Promise<string>((resolve, reject) => {
    main.process.stdout?.on('data', () => {
      const match = /^TURNKEEP_READY port=(\d+)\n/.exec(main.stdout());
      if (match) resolve(match[1]!);
    });
    void main.exited.then((how) => reject(new Error(`it ended (${how}) before it listened:\n${main.stderr()}`)));
  });
  const url = `http://127.0.0.1:${port}`;
  return { ...main, url, call: (method, address, body) => call(`${url}${address}`, method, body) };
}
