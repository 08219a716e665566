/** The files of deploy/: what reads them would take them. Proxies run with theirs in test/long/proxies.test.ts. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../server/config.ts';
import { temporaryFolder } from '../support/home.ts';
import { programAt } from '../support/proxies.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const DEPLOY = path.join(ROOT, 'deploy');
const read = (name: string): Promise<string> => readFile(path.join(DEPLOY, name), 'utf8');

async function configOf(yaml: string) {
  const home = path.join(await temporaryFolder(), 'home');
  await mkdir(home);
  await writeFile(path.join(home, 'config.yaml'), yaml);
  return loadConfig({ home }, {});
}

it('[DP2] the image is made of files that are there, and runs as nobody special', async () => {
  const lines = (await read('Dockerfile')).replaceAll('\\\n', ' ').split('\n');
  const of = (word: string): string[] =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));
  const copies = of('COPY').filter((copy) => !copy.startsWith('--from'));
  expect(copies.length).toBeGreaterThan(5);
  for (const copy of copies) {
    for (const source of copy.split(' ').slice(0, -1))
      expect([source, existsSync(path.join(ROOT, source))]).toEqual([source, true]);
  }
  const stages = lines
    .join('\n')
    .split(/^FROM /m)
    .slice(1);
  expect(stages).toHaveLength(2);
  const [, run = ''] = stages;
  expect(run).toMatch(/^USER node$/m);
  expect(run.indexOf('\nUSER node')).toBeLessThan(run.indexOf('\nENTRYPOINT'));
  expect(of('HEALTHCHECK')).toHaveLength(1);
  // Node of the image is one that we support.
  const { engines } = JSON.parse(await readFile(path.join(ROOT, 'package.json'), 'utf8'));
  for (const stage of stages) expect(stage).toMatch(/^node:22-/);
  expect(engines.node).toContain('>=22');
});

it('[DP2] compose names files that are there, and opens no port but the proxy’s', async () => {
  const { services, volumes } = parse(await read('compose.yaml'));
  const { turnkeep, caddy } = services;
  expect(existsSync(path.join(DEPLOY, turnkeep.build.context, turnkeep.build.dockerfile))).toBe(true);
  for (const volume of [...turnkeep.volumes, ...caddy.volumes] as string[]) {
    const [source = ''] = volume.split(':');
    const isThere = source.startsWith('./') ? existsSync(path.join(DEPLOY, source)) : source in volumes;
    expect([volume, isThere]).toEqual([volume, true]);
  }
  expect(turnkeep.ports).toBeUndefined();
  expect(await read('Caddyfile.compose')).toContain(`turnkeep:${turnkeep.expose[0]}`);
});

it('[DP2] the configurations in it are ones that we take', async () => {
  expect((await configOf(await read('config.yaml'))).unknownKeys).toEqual([]);
  const [, inNote = ''] = /```yaml\n([\s\S]*?)```/.exec(await read('tailscale.md')) ?? [];
  expect((await configOf(inNote)).server.user_header).toBe('tailscale-user-login');
  for (const name of ['nginx.conf', 'Caddyfile']) {
    const [, inComment = ''] = /^#\s+(server: \{.*\})$/m.exec(await read(name)) ?? [];
    expect((await configOf(inComment)).server).toMatchObject({ trusted_proxies: ['127.0.0.1'] });
  }
});

const hasSystemd = programAt('systemd-analyze') !== undefined;

it.runIf(hasSystemd)('[DP2] the service is one that systemd takes, and is well locked', async () => {
  const unit = path.join(DEPLOY, 'turnkeep.service');
  execFileSync('systemd-analyze', ['verify', unit], { stdio: 'pipe' });
  const said = execFileSync('systemd-analyze', ['security', '--offline=true', unit], { encoding: 'utf8' });
  const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(said) ?? [];
  expect(Number(exposure)).toBeLessThan(3);
});
