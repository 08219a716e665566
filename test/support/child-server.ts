/** Server processes of their own, to be killed. None outlives its test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { childEntry } from './compile-children.ts';
import type { CrashServerOptions } from './crash-server.ts';
import { openSse, type SseOptions, type SseReader } from './sse.ts';
import { type Answer, call } from './test-server.ts';

const ROOT = path.join(import.meta.dirname, '../..');

export interface ChildServer {
  url: string;
  process: ChildProcess;
  /** What it wrote on stderr. */
  stderr(): string;
  call(method: string, address: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  stream(address: string, options?: SseOptions): Promise<SseReader>;
  /** Kills it with -9 and waits until it is gone. */
  kill(): Promise<void>;
  /** Resolves when it has ended by itself: the exit code, or the signal. */
  exited: Promise<number | NodeJS.Signals>;
}

/** A home whose sessions are answered by a provider of that kind, an OpenAI-compatible one without it. */
export async function writeProviderHome(home: string, baseUrl: string, more = '', kind = 'custom'): Promise<void> {
  await mkdir(home, { recursive: true });
  const config = `model:\n  provider: ${kind}\n  base_url: ${baseUrl}\n  default: fake-model\n${more}`;
  await writeFile(path.join(home, 'config.yaml'), config);
}

/** Starts a server process and waits until it listens. */
export async function startChildServer(
  options: { home: string } & Partial<CrashServerOptions>,
  env: Record<string, string> = {},
): Promise<ChildServer> {
  const argument = JSON.stringify({ crashAt: null, times: 1, ...options });
  const child = spawn(process.execPath, [childEntry('crash-server'), argument], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const exited = new Promise<number | NodeJS.Signals>((resolve) => {
    child.on('exit', (code, signal) => resolve(signal ?? code ?? 0));
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const port = await new Promise<number>((resolve, reject) => {
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
      const match = /TURNKEEP_READY port=(\d+)/.exec(stdout);
      if (match) resolve(Number(match[1]));
    });
    void exited.then((how) => reject(new Error(`the server ended (${how}) before it listened:\n${stderr}`)));
  });
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    process: child,
    stderr: () => stderr,
    call: (method, address, body, headers) => call(`${url}${address}`, method, body, headers),
    stream: (address, sse) => openSse(`${url}${address}`, sse),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    exited,
  };
}

/** Every file of a home's sessions with its content, to see that a read changed no byte. */
export async function filesOf(home: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const folder = path.join(home, 'sessions');
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    files.set(path.relative(folder, file), await readFile(file, 'utf8'));
  }
  return files;
}
