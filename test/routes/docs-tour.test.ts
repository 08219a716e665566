/** The README's tour works by copy and paste: its very lines are run by a shell against a real server. */
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { startTestServer } from '../support/test-server.ts';

const README = readFileSync(path.join(import.meta.dirname, '../../README.md'), 'utf8');
const hasCurl = spawnSync('curl', ['--version']).status === 0 && spawnSync('bash', ['--version']).status === 0;

/** The shell lines of a section. */
function shellOf(heading: string): string[] {
  const section = README.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map((match) => match[1]!);
}

describe('README', () => {
  it.skipIf(!hasCurl)('[HT7] the tour with curl works by copy and paste', async () => {
    const server = await startTestServer();
    const [tour = '', follow = ''] = shellOf('A tour with curl');
    const here = (script: string) => script.replaceAll('http://127.0.0.1:8787', server.url);
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', here(tour)]);
    const session = stdout.split('\n')[0]!;
    expect(session).toMatch(/^\d{8}_\d{6}_[0-9a-f]{6}$/);
    expect(stdout).toContain('event: run.start');
    expect(stdout).toContain('**12**');
    expect(stdout).toContain('"outcome":"completed"');
    const [first, again] = [...stdout.matchAll(/"run_id":"([0-9a-f]{32})","cursor"/g)];
    expect(stdout.match(/"request_id":"my-first"/g)).toHaveLength(2);
    expect(first?.[1] ?? 'none').toBe(again?.[1]);
    expect(stdout).toContain('"status":"interrupted"');
    expect(stdout).toMatch(/"hits":\[\{[^\]]*milk/);
    expect(stdout).toMatch(/"removed":[12]/);
    expect(stdout.match(/"source":"(fork|import)"/g)).toEqual(['"source":"fork"', '"source":"import"']);
    expect(stdout).toContain('# what is 15% of 80?');
    // The two streams never end by themselves: they are only looked at.
    const ids = [...stdout.matchAll(/^id: (.*)$/gm)].map((match) => match[1]!);
    for (const line of here(follow).trim().split('\n')) {
      const command = line.replace('<an id: that you saw>', ids[2]!).replace('curl -N', 'timeout 1 curl -sN');
      const { stdout: seen } = await promisify(execFile)('bash', ['-c', `S=${session}; ${command} || true`]);
      expect(seen).toContain(line.includes('last-event-id') ? `id: ${ids[3]}` : 'event: session.snapshot');
    }
  });
});
