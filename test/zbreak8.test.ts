import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { parse } from 'yaml';
import { afterAll, expect, it } from 'vitest';
import { createConfigFile } from '../db/files/config-file.ts';
import { createAllowList } from '../server/runners/allow-list.ts';
import { createApprovals } from '../server/runners/approvals.ts';
import { createWorkspaceTools } from '../server/workspace/tools.ts';
import { openWorkspace } from '../server/workspace/workspace.ts';
import { commandsIn, newMark } from './support/commands.ts';
import { toolContext } from './support/tool-context.ts';
import { processesWith } from './support/processes.ts';
import { loadConfig } from '../server/config.ts';

const base = mkdtempSync(join(tmpdir(), 'zb-'));
const root = join(base, 'ws'); mkdirSync(root);
const approvals = (patterns: string[]) => createApprovals({ mode: 'manual', secrets: [], allowed: createAllowList({ patterns, file: { addTo: async () => 'written' }, log: { info() {}, warn() {} } }) });
const term = { name: 'terminal', effect: 'run' } as const;
const w = { name: 'write_file', effect: 'write' } as const;
it('cwd digits', async () => {
  let n = 0;
  const ask = async () => { n++; return { kind: 'choice', choice: 'deny' } as const; };
  await approvals(['terminal: npm test']).allow(term, { command: 'npm test', cwd: '7' }, { sessionId: 's', ask });
  expect(n).toBe(1);
});
it.each([['run', { command: 'ls', x: { toString: 1, valueOf: 1 } }], ['write', { path: 'a', valueOf: 'x' }], ['write', JSON.parse('{"path":"a","__proto__":"x\\ny"}')], ['write', { path: 'a', constructor: 'evil' }]])('hostile %s %j', async (e, args) => {
  let q: any;
  const ask = async (x: any) => { q = x; return { kind: 'choice', choice: 'deny' } as const; };
  const d = await approvals([]).allow(e === 'run' ? term : w, args, { sessionId: 's', ask });
  console.log(q?.command);
  expect(d.ok).toBe(false);
});
it('edit speed', async () => {
  const tools = createWorkspaceTools({}); const edit = tools.find(t => t.name === 'edit_file')!; const write = tools.find(t => t.name === 'write_file')!;
  const ws = openWorkspace(root);
  const time = async (label: string, f: () => Promise<any>) => { const s = performance.now(); const r = await f(); console.log(label, Math.round(performance.now() - s), 'ms', String(r.result).slice(0, 90), Math.round(process.memoryUsage().rss / 1e6)); };
  writeFileSync(join(root, 'a'), 'a'.repeat(4 * 1024 * 1024));
  await time('count 1', () => edit.execute({ path: 'a', old_text: 'a', new_text: 'b' }, toolContext(ws)));
  await time('count 3000', () => edit.execute({ path: 'a', old_text: 'a'.repeat(3000), new_text: 'b' }, toolContext(ws)));
  await time('all', () => edit.execute({ path: 'a', old_text: 'a', new_text: 'b', replace_all: true }, toolContext(ws)));
  writeFileSync(join(root, 'n'), '\n'.repeat(4 * 1024 * 1024));
  await time('nl', () => write.execute({ path: 'n', content: 'x\n'.repeat(2 * 1024 * 1024) }, toolContext(ws)));
  await time('nl2', () => write.execute({ path: 'n', content: 'y\nx\n'.repeat(1024 * 1024) }, toolContext(ws)));
}, 120000);
it('two workspaces, one file', async () => {
  const edit = createWorkspaceTools({}).find(t => t.name === 'edit_file')!;
  let lost = 0, refused = 0;
  for (let round = 0; round < 40; round++) {
    writeFileSync(join(root, 'e'), Array.from({ length: 8 }, (_, n) => `l${n}\n`).join(''));
    const rs = await Promise.all(Array.from({ length: 8 }, (_, n) => edit.execute({ path: 'e', old_text: `l${n}\n`, new_text: `x${n}\n` }, toolContext(openWorkspace(root)))));
    const text = readFileSync(join(root, 'e'), 'utf8');
    rs.forEach((r, n) => { if (r.is_error) refused++; else if (!text.includes(`x${n}`)) lost++; });
  }
  console.log({ lost, refused });
});
it('yaml roundtrip', async () => {
  const file = join(base, 'config.yaml');
  await fc.assert(fc.asyncProperty(fc.oneof(fc.string({ unit: 'binary' }), fc.array(fc.constantFrom('a', ' ', '\t', '\n', '"', "'", '#', ': ', '- ', '\u2028', '\x85', '\x07', '\ufeff', '\u00a0', '&', '*', '!', '|', '>', '\r', 'é', '😀','%', '\\')).map(p => p.join(''))), async (s) => {
    if (s === '') return;
    writeFileSync(file, '# c\napprovals:\n  mode: manual\n');
    const c = createConfigFile(file);
    await c.addTo('approvals', 'allow', `terminal: ${s}x`);
    await c.addTo('approvals', 'allow', 'terminal: second');
    expect(parse(readFileSync(file, 'utf8')).approvals.allow).toEqual([`terminal: ${s}x`, 'terminal: second']);
  }), { numRuns: 600 });
});
it('escapes', async () => {
  const commands = await commandsIn(join(base, 'home'));
  const word = `w${newMark()}`;
  const t = createWorkspaceTools({ commands }).find(t => t.name === 'terminal')!;
  const cases: Record<string, string> = {
    'bg env -i setsid': `env -i setsid /bin/sh -c 'trap "" TERM; while :; do /bin/sleep 0.1; done' ${word} & sleep 0.3`,
    'fg env -i setsid timeout': `env -i setsid -w /bin/sh -c 'trap "" TERM; while :; do /bin/sleep 0.1; done' ${word}`,
    'double': `(setsid sh -c 'sh -c "trap \\"\\" TERM; while :; do sleep 0.1; done" ${word} &' &) ; sleep 0.3`,
    'perl': `perl -e 'use POSIX; fork and exit; POSIX::setsid(); fork and exit; $0="zz ${word}"x20; sleep 60' ; sleep 0.3`,
    'python ctl': `python3 -c 'print(1)'`,
  };
  for (const [k, c] of Object.entries(cases)) {
    const s = performance.now();
    const r = await t.execute({ command: c, timeout_s: 1 }, toolContext(openWorkspace(root)));
    const left = processesWith(word);
    console.log(k, r.result.slice(0, 80), 'left', left.length, Math.round(performance.now() - s));
    for (const p of left) process.kill(p, 'SIGKILL');
  }
  await commands.close();
}, 60000);
