/** Programs that stay: lines in both directions, how they end, and that they leave nothing behind. */
import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createPaths } from '../../db/files/paths.ts';
import { createRunningCommands } from '../../db/files/running-commands.ts';
import { identityOf, ownIdentity } from '../../server/lease/process-identity.ts';
import { createPrograms, type ProgramRequest } from '../../server/workspace/programs.ts';
import { newMark } from '../support/commands.ts';
import { temporaryFolder } from '../support/home.ts';
import { processesWith } from '../support/processes.ts';
import { until } from '../support/until.ts';

async function bench() {
  const home = await temporaryFolder();
  const programs = createPrograms({
    notes: createRunningCommands(createPaths(home)),
    server: ownIdentity(),
    identityOf,
    graceMs: 200,
    newMark,
    onLeft: (mark) => {
      throw new Error(`processes of ${mark} are left`);
    },
  });
  onTestFinished(() => programs.close());
  const lines: string[] = [];
  const start = async (code: string, change: Partial<ProgramRequest> = {}) => {
    const started = await programs.start({
      command: process.execPath,
      args: ['-e', code],
      env: { PATH: process.env.PATH ?? '' },
      folder: home,
      maxLineBytes: 1_000,
      onLine: (line) => lines.push(line),
      ...change,
    });
    if (!started.ok) throw new Error(`not started: ${started.code}`);
    return started.program;
  };
  const notes = async () => (await readdir(path.join(home, 'commands')).catch(() => [])).length;
  return { programs, lines, start, notes };
}

it('[TL4] a program is spoken to in lines, and its end and its last words are told after its last line', async () => {
  const { start, lines, notes, programs } = await bench();
  const program = await start(
    `process.stdin.on('data', (text) => { process.stdout.write('heard ' + text); console.error('bye'); process.exitCode = 3; process.stdin.destroy(); })`,
  );
  expect(await notes()).toBe(1);
  expect(await program.send('hello')).toBe(true);
  expect(await program.ended).toEqual({ kind: 'exit', code: 3 });
  expect(lines).toEqual(['heard hello']);
  expect(program.lastWords()).toBe('bye\n');
  expect(await program.send('too late')).toBe(false);
  await until('nothing of it is left', async () => programs.running() === 0 && (await notes()) === 0);
});

it('[TL4] what a program leaves when it ends by itself is ended too, though it ignores TERM and has its output open', async () => {
  const { start, programs } = await bench();
  const mark = `left-${process.pid}-${Math.random()}`;
  const child = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); // ${mark}`;
  const program = await start(
    `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(child)}], { stdio: 'inherit', detached: true }).unref(); setTimeout(() => process.exit(0), 300)`,
  );
  await until('its child is there', () => processesWith(mark).length > 0);
  expect(await program.ended).toEqual({ kind: 'exit', code: 0 });
  await until('it is gone', () => processesWith(mark).length === 0 && programs.running() === 0);
});

it('[TL3] a line that is too long ends its program', async () => {
  const { start, programs } = await bench();
  const program = await start(`process.stdout.write('x'.repeat(2000)); setInterval(() => {}, 1000)`);
  expect(await program.ended).toEqual({ kind: 'line_too_long' });
  await until('it is gone', () => programs.running() === 0);
});

it('[TL4] what cannot be started says why and leaves no note; after the close nothing starts', async () => {
  const { programs, start, notes } = await bench();
  await expect(start('', { command: 'no-such-command-anywhere' })).rejects.toThrow('not started: ENOENT');
  expect(await notes()).toBe(0);
  await programs.close();
  await expect(start('')).rejects.toThrow('not started: closed');
});

it('[AC6] the last lines of a program that has ended wait for a reader that is behind', async () => {
  let free = (): void => {};
  const room = new Promise<void>((resolve) => {
    free = resolve;
  });
  const { start, lines } = await bench();
  const mark = `behind-${process.pid}-${Math.random()}`;
  // The pipe takes all of it, so that it ends while a part of that is still to be read.
  const program = await start(`process.stdout.write('${'x'.repeat(200)}\\n'.repeat(800)); // ${mark}`, {
    room: () => room,
  });
  await until('it has ended', () => lines.length > 0 && processesWith(mark).length === 0);
  const isOver = await Promise.race([program.ended, new Promise((resolve) => setTimeout(resolve, 800, 'not yet'))]);
  expect(isOver).toBe('not yet');
  expect(lines.length).toBeLessThan(800);
  free();
  expect(await program.ended).toEqual({ kind: 'exit', code: 0 });
  expect(lines).toHaveLength(800);
});

it('[MC4] a program that reads nothing is read no further when too much waits for it, and goes on when it reads', async () => {
  const { start, programs, lines } = await bench();
  const home = await temporaryFolder();
  const go = path.join(home, 'go');
  let program: Awaited<ReturnType<typeof start>> | null = null;
  let unsent = 0;
  program = await start(
    `const { existsSync } = require('node:fs');
    const more = () => { process.stdout.write('ask\\n'.repeat(1000), () => setImmediate(more)); };
    process.stdin.pause();
    more();
    setInterval(() => { if (existsSync(${JSON.stringify(go)})) process.stdin.resume(); }, 20);`,
    {
      onLine(line) {
        lines.push(line);
        unsent += 1;
        void program?.send('x'.repeat(1000)).then(() => {
          unsent -= 1;
        });
      },
    },
  );
  const isStill = async (): Promise<boolean> => {
    const before = lines.length;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return before > 0 && lines.length === before;
  };
  await until('it is read no further', isStill);
  const before = lines.length;
  expect(unsent).toBeLessThan(100_000);
  await writeFile(go, '');
  await until('it is read again', () => lines.length > before);
  await programs.close();
});
