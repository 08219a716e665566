/** A reader of server-sent events over a real socket. */
import http from 'node:http';
import https from 'node:https';

export interface SseEvent {
  id: string | null;
  type: string;
  /** The raw `data:` text. */
  data: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server says.
  json: any;
}

export interface SseReader {
  status: number;
  headers: http.IncomingHttpHeaders;
  /** Everything received so far, heartbeats left out. */
  events: SseEvent[];
  /** The whole text as received. */
  text(): string;
  /** Resolves with the first event (received already or later) that `wanted` accepts. */
  next(wanted: (event: SseEvent) => boolean): Promise<SseEvent>;
  /** Resolves when the server has ended the stream. */
  ended: Promise<void>;
  /** Drops the connection without a word. */
  drop(): void;
  /** Stops and starts reading from the socket. */
  pause(): void;
  resume(): void;
}

export interface SseOptions {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  limitMs?: number;
  /** The address of this machine that it comes from. */
  from?: string;
}

/** Parses a whole stream text into events. */
export function parseSse(text: string): SseEvent[] {
  const events: SseEvent[] = [];
  for (const frame of text.split('\n\n').slice(0, -1)) {
    let id: string | null = null;
    let type = 'message';
    const data: string[] = [];
    for (const line of frame.split('\n')) {
      if (line.startsWith('id: ')) id = line.slice(4);
      else if (line.startsWith('event: ')) type = line.slice(7);
      else if (line.startsWith('data: ')) data.push(line.slice(6));
    }
    if (data.length === 0) continue;
    events.push({ id, type, data: data.join('\n'), json: JSON.parse(data.join('\n')) });
  }
  return events;
}

/** Opens a stream. Resolves when the headers are there. */
export function openSse(url: string, options: SseOptions = {}): Promise<SseReader> {
  const { method = 'GET', body, headers = {}, limitMs = 30_000, from } = options;
  return new Promise((resolve, reject) => {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const { request: send } = url.startsWith('https:') ? https : http;
    const request = send(url, {
      method,
      agent: false,
      // A certificate that a test has made.
      rejectUnauthorized: false,
      ...(from === undefined ? {} : { localAddress: from }),
      headers: {
        accept: 'text/event-stream',
        ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
    });
    request.on('error', reject);
    request.on('response', (response) => {
      const events: SseEvent[] = [];
      const waiting = new Set<() => void>();
      const received: string[] = [];
      let rest: string[] = [];
      let last = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        received.push(chunk);
        rest.push(chunk);
        const border = `${last}${chunk}`;
        last = chunk.slice(-1);
        // Frames may be many megabytes: joined only when one has ended.
        if (!border.includes('\n\n')) return;
        const whole = rest.join('');
        const end = whole.lastIndexOf('\n\n');
        events.push(...parseSse(whole.slice(0, end + 2)).filter((event) => event.type !== 'heartbeat'));
        rest = [whole.slice(end + 2)];
        for (const look of waiting) look();
      });
      const ended = new Promise<void>((done) => response.on('close', () => done()));
      response.on('error', () => {});
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        events,
        text: () => received.join(''),
        ended,
        next(wanted) {
          return new Promise((found, failed) => {
            const timer = setTimeout(() => {
              waiting.delete(look);
              failed(new Error(`no such event; received: ${events.map((event) => event.type).join(' ')}`));
            }, limitMs);
            const look = (): void => {
              const event = events.find(wanted);
              if (!event) return;
              clearTimeout(timer);
              waiting.delete(look);
              found(event);
            };
            waiting.add(look);
            look();
          });
        },
        drop: () => request.destroy(),
        pause: () => response.pause(),
        resume: () => response.resume(),
      });
    });
    request.end(payload);
  });
}
