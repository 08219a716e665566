/** Real reverse proxies in front of a server, with the files of deploy/: only names, ports and certificates are changed. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from './home.ts';
import { until } from './until.ts';

export type ProxyName = 'nginx' | 'caddy';

const PLACES = ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin', '/sbin'];

/** The path of a program, or undefined where it is not installed. */
export const programAt = (name: string): string | undefined =>
  PLACES.map((folder) => path.join(folder, name)).find((file) => existsSync(file));

const DEPLOY = path.join(import.meta.dirname, '../../deploy');
/** The name in the files of deploy/; here it is this machine. */
const NAME = 'chat.example.org';

export interface Proxy {
  /** `https://127.0.0.1:<port>`. */
  url: string;
  port: number;
}

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** A certificate for this machine that nobody has signed. */
async function makeCertificate(folder: string): Promise<{ cert: string; key: string }> {
  const [cert, key] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')];
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'].concat([
      '-keyout',
      key,
      '-out',
      cert,
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=IP:127.0.0.1',
    ]),
    { stdio: 'ignore' },
  );
  return { cert, key };
}

interface Behind {
  serverPort: number;
  basePath: string;
  port: number;
  folder: string;
  cert: string;
  key: string;
}

const replaced = (text: string, changes: readonly [RegExp | string, string][]): string =>
  changes.reduce((so, [from, to]) => {
    const after = so.replaceAll(from, to);
    if (after === so) throw new Error(`${from} is not in the file of deploy/ any more`);
    return after;
  }, text);

async function nginxArguments({ serverPort, basePath, port, folder, cert, key }: Behind): Promise<string[]> {
  const site = replaced(await readFile(path.join(DEPLOY, 'nginx.conf'), 'utf8'), [
    ['127.0.0.1:8787', `127.0.0.1:${serverPort}`],
    [/listen 80;/g, `listen 127.0.0.1:${await freePort()};`],
    ['listen 443 ssl http2', `listen 127.0.0.1:${port} ssl`],
    [/server_name chat\.example\.org/g, 'server_name localhost'],
    [/ssl_certificate {5}\S+;/g, `ssl_certificate ${cert};`],
    [/ssl_certificate_key \S+;/g, `ssl_certificate_key ${key};`],
    ...(basePath ? [['location / {', `location ${basePath}/ {`] as [string, string]] : []),
  ]);
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const file = path.join(folder, 'nginx.conf');
  await writeFile(
    file,
    `pid ${folder}/nginx.pid;\nerror_log stderr;\ndaemon off;\nworker_processes 1;\nevents {}\nhttp {\n  access_log off;\n` +
      // As distributions have it: the site must take streams out of this by itself.
      `  gzip on;\n  gzip_types *;\n${kinds.map((kind) => `  ${kind}_temp_path ${folder}/${kind};\n`).join('')}${site}\n}\n`,
  );
  return ['-p', folder, '-c', file, '-e', 'stderr'];
}

async function caddyArguments({ serverPort, basePath, port, folder, cert, key }: Behind): Promise<string[]> {
  const site = replaced(await readFile(path.join(DEPLOY, 'Caddyfile'), 'utf8'), [
    [`${NAME} {`, `https://127.0.0.1:${port} {\n\ttls ${cert} ${key}\n\tbind 127.0.0.1`],
    ['reverse_proxy 127.0.0.1:8787', `reverse_proxy ${basePath ? `${basePath}/* ` : ''}127.0.0.1:${serverPort}`],
  ]);
  const file = path.join(folder, 'Caddyfile');
  const global = `{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n\tstorage file_system ${folder}/caddy\n}\n`;
  await writeFile(file, global + site);
  return ['run', '--config', file, '--adapter', 'caddyfile'];
}

/** Starts a proxy in front of a server, and waits until it answers. It ends with the test. */
export async function startProxy(name: ProxyName, serverPort: number, basePath: string): Promise<Proxy> {
  const folder = await temporaryFolder();
  await mkdir(folder, { recursive: true });
  const port = await freePort();
  const behind = { serverPort, basePath, port, folder, ...(await makeCertificate(folder)) };
  const args = await (name === 'nginx' ? nginxArguments(behind) : caddyArguments(behind));
  const child = spawn(programAt(name)!, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { HOME: folder } });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
  });
  let hasEnded = false;
  const ended = new Promise<void>((resolve) =>
    child.on('exit', () => {
      hasEnded = true;
      resolve();
    }),
  );
  onTestFinished(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  const url = `https://127.0.0.1:${port}`;
  await until(`${name} answers`, async () => {
    if (hasEnded) throw new Error(`${name} ended:\n${said}`);
    return (await through(`${url}${basePath}/health`).catch(() => null))?.status === 200;
  });
  return { url, port };
}

export interface Through {
  method?: string;
  body?: string | Buffer;
  headers?: Record<string, string>;
  /** The address of this machine that it comes from. */
  from?: string;
}

/** One request over TLS, whoever signed the certificate. */
export function through(url: string, { method = 'GET', body, headers = {}, from }: Through = {}) {
  return new Promise<{ status: number; headers: Record<string, string | string[] | undefined>; text: string }>(
    (resolve, reject) => {
      const request = https.request(
        url,
        { method, headers, agent: false, rejectUnauthorized: false, ...(from ? { localAddress: from } : {}) },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
          });
          response.on('error', reject);
        },
      );
      request.on('error', reject).end(body);
    },
  );
}
