/** Attachments over real sockets: what is taken in, what is refused and leaves nothing, and how they are given out. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAttachmentStore } from '../../db/files/attachment-store.ts';
import { createPaths } from '../../db/files/paths.ts';
import { connectGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/home.ts';
import { rawExchange, rawRequest } from '../support/raw.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { smallDisk, whyNoSmallDisk } from '../support/small-disk.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { attachmentsOf, BOUNDARY, END, formRequest, PNG, part, upload, uploaded } from '../support/uploads.ts';

const ID = /^[0-9a-f]{32}$/;

/** What stands in the folder of a session; nothing where there is none. */
const filesOf = (server: TestServer, id: string): Promise<string[]> =>
  readdir(path.join(server.home, 'attachments', id)).catch(() => []);

const stateOf = async (server: TestServer, id: string): Promise<string> =>
  (await server.call('GET', `/api/sessions/${id}`)).json.session.status;

const fatal = (server: TestServer) => server.logs.filter((line) => line.level >= 50);

async function serverWithSession(config = '') {
  const server = await startTestServer({ config });
  return { server, id: await server.session() };
}

describe('an upload', () => {
  it('[AT1] is what its bytes say, whatever it is called and its sender says', async () => {
    const { server, id } = await serverWithSession();
    const cases: [name: string, bytes: string | Buffer, mime: string][] = [
      ['dot.png', PNG, 'image/png'],
      ['dot.txt', PNG, 'image/png'],
      ['text.jpeg', 'only text, not a picture\n', 'text/plain'],
      ['page.html', '<script>alert(1)</script>', 'text/plain'],
      ['drawing.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>', 'text/plain'],
      ['photo.jpg', Buffer.from([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3]), 'image/jpeg'],
      ['moving.gif', 'GIF89a\x01\x00', 'image/gif'],
      ['small.webp', 'RIFF\x10\x00\x00\x00WEBPVP8 ', 'image/webp'],
      ['paper.pdf', '%PDF-1.7\n', 'application/pdf'],
      ['half.png', PNG.subarray(0, 8), 'application/octet-stream'],
      ['noise', Buffer.from([0, 1, 2, 3]), 'application/octet-stream'],
      ['wide.txt', `${'x'.repeat(4095)}é and on`, 'text/plain'],
      ['latin.txt', Buffer.from('caf\xe9', 'latin1'), 'application/octet-stream'],
      ['empty.png', '', 'application/octet-stream'],
    ];
    for (const [name, bytes, mime] of cases) {
      const answer = await upload(server, id, name, bytes);
      expect([name, answer.status]).toEqual([name, 201]);
      const { attachment } = answer.json;
      expect(attachment).toEqual({ id: expect.stringMatching(ID), name, mime, size: Buffer.byteLength(bytes) });
      const got = await fetch(`${server.url}${attachmentsOf(id)}/${attachment.id}`);
      expect(Buffer.from(await got.arrayBuffer())).toEqual(Buffer.from(bytes));
    }
    const { attachments } = (await server.call('GET', attachmentsOf(id))).json;
    expect(attachments).toHaveLength(cases.length);
    expect(attachments.map(({ mime }: { mime: string }) => mime).sort()).toEqual(
      cases.map(([, , mime]) => mime).sort(),
    );
  });

  it('[AT3] has a name that is safe here and in a download, and stands in the folder of its session', async () => {
    const { server, id } = await serverWithSession();
    const cases: [name: string, safe: string][] = [
      ['naïve 日本 (1).png', 'naïve 日本 (1).png'],
      ['../../etc/passwd', 'passwd'],
      ['C:\\\\Users\\\\me\\\\a.txt', 'a.txt'],
      ['.hidden', 'hidden'],
      ['..', 'file'],
      ['CON.txt', '_CON.txt'],
      ['nul', '_nul'],
      ['a\u202Egpj.exe', 'a_gpj.exe'],
      ['a\u0000b\tc', 'a_b_c'],
      ['semi;colon<b>.txt', 'semi_colon_b_.txt'],
      ['trailing. . ', 'trailing'],
      ['', 'file'],
      [`${'é'.repeat(300)}.${'x'.repeat(50)}`, `${'é'.repeat(40)}.${'x'.repeat(19)}`],
    ];
    for (const [name, safe] of cases) {
      const body = Buffer.concat([part(`; name="file"; filename="${name}"`, 'x'), Buffer.from(END)]);
      const answer = await rawRequest(server.url, formRequest(id, body));
      expect([name, answer.status, answer.json?.attachment?.name]).toEqual([name, 201, safe]);
      expect(await filesOf(server, id)).toContain(`${answer.json.attachment.id}.${safe}`);
    }
    expect(await readdir(path.join(server.home, 'attachments'))).toEqual([id]);
    expect(fatal(server)).toEqual([]);
  });

  const FILE = '; name="file"; filename="a.txt"';
  const whole = Buffer.concat([part(FILE, 'some text'), Buffer.from(END)]);
  const REFUSED: [what: string, body: string | Buffer, headers: Record<string, string | null>, code: string][] = [
    ['no boundary', whole, { 'content-type': 'multipart/form-data' }, 'bad_request'],
    ['an empty boundary', whole, { 'content-type': 'multipart/form-data; boundary=' }, 'bad_request'],
    ['another boundary', whole, { 'content-type': 'multipart/form-data; boundary=other' }, 'bad_request'],
    ['no end', part(FILE, 'some text'), {}, 'bad_request'],
    ['an end in the middle of its headers', `--${BOUNDARY}\r\ncontent-disp`, {}, 'bad_request'],
    ['no headers', `--${BOUNDARY}\r\n\r\nx\r\n${END}`, {}, 'bad_request'],
    ['nothing in it', '', {}, 'bad_request'],
    ['only an end', END, {}, 'bad_request'],
    ['noise', Buffer.alloc(10_000, 1), {}, 'bad_request'],
    ['another field', Buffer.concat([part('; name="photo"; filename="a"', 'x'), Buffer.from(END)]), {}, 'bad_request'],
    ['a field without a file', Buffer.concat([part('; name="file"', 'x'), Buffer.from(END)]), {}, 'bad_request'],
    [
      'a field beside it',
      Buffer.concat([part(FILE, 'x'), part('; name="a"', 'b'), Buffer.from(END)]),
      {},
      'bad_request',
    ],
    ['two files', Buffer.concat([part(FILE, 'x'), part(FILE, 'y'), Buffer.from(END)]), {}, 'bad_request'],
    ['too long a header', part(`; name="file"; filename="${'x'.repeat(20_000)}"`, 'x'), {}, 'bad_request'],
    ['JSON', '{}', { 'content-type': 'application/json' }, 'not_multipart'],
    ['the bytes alone', PNG, { 'content-type': 'image/png' }, 'not_multipart'],
    ['a length that is too short', whole, { 'content-length': String(whole.length - 8) }, 'bad_request'],
    ['too much, said first', '', { 'content-length': '99999999' }, 'too_large'],
    ['too much', Buffer.concat([part(FILE, 'x'.repeat(10_241)), Buffer.from(END)]), {}, 'too_large'],
  ];
  it.each(REFUSED)('[AT2] with %s is refused, and nothing of it is left', async (_what, body, headers, code) => {
    const { server, id } = await serverWithSession('limits: {upload_mb: 0.009765625}');
    const request = formRequest(id, body, headers);
    const answer = await rawRequest(server.url, { ...request, body });
    expect(answer.json).toMatchObject({ code, error: expect.any(String) });
    // The parser may refuse what is left of the body before its beginning is discarded.
    const left = () => readdir(path.join(server.home, 'attachments')).catch(() => []);
    await until('nothing is left', async () => (await left()).length === 0);
    expect((await server.call('GET', attachmentsOf(id))).json).toEqual({ attachments: [] });
    expect(fatal(server)).toEqual([]);
  });

  it('[AT2] is counted as it comes: one without a length is stopped at the bound, one of exactly that size is taken', async () => {
    const { server, id } = await serverWithSession('limits: {upload_mb: 0.009765625}');
    expect((await upload(server, id, 'a', 'x'.repeat(10_240))).status).toBe(201);
    const body = Buffer.concat([part(FILE, 'x'.repeat(10_241)), Buffer.from(END)]);
    const chunked = `${body.length.toString(16)}\r\n${body.toString('latin1')}\r\n0\r\n\r\n`;
    const answer = await rawRequest(
      server.url,
      formRequest(id, chunked, { 'content-length': null, 'transfer-encoding': 'chunked' }),
    );
    expect(answer).toMatchObject({ status: 413, json: { code: 'too_large' } });
    expect(await filesOf(server, id)).toHaveLength(1);
  });

  it('[AT2] that is larger than the bound is refused in its middle, and its sender gets to hear of it', async () => {
    const { server, id } = await serverWithSession('limits: {upload_mb: 1}');
    const answer = await upload(server, id, 'a', Buffer.alloc(1_100_000, 1));
    expect(answer).toMatchObject({ status: 413, json: { code: 'too_large' } });
    expect(await filesOf(server, id)).toEqual([]);
  });

  it('[AT2] whose sender leaves in its middle leaves nothing, and is no error', async () => {
    const { server, id } = await serverWithSession();
    const { hostname, port, host } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port) });
    const head = `POST ${attachmentsOf(id)} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 5000000\r\n`;
    socket.write(`${head}content-type: multipart/form-data; boundary=${BOUNDARY}\r\n\r\n`);
    socket.write(part(FILE, Buffer.alloc(300_000, 65)));
    await until('the file is being written', async () => (await filesOf(server, id)).length === 1);
    expect((await server.call('GET', attachmentsOf(id))).json).toEqual({ attachments: [] });
    socket.destroy();
    await until('nothing is left', async () => (await readdir(path.join(server.home, 'attachments'))).length === 0);
    expect(server.logs.filter((line) => line.level >= 40)).toEqual([]);
  });

  it('[AT2] is taken in whatever becomes of those beside it, which take their empty folder away', async () => {
    const store = createAttachmentStore(createPaths(await temporaryFolder()));
    const some = async (worker: number): Promise<void> => {
      for (let n = 0; n < 200; n += 1) {
        const id = (worker * 1000 + n).toString(16).padStart(32, '0');
        await (await store.begin('20260101_000000_abcdef', { id, name: 'a.txt' })).discard();
      }
    };
    await Promise.all([0, 1, 2, 3].map(some));
    expect(await store.list('20260101_000000_abcdef')).toEqual([]);
  });

  it('[AT2] that stops is given up, one that goes on slowly is taken, and one that is shorter than it says is not', async () => {
    const server = await startTestServer({ overrides: { requestTimeoutMs: 300 } });
    const id = await server.session();
    const { host, hostname, port } = new URL(server.url);
    const body = part(FILE, 'some text of a slow sender');
    const head = (length: number) =>
      `POST ${attachmentsOf(id)} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\ncontent-length: ${length}\r\n` +
      `content-type: multipart/form-data; boundary=${BOUNDARY}\r\n\r\n`;
    const stopped = await rawExchange(server.url, Buffer.concat([Buffer.from(head(5000)), body]));
    expect(stopped[0]!.json.code).toBe('too_slow');
    const short = await rawExchange(server.url, Buffer.concat([Buffer.from(head(5000)), body, Buffer.from(END)]));
    expect(short[0]!.json.code).toBe('too_slow');
    await until('nothing is left', async () => (await filesOf(server, id)).length === 0);

    // Twice as long as any other body may take, with a byte now and then.
    const all = Buffer.concat([Buffer.from(head(body.length + END.length)), body, Buffer.from(END)]);
    const from = all.length - 8;
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(all.subarray(0, from)));
      let at = from;
      const timer = setInterval(() => {
        socket.write(all.subarray(at, at + 1));
        at += 1;
        if (at === all.length) clearInterval(timer);
      }, 90);
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      socket.on('error', reject).on('close', () => resolve(text));
    });
    expect(answer).toContain('HTTP/1.1 201');
    expect(fatal(server)).toEqual([]);
  });

  it('[AT2] into a session that is not there is refused', async () => {
    const { server } = await serverWithSession();
    const answer = await upload(server, 'nobody', 'a', 'x');
    expect(answer).toMatchObject({ status: 404, json: { code: 'session_not_found' } });
    expect(await readdir(path.join(server.home, 'attachments')).catch(() => [])).toEqual([]);
  });

  it('[AT2] into a session of another program is refused, and into a session of the gateway without a row too', async () => {
    const theirs = await temporaryFolder();
    await writeFile(path.join(theirs, 'theirs.json'), JSON.stringify({ session_id: 'theirs', messages: [] }));
    const server = await startTestServer({ config: `foreign: {sessions_dir: ${theirs}}` });
    const foreign = await upload(server, 'theirs', 'a', Buffer.alloc(2_000_000, 1));
    expect(foreign).toMatchObject({ status: 422, json: { code: 'foreign_home' } });
    expect((await server.call('GET', attachmentsOf('theirs'))).json).toEqual({ attachments: [] });
    const client = await connectGateway(server.url);
    const { result } = await client.request('session.create', {});
    const draft = await upload(server, result.stored_session_id, 'a', 'x');
    expect(draft).toMatchObject({ status: 404, json: { code: 'session_not_found' } });
    expect(await readdir(path.join(server.home, 'attachments')).catch(() => [])).toEqual([]);
  });

  it.skipIf(whyNoSmallDisk() !== null)(
    '[AT2][RE7] on a full disk is refused, and is taken once there is room',
    async () => {
      const disk = smallDisk(8);
      const server = await startTestServer({ home: disk.home });
      const id = await server.session();
      disk.fill(200_000);
      const answer = await upload(server, id, 'big', Buffer.alloc(1_000_000, 1));
      expect(answer).toMatchObject({ status: 503, json: { code: 'disk_full' } });
      expect(await filesOf(server, id)).toEqual([]);
      disk.free();
      expect((await upload(server, id, 'big', Buffer.alloc(1_000_000, 1))).status).toBe(201);
    },
  );
});

describe('a download', () => {
  it('[AT4] is shown in place only where it is an image or text by its bytes, and runs nothing', async () => {
    const { server, id } = await serverWithSession();
    const cases: [name: string, bytes: string | Buffer, type: string, disposition: string][] = [
      ['dot.png', PNG, 'image/png', 'inline'],
      ['page.html', '<script>alert(1)</script>', 'text/plain; charset=utf-8', 'inline'],
      ['x.svg', '<svg onload="alert(1)"/>', 'text/plain; charset=utf-8', 'inline'],
      ['paper.pdf', '%PDF-1.7\n', 'application/octet-stream', 'attachment'],
      ['dot.png', Buffer.concat([Buffer.from([0]), Buffer.from('<script>')]), 'application/octet-stream', 'attachment'],
      ['"quoted"\r\nx: y.pdf', '%PDF-', 'application/octet-stream', 'attachment'],
    ];
    for (const [name, bytes, type, disposition] of cases) {
      const file = `${attachmentsOf(id)}/${await uploaded(server, id, name, bytes)}`;
      for (const method of ['GET', 'HEAD']) {
        const answer = await rawRequest(server.url, { method, address: file });
        expect([method, answer.status]).toEqual([method, 200]);
        expect(answer.headers).toMatchObject({
          'content-type': type,
          'content-length': String(bytes.length),
          'x-content-type-options': 'nosniff',
          'content-security-policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
          'cache-control': 'no-cache',
        });
        expect(answer.headers['content-disposition']).toMatch(
          new RegExp(`^${disposition}; filename="[^"]*"; filename\\*`),
        );
        expect(answer.headers.x).toBeUndefined();
        if (method === 'HEAD') expect(answer.body).toBe('');
      }
      const { etag } = (await rawRequest(server.url, { address: file })).headers;
      const again = await server.call('GET', file, undefined, { 'if-none-match': etag! });
      expect([again.status, again.text]).toEqual([304, '']);
    }
  });

  it('[AT4] of what is not there, of another session, or of no id is a 404, and no path leads elsewhere', async () => {
    const { server, id } = await serverWithSession();
    const other = await server.session();
    const file = await uploaded(server, other, 'a.txt', 'secret');
    await mkdir(path.join(server.home, 'attachments', id), { recursive: true });
    await writeFile(path.join(server.home, 'attachments', id, '.1234.tmp.1.0'), 'half');
    const ids = [file, '..', '%2e%2e%2fstate.db', '..%2F..%2Fconfig.yaml', '.1234.tmp.1.0', 'a%00b', '%2Fetc%2Fpasswd'];
    for (const one of ids) {
      const answer = await rawRequest(server.url, { address: `${attachmentsOf(id)}/${one}` });
      expect([one, [400, 404].includes(answer.status), answer.body.includes('secret')]).toEqual([one, true, false]);
    }
    expect((await server.call('GET', `${attachmentsOf(id)}/${file}`)).json.code).toBe('attachment_not_found');
    expect(fatal(server)).toEqual([]);
  });
});

describe('a prompt', () => {
  it('[AT5] names attachments of its session; they are in its row, its journal, and there after a restart', async () => {
    const scripted = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: scripted.runner } });
    const id = await server.session();
    const file = await uploaded(server, id, 'a.txt', 'words');
    const { admission } = await server.prompt(id, 'look', { attachments: [file], request_id: 'key' });
    const turn = await scripted.turn(0);
    expect(turn.turn.attachments).toEqual([file]);
    expect(await turn.turn.attachment(file)).toMatchObject({ name: 'a.txt', mime: 'text/plain', size: 5 });
    expect(await turn.turn.attachment('0'.repeat(32))).toBeNull();
    turn.complete();
    await until('the turn has ended', async () => (await stateOf(server, id)) === 'idle');
    const journals = path.join(server.home, 'sessions', '_run_journal', id);
    const journal = await readFile(path.join(journals, `${admission.run_id}.jsonl`), 'utf8');
    expect(journal.split('\n')[0]).toContain(`"attachments":["${file}"]`);
    expect((await server.messages(id))[0].attachments).toEqual([file]);
    const exported = await server.call('GET', `/api/sessions/${id}/export`);
    expect(exported.json.messages[0].attachments).toEqual(['a.txt']);
    await server.close();

    const again = await startTestServer({ home: server.home });
    expect((await again.messages(id))[0].attachments).toEqual([file]);
    expect((await again.call('GET', `${attachmentsOf(id)}/${file}`)).text).toBe('words');
    expect((await again.call('GET', attachmentsOf(id))).json.attachments).toHaveLength(1);
  });

  it('[AT5] that names what its session does not have is refused, but a repeat has its receipt all the same', async () => {
    const scripted = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: scripted.runner } });
    const id = await server.session();
    const file = await uploaded(server, id, 'a.txt', 'words');
    const foreign = await uploaded(server, await server.session(), 'b.txt', 'others');
    const ask = (attachments: string[], key: string) =>
      server.call('POST', `/api/sessions/${id}/prompts`, { text: 'look', attachments, request_id: key });
    for (const ids of [[foreign], ['nothing'], ['../x'], [file, '0'.repeat(32)]]) {
      expect(await ask(ids, 'key')).toMatchObject({ status: 422, json: { code: 'unknown_attachment' } });
    }
    const first = await ask([file], 'key');
    expect(first.status).toBe(202);
    const [name] = await filesOf(server, id);
    await rm(path.join(server.home, 'attachments', id, name!));
    expect((await ask([file], 'key')).json.run_id).toBe(first.json.run_id);
    expect((await ask([file], 'other')).json.code).toBe('unknown_attachment');
  });
});

describe('attachments of a session', () => {
  it('[AT6] go with it, also where it never had a prompt', async () => {
    const { server, id } = await serverWithSession();
    await uploaded(server, id, 'a.txt', 'words');
    expect((await server.call('DELETE', `/api/sessions/${id}`)).status).toBe(204);
    expect(await readdir(path.join(server.home, 'attachments'))).toEqual([]);
  });

  it('[AT6] that are being sent while it is deleted are not kept', async () => {
    const { server, id } = await serverWithSession();
    const { hostname, port, host } = new URL(server.url);
    const body = part('; name="file"; filename="a"', Buffer.alloc(200_000, 65));
    const socket = connect({ host: hostname, port: Number(port) });
    socket.write(
      `POST ${attachmentsOf(id)} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: ${body.length + END.length}\r\n` +
        `content-type: multipart/form-data; boundary=${BOUNDARY}\r\nconnection: close\r\n\r\n`,
    );
    socket.write(body);
    await until('the file is being written', async () => (await filesOf(server, id)).length === 1);
    expect((await server.call('DELETE', `/api/sessions/${id}`)).status).toBe(204);
    const answer = new Promise<string>((resolve) => socket.on('data', (chunk) => resolve(String(chunk))));
    socket.write(END);
    expect(await answer).toContain('session_not_found');
    await until('nothing is left', async () => (await readdir(path.join(server.home, 'attachments'))).length === 0);
  });

  it('[AT6] of a session without files leave no trace of a deletion behind', async () => {
    const { server, id } = await serverWithSession();
    expect((await server.call('DELETE', `/api/sessions/${id}`)).status).toBe(204);
    expect(await readdir(server.home)).not.toContain('attachments');
  });

  it('[AT6] of a fork are its own: they stay when the original goes', async () => {
    const server = await startTestServer();
    const id = await server.session();
    const file = await uploaded(server, id, 'a.txt', 'words');
    await uploaded(server, id, 'b.txt', 'never named');
    await server.call('POST', `/api/sessions/${id}/prompts?wait=1`, { text: 'look', attachments: [file] });
    const fork = (await server.call('POST', `/api/sessions/${id}/fork`, {})).json.session.session_id;
    expect((await server.call('DELETE', `/api/sessions/${id}`)).status).toBe(204);
    expect((await server.messages(fork))[0].attachments).toEqual([file]);
    expect((await server.call('GET', `${attachmentsOf(fork)}/${file}`)).text).toBe('words');
    expect((await server.call('GET', attachmentsOf(fork))).json.attachments).toHaveLength(1);
    const retried = await server.call('POST', `/api/sessions/${fork}/retry`, {});
    expect(retried.status).toBe(202);
  });
});
