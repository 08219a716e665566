/** What is allowed for good and for a session: that it holds, and what becomes of the configuration file. */
import { chmod, lstat, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { replaceFile } from '../../db/files/atomic.ts';
import { createConfigFile } from '../../db/files/config-file.ts';
import { loadConfig } from '../../server/config.ts';
import { createAllowList } from '../../server/runners/allow-list.ts';
import { temporaryFolder } from '../support/home.ts';

const CALL = { tool: 'terminal', command: 'npm test' };

/** A home with this config.yaml, and the list over it. */
async function listOver(text: string | null, replace = replaceFile) {
  const home = await temporaryFolder();
  const file = path.join(home, 'config.yaml');
  if (text !== null) await writeFile(file, text);
  const logs: string[] = [];
  const log = {
    info: (_: object, said: string) => logs.push(said),
    warn: (_: object, said: string) => logs.push(said),
  };
  const list = createAllowList({ patterns: [], file: createConfigFile(file, replace), log });
  const allowed = () => loadConfig({ home }, {}).approvals.allow;
  return { home, file, list, logs, allowed, text: () => readFile(file, 'utf8') };
}

it('[AP4] always holds at once and after a restart, and comments and order of the file stay', async () => {
  const { list, text, allowed } = await listOver(
    '# mine\nserver: {port: 1}  # a port\n\napprovals:\n  # be careful\n  timeout: 20\nqueue:\n  max: 7 # seven\n',
  );
  expect(list.allows('s', CALL)).toBe(false);
  await list.allowAlways('terminal: npm test');
  expect(list.allows('s', CALL)).toBe(true);
  expect(list.allows('another', CALL)).toBe(true);
  const written = await text();
  for (const part of ['# mine\n', '# a port', '  # be careful\n  timeout: 20\n', 'max: 7 # seven\n']) {
    expect(written).toContain(part);
  }
  expect(allowed()).toEqual(['terminal: npm test']);
  await list.allowAlways('write_file');
  await list.allowAlways('write_file');
  expect(allowed()).toEqual(['terminal: npm test', 'write_file']);
});

it.each([
  ['no file', null],
  ['an empty file', ''],
  ['comments alone', '# nothing\n'],
  ['an empty section', 'approvals:\n'],
  ['an empty list', 'approvals: {mode: manual, allow: }\n'],
  ['a list in brackets', 'approvals: {allow: []}\n'],
  [
    'a long list',
    `approvals:\n  allow:\n${Array.from({ length: 5 }, (_, n) => `    - "terminal: a ${n}"\n`).join('')}`,
  ],
])('[AP4] it is written whatever the file looked like: %s', async (_name, before) => {
  const { list, allowed } = await listOver(before);
  const awkward = [
    'terminal: echo "a: b" # no comment',
    "terminal: printf '\\n'; true\nls",
    'terminal: - ? & ! % @ é 日本',
  ];
  for (const pattern of awkward) await list.allowAlways(pattern);
  expect(allowed().slice(-3)).toEqual(awkward);
});

it('[AP4] what is allowed at the same time is all kept', async () => {
  const { list, allowed } = await listOver('');
  const patterns = Array.from({ length: 20 }, (_, n) => `terminal: make ${n}`);
  await Promise.all(patterns.map((pattern) => list.allowAlways(pattern)));
  expect(allowed().sort()).toEqual(patterns.sort());
});

it('[AP4] what somebody else wrote meanwhile is read again, never written over', async () => {
  let interfere = 2;
  const { list, allowed, text } = await listOver('approvals: {timeout: 1}\n', async (target, chunks, isStillWanted) => {
    if (interfere > 0)
      await writeFile(target, `queue: {max: ${interfere}} # by hand\napprovals: {allow: [edit_file]}\n`);
    interfere -= 1;
    return replaceFile(target, chunks, isStillWanted);
  });
  await list.allowAlways('write_file');
  expect(allowed()).toEqual(['edit_file', 'write_file']);
  expect(await text()).toContain('queue: {max: 1} # by hand'.replaceAll('{', '{ ').replaceAll('}', ' }'));
});

it('[AP4] a link to the file stays a link', async () => {
  const { home, file, list, allowed } = await listOver('# kept elsewhere\n');
  const elsewhere = path.join(home, 'dotfiles.yaml');
  await rename(file, elsewhere);
  await symlink(elsewhere, file);
  await list.allowAlways('write_file');
  expect((await lstat(file)).isSymbolicLink()).toBe(true);
  expect(await readFile(elsewhere, 'utf8')).toContain('# kept elsewhere');
  expect(allowed()).toEqual(['write_file']);
});

it.each([
  ['no YAML', 'approvals: [\n'],
  ['a list of things', '- a\n'],
  ['a section that is none', 'approvals: yes\n'],
  ['a list that is none', 'approvals: {allow: everything}\n'],
])('[AP4] a file in which only a person can tell what is meant is left as it is: %s', async (_name, before) => {
  const { list, logs, text } = await listOver(before);
  await list.allowAlways('terminal: npm test');
  expect(await text()).toBe(before);
  expect(logs).toEqual([expect.stringContaining('config.yaml has no place')]);
  expect(list.allows('s', CALL)).toBe(true);
});

it('[AP4] a file that nobody may write is not replaced, and neither is a link that leads nowhere', async () => {
  const { file, list, logs, text } = await listOver('# locked\n');
  await chmod(file, 0o444);
  await list.allowAlways('terminal: npm test');
  expect(await text()).toBe('# locked\n');
  await rm(file);
  await symlink(`${file}.gone`, file);
  await list.allowAlways('write_file');
  expect((await lstat(file)).isSymbolicLink()).toBe(true);
  expect(logs).toEqual([expect.stringContaining('no place'), expect.stringContaining('no place')]);
  expect(list.allows('s', CALL)).toBe(true);
});

it('[AP4] a disk that cannot be written loses the file nothing and the person no answer', async () => {
  const { list, logs, text } = await listOver('# as it was\n', async () => {
    throw Object.assign(new Error('full'), { code: 'ENOSPC' });
  });
  await list.allowAlways('terminal: npm test');
  expect(list.allows('s', CALL)).toBe(true);
  expect(logs).toEqual(['a permission could not be written to config.yaml']);
  expect(await text()).toBe('# as it was\n');
});

it('[AP4] what is allowed in a session holds for this call there, and is not written down', async () => {
  const { list, text } = await listOver('# empty\n');
  list.allowInSession('one', CALL);
  expect(list.allows('one', CALL)).toBe(true);
  expect(list.allows('two', CALL)).toBe(false);
  expect(list.allows('one', { ...CALL, command: 'npm test -- --all' })).toBe(false);
  expect(list.allows('one', { tool: 'write_file', command: null })).toBe(false);
  expect(await text()).toBe('# empty\n');
});
