/**
 * Installs the real agents before the tests, from the registry that npm is configured for, into a cache that outlives them.
 * What cannot be installed is skipped, by name and reason; it is never a failure of ours.
 */
import { execFile } from 'node:child_process';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { REAL_AGENTS, type RealAgent } from './real-agents.ts';

/** Where an agent is, or why it is not there. */
export type Installed = { folder: string } | { reason: string };

declare module 'vitest' {
  export interface ProvidedContext {
    agents: Record<string, Installed>;
  }
}

const CACHE = path.join(import.meta.dirname, '../../node_modules/.cache/agents');
/** For all of them together. */
const LIMIT_MS = 180_000;
const OPTIONS = [
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--no-save',
  '--no-package-lock',
  '--loglevel=error',
  '--fetch-retries=1',
];

const isThere = (agent: RealAgent, folder: string): Promise<boolean> =>
  access(path.join(folder, agent.program)).then(
    () => true,
    () => false,
  );

/** @param limitMs how long npm may take */
async function install(agent: RealAgent, limitMs: number): Promise<Installed> {
  const folder = path.join(CACHE, `${agent.name}-${agent.version}`);
  if (await isThere(agent, folder)) return { folder };
  await mkdir(CACHE, { recursive: true });
  // Only what was installed as a whole gets the name by which it is found the next time.
  const fresh = await mkdtemp(path.join(CACHE, 'new-'));
  const reason = await npmInstall(`${agent.package}@${agent.version}`, fresh, limitMs);
  if (reason === null && (await isThere(agent, fresh))) {
    await rm(folder, { recursive: true, force: true });
    await rename(fresh, folder);
    return { folder };
  }
  await rm(fresh, { recursive: true, force: true });
  return { reason: reason ?? 'it has no program for this platform' };
}

/** @returns why it could not, in npm's words; null when it did */
function npmInstall(what: string, folder: string, limitMs: number): Promise<string | null> {
  return new Promise((resolve) => {
    const timeout = Math.max(1, Math.ceil(limitMs));
    execFile('npm', ['install', '--prefix', folder, ...OPTIONS, what], { timeout }, (error, _stdout, stderr) => {
      if (!error) resolve(null);
      else if (error.killed) resolve(`npm took longer than ${LIMIT_MS / 1000} s for all agents`);
      else resolve(stderr.trim().split('\n')[0] || error.message);
    });
  });
}

export default async function setup(project: TestProject): Promise<void> {
  const agents: Record<string, Installed> = {};
  const begun = performance.now();
  for (const agent of REAL_AGENTS) {
    const installed = await install(agent, LIMIT_MS - (performance.now() - begun));
    agents[agent.name] = installed;
    if ('reason' in installed) {
      process.stderr.write(`skipped: ${agent.name} ${agent.version} cannot be installed: ${installed.reason}\n`);
    }
  }
  project.provide('agents', agents);
}
