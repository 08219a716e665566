/** HTTP by hand over a TCP socket: what no client library would send, and answers as they come. */
import { connect } from 'node:net';

export interface RawAnswer {
  status: number;
  /** Names in small letters. */
  headers: Record<string, string>;
  body: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server says.
  json: any;
}

/** The answers in what a server sent on one connection; bodies by their Content-Length, the last one to the end. */
export function parseAnswers(bytes: Buffer): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n');
    if (end < 0) throw new Error(`no whole head: ${rest.toString('utf8').slice(0, 200)}`);
    const [first = '', ...lines] = rest.subarray(0, end).toString('latin1').split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const status = Number(first.split(' ')[1]);
    const length = status === 304 || status === 204 ? 0 : Number(headers['content-length'] ?? rest.length - end - 4);
    const body = rest.subarray(end + 4, end + 4 + length).toString('utf8');
    rest = rest.subarray(end + 4 + length);
    const isJson = headers['content-type']?.includes('json') ?? false;
    answers.push({ status, headers, body, json: isJson && body ? JSON.parse(body) : null });
  }
  return answers;
}

/**
 * Sends bytes as they are and reads until the server closes the connection.
 * @param limitMs when the server does not close it, the exchange fails
 */
export function rawExchange(url: string, bytes: string | Buffer, limitMs = 10_000): Promise<RawAnswer[]> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const received: Buffer[] = [];
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(bytes));
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`the server left the connection open; it sent: ${Buffer.concat(received).toString('utf8')}`));
    }, limitMs);
    socket.on('data', (chunk) => received.push(chunk));
    // A server that refuses early may reset what we still send: what it said counts.
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(timer);
      try {
        resolve(parseAnswers(Buffer.concat(received)));
      } catch (error) {
        reject(error);
      }
    });
  });
}

export interface RawRequest {
  method?: string;
  address: string;
  /** In this order and spelling; `null` leaves out a header that would be there. */
  headers?: Record<string, string | null>;
  body?: string | Buffer;
}

/** One request with exactly these headers, and its answer. */
export async function rawRequest(
  url: string,
  { method = 'GET', address, headers = {}, body = '' }: RawRequest,
): Promise<RawAnswer> {
  const length = String(Buffer.byteLength(body));
  const all: Record<string, string | null> = {
    host: new URL(url).host,
    connection: 'close',
    ...(length === '0' ? {} : { 'content-type': 'application/json', 'content-length': length }),
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]));
  const head = Buffer.from(`${method} ${address} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  const [answer] = await rawExchange(url, Buffer.concat([head, Buffer.from(body)]));
  if (!answer) throw new Error(`no answer to ${method} ${address}`);
  return answer;
}
