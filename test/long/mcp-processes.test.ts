/** The processes of MCP servers around the death and the end of ours: none is left. */

import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { temporaryFolder } from '../support/home.ts';
import { serveMain } from '../support/main-process.ts';
import { stdioServer } from '../support/mcp.ts';
import { processesWith } from '../support/processes.ts';
import { until } from '../support/until.ts';

/** A home with a server that ignores TERM and the end of its input, and so do its two children. */
async function homeWithFamily(): Promise<{ home: string; mark: string; family(): number[] }> {
  const home = await temporaryFolder();
  const mark = `family-${process.pid}-${Math.random()}`;
  const own = stdioServer('--stubborn', '--family', '--mark', mark);
  await writeFile(path.join(home, 'config.yaml'), stringify({ mcp_servers: { own } }));
  return { home, mark, family: () => processesWith(mark) };
}

const isReady = (server: { call(method: string, address: string): Promise<{ json: unknown }> }) =>
  until('the server is connected', async () => {
    const { json } = await server.call('GET', '/api/mcp');
    return (json as { servers: { status: string }[] }).servers[0]?.status === 'ready';
  });

it('[MC6] what a server of ours that was killed left is ended by the next start, which has its own', async () => {
  const { home, family } = await homeWithFamily();
  const first = await serveMain(home);
  await isReady(first);
  const left = await until('all three run', () => {
    const found = family();
    return found.length === 3 && found;
  });
  first.process.kill('SIGKILL');
  await first.exited;
  const second = await serveMain(home);
  await until('what was left is ended', () => !family().some((pid) => left.includes(pid)));
  await isReady(second);
  await until('the next has its own', () => family().length === 3);

  second.process.kill('SIGTERM');
  expect(await second.exited).toBe(0);
  expect(family()).toEqual([]);
}, 120_000);
