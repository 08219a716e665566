/** Uploads and kill -9: what a dead server had half taken in is removed at the next start, and nothing else is. */
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startChildServer } from '../support/child-server.ts';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { attachmentsOf, BOUNDARY, part, uploaded } from '../support/uploads.ts';

const HALF = (pid: number): string => `.${'a'.repeat(32)}.tmp.${pid}.0`;

it('[AT2] a server that is killed in the middle of an upload leaves what the next start removes', async () => {
  const home = await temporaryFolder();
  const first = await startChildServer({ home });
  const id = (await first.call('POST', '/api/sessions')).json.session.session_id;
  const file = await uploaded(first, id, 'whole.txt', 'words');
  const folder = path.join(home, 'attachments', id);
  const { hostname, port, host } = new URL(first.url);
  const socket = connect({ host: hostname, port: Number(port) });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  socket.write(
    `POST ${attachmentsOf(id)} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 9000000\r\n` +
      `content-type: multipart/form-data; boundary=${BOUNDARY}\r\n\r\n`,
  );
  socket.write(part('; name="file"; filename="half.bin"', Buffer.alloc(200_000, 65)));
  await until('half of it is written', async () => (await readdir(folder)).length === 2);
  await first.kill();
  expect(await readdir(folder)).toContainEqual(expect.stringMatching(/^\.[0-9a-f]{32}\.tmp\./));

  const second = await startTestServer({ home });
  await until('it is removed', async () => (await readdir(folder)).length === 1);
  expect((await second.call('GET', attachmentsOf(id))).json.attachments).toMatchObject([{ id: file, size: 5 }]);
  expect((await second.call('GET', `${attachmentsOf(id)}/${file}`)).text).toBe('words');
});

it('[AT2] what a living process writes is left alone, unless it has stood still for long', async () => {
  const home = await temporaryFolder();
  const folder = (id: string): string => path.join(home, 'attachments', id);
  for (const id of ['written', 'stale', 'dead']) await mkdir(folder(id), { recursive: true });
  // The parent of this process lives as long as the test does.
  await writeFile(path.join(folder('written'), HALF(process.ppid)), 'half');
  await writeFile(path.join(folder('stale'), HALF(process.ppid)), 'half');
  await utimes(path.join(folder('stale'), HALF(process.ppid)), 1, 1);
  await writeFile(path.join(folder('dead'), HALF(4_194_305)), 'half');
  await startTestServer({ home });
  await until('the others are removed', async () => (await readdir(path.join(home, 'attachments'))).length === 1);
  expect(await readdir(folder('written'))).toEqual([HALF(process.ppid)]);
});
