/** `turnkeep password` and `turnkeep token`, as a person calls them, beside a running server. */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/home.ts';
import { serveMain, startMain } from '../support/main-process.ts';

async function turnkeep(args: string[], input = '') {
  const main = startMain(args, {}, undefined, input);
  const code = await main.exited;
  return { code, out: main.stdout(), err: main.stderr() };
}

it('[SE6] a password that is set beside a running server is asked for at once, and taken away again', async () => {
  const home = await temporaryFolder();
  const server = await serveMain(home);
  const status = async () => (await server.call('GET', '/api/sessions')).status;
  expect(await status()).toBe(200);
  expect(await turnkeep(['password', '--home', home], 'a long enough password\n')).toMatchObject({
    code: 0,
    out: 'The password is set, and everybody is logged out.\n',
    err: '',
  });
  expect(await status()).toBe(401);
  const login = (password: string) => server.call('POST', '/api/auth/login', { password });
  expect((await login('another password')).status).toBe(401);
  expect((await login('a long enough password')).status).toBe(200);
  expect((await turnkeep(['password', '--home', home, '--remove'])).code).toBe(0);
  expect(await status()).toBe(200);
});

it.each([
  ['', 'no password was given'],
  ['\n', 'no password was given'],
  ['seven77\n', 'at least 8 characters'],
  [`${'x'.repeat(1025)}\n`, 'at most 1024 characters'],
])('[SE6] a password that is none changes nothing, and says why (%j)', async (input, why) => {
  const home = await temporaryFolder();
  const { code, out, err } = await turnkeep(['password', '--home', home], input);
  expect([code, out]).toEqual([1, '']);
  expect(err).toContain(why);
  expect(err).toContain('Nothing was changed');
});

it('[SE6] a token is told once, listed without its secret, and revoked', async () => {
  const home = path.join(await temporaryFolder(), 'new');
  const made = await turnkeep(['token', 'create', 'laptop', '--scope', 'read', '--days', '30', '--home', home]);
  expect(made.code).toBe(0);
  const secret = made.out.trim();
  expect(secret).toMatch(/^tk_[\w-]{43}$/);
  const id = /^Token (\w+) \(read\)/.exec(made.err)?.[1];
  expect((await stat(home)).mode & 0o77).toBe(0);
  const server = await serveMain(home);
  const status = async () =>
    (await fetch(`${server.url}/api/sessions`, { headers: { authorization: `Bearer ${secret}` } })).status;
  expect(await status()).toBe(200);
  const list = await turnkeep(['token', 'list', '--home', home]);
  expect(list.out).toMatch(new RegExp(`^${id} +read +laptop +\\(made \\d{4}-\\d\\d-\\d\\d, used .*, expires .*\\)\n$`));
  expect(list.out).not.toContain(secret);
  const [asJson] = JSON.parse((await turnkeep(['token', 'list', '--json', '--home', home])).out);
  expect(asJson).toMatchObject({ token_id: id, name: 'laptop', scope: 'read' });
  expect(Object.keys(asJson)).not.toContain('secret_hash');
  expect((await turnkeep(['token', 'revoke', id!, '--home', home])).code).toBe(0);
  // It was the last one, and still nobody is let in who was not before.
  expect(await status()).toBe(401);
  const again = await turnkeep(['token', 'revoke', id!, '--home', home]);
  expect([again.code, again.err]).toEqual([
    1,
    `turnkeep: there is no token ${id}. "turnkeep token list" shows them.\n`,
  ]);
});

it.each([
  [['token']],
  [['token', 'create']],
  [['token', 'create', 'a', 'b']],
  [['token', 'create', 'a', '--scope', 'root']],
  [['token', 'create', 'a', '--days', '0']],
  [['token', 'list', 'x']],
  [['token', 'drop', 'x']],
  [['password', 'secret-in-the-history']],
])('[SE6] a wrong call says what is wrong and makes nothing: %j', async (args) => {
  const home = await temporaryFolder();
  const { code, out, err } = await turnkeep([...args, '--home', home]);
  expect([code, out]).toEqual([1, '']);
  expect(err).toMatch(/^turnkeep: .+/);
  await expect(stat(path.join(home, 'state.db'))).rejects.toThrow('ENOENT');
});
