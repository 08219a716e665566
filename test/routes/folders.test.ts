/** What a workspace can be chosen from: the folders of the server, one at a time. */
import { mkdir, realpath, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const listed = (server: TestServer, folder: string, headers = {}) =>
  server.call('GET', `/api/folders?path=${encodeURIComponent(folder)}`, undefined, headers);

it('[HT13] a folder is told with its real path, the one above, and its sub-folders in order', async () => {
  const server = await startTestServer();
  const root = await realpath(await temporaryFolder());
  for (const name of ['b10', 'b9', 'Über', '.hidden', 'a b']) await mkdir(path.join(root, name));
  await writeFile(path.join(root, 'a file'), 'x');
  await symlink(path.join(root, 'b9'), path.join(root, 'to b9'));
  await symlink(path.join(root, 'a file'), path.join(root, 'to a file'));
  await symlink(path.join(root, 'nowhere'), path.join(root, 'to nowhere'));
  const folders = ['a b', 'b9', 'b10', 'to b9', 'Über', '.hidden'];
  const parent = path.dirname(root);
  expect((await listed(server, root)).json).toEqual({ path: root, parent, folders, more: false });
  expect((await listed(server, `${root}/b9/../`)).json.path).toBe(root);
  expect((await listed(server, `${root}/to b9`)).json).toEqual({
    path: path.join(root, 'b9'),
    parent: root,
    folders: [],
    more: false,
  });
  expect((await listed(server, '/')).json).toMatchObject({ path: '/', parent: null });
  // What is told can be given to a session.
  for (const name of folders) await server.session({ workspace: path.join(root, name) });
});

it('[HT13] without a path it is the home of who runs the server, or the top where that is gone', async () => {
  const server = await startTestServer();
  expect((await server.call('GET', '/api/folders')).json.path).toBe(await realpath(server.home));
  const homeless = await startTestServer({ env: { HOME: path.join(server.home, 'gone') } });
  expect((await homeless.call('GET', '/api/folders')).json.path).toBe('/');
});

it('[HT13] what cannot be a workspace is refused, and says why', async () => {
  const server = await startTestServer();
  const root = await temporaryFolder();
  await writeFile(path.join(root, 'a-file'), 'x');
  const reasons: [folder: string, reason: string][] = [
    [path.join(root, 'missing'), 'missing'],
    [path.join(root, 'a-file'), 'not_a_directory'],
    [path.join(root, 'a-file', 'x'), 'missing'],
    ['relative', 'not_absolute'],
    ['./x', 'not_absolute'],
    ['~', 'not_absolute'],
    ['', 'not_absolute'],
    [`${root}\0`, 'missing'],
    [`/${'x'.repeat(4000)}`, 'missing'],
  ];
  for (const [folder, reason] of reasons) {
    const answer = await listed(server, folder);
    expect([folder, answer.status, answer.json]).toEqual([
      folder,
      422,
      { code: 'bad_workspace', reason, error: expect.stringMatching(/\S/) },
    ]);
  }
  expect((await listed(server, `/${'x'.repeat(5000)}`)).json.code).toBe('bad_request');
});

it('[HT13] of many sub-folders the first 500 are told, and that there are more', async () => {
  const server = await startTestServer();
  const root = await temporaryFolder();
  const make = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, n) => mkdir(path.join(root, `${n}`), { recursive: true })));
  await make(500);
  const all = Array.from({ length: 500 }, (_, n) => `${n}`);
  expect((await listed(server, root)).json).toMatchObject({ folders: all, more: false });
  await make(501);
  expect((await listed(server, root)).json).toMatchObject({ folders: all, more: true });
});

it('[HT13] whoever may only read is told of no folder', async () => {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const server = await startTestServer({ env: { TURNKEEP_TOKEN: 'a-token-of-tests' } });
  const make = async (scope: string) => {
    const body = { name: scope, scope };
    return (await server.call('POST', '/api/auth/tokens', body, bearer('a-token-of-tests'))).json.secret;
  };
  expect((await listed(server, '/', bearer(await make('read')))).json.code).toBe('insufficient_scope');
  expect((await listed(server, '/', bearer(await make('prompt')))).status).toBe(200);
  expect((await listed(server, '/')).json.code).toBe('unauthorized');
});
