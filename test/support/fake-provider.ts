/**
 * A provider on a real socket, scripted request by request: POST /v1/chat/completions, for Anthropic's protocol
 * /v1/messages, for OpenAI's newer one /v1/responses; and GET /v1/models. Requests without tools are for titles and summaries: they are counted and scripted
 * apart. Unscripted requests are answered by what their prompt says (fake-provider-inline). It is strict: a conversation that the
 * pickiest provider would refuse gets a 400, and is listed in `violations`.
 *
 * Also a program: `node --import tsx test/support/fake-provider.ts --port 0` prints `{"port":n}` and serves.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { type AnthropicBody, anthropicViolations, chatBodyOf } from './fake-provider-anthropic.ts';
import { anthropicDialect, type Dialect, openAiDialect } from './fake-provider-dialects.ts';
import { imageFaults, imagesOf, type SentImage } from './fake-provider-images.ts';
import { inlineSteps } from './fake-provider-inline.ts';
import {
  chatBodyOfResponses,
  type ResponsesBody,
  responsesDialect,
  responsesViolations,
} from './fake-provider-responses.ts';
import { createHold, type Hold, playSteps, type Step } from './fake-provider-steps.ts';
import { type ChatBody, violationsOf } from './fake-provider-strict.ts';

export type { Hold, Step } from './fake-provider-steps.ts';
export type { ChatBody, ChatMessage } from './fake-provider-strict.ts';

export interface FakeProviderOptions {
  port?: number;
  /** Names of its models. Default: `fake-model`. */
  models?: string[];
  /** Whether bad conversations are refused. Default: true. */
  strict?: boolean;
  /** The key that requests must bear; none by default. */
  apiKey?: string;
  /** Answers Ollama's `/api/tags` with these names as well. */
  ollama?: string[];
}

/** One request for a completion, as it came. */
export interface RecordedRequest {
  /** A request of the messages protocol is brought into this shape. */
  body: ChatBody;
  /** As it came. */
  raw: unknown;
  /** The images in it. */
  images: SentImage[];
  headers: IncomingHttpHeaders;
  /** The client went away before the answer was complete. */
  aborted: boolean;
  /** Resolves when the answer is complete or its connection gone, with `aborted`. */
  ended: Promise<boolean>;
  isOver: boolean;
}

/** A refusal of a request. */
export interface Refusal {
  status: number;
  body: unknown;
}

/** An answer to GET /v1/models in place of the list. */
export type ModelsAnswer = { status: number; body: unknown } | 'hang';

export interface FakeProvider {
  port: number;
  /** Without a slash at the end, ending in `/v1`. */
  baseUrl: string;
  /** Requests for a completion, in the order of their coming; refused ones too. */
  requests: RecordedRequest[];
  /** Requests for titles. */
  titles: RecordedRequest[];
  /** Requests for summaries. */
  summaries: RecordedRequest[];
  /** Faults that the strict check found. */
  violations: string[];
  /** How many lists of models were asked for. */
  modelRequests: number;
  /** Scripts the next request that `match` takes; scripts are used once, in the order in which they were set. */
  script(match: (body: ChatBody) => boolean, steps: Step[]): void;
  /** Scripts the next request, whatever it is. */
  next(...steps: Step[]): void;
  /** Scripts the next request for a title; `A fitting title` is the answer otherwise. */
  nextTitle(...steps: Step[]): void;
  /** Scripts the next request for a summary; what `summarise` says is the answer otherwise. */
  nextSummary(...steps: Step[]): void;
  /** The answer to a request for a summary; `Summary number <n>.` unless a test says otherwise. */
  summarise: (body: ChatBody) => string;
  /** Paths of the lists of models that were asked for, with their headers. */
  lists: { path: string; headers: IncomingHttpHeaders }[];
  /** A point to wait at, to be put into a script. */
  hold(): Hold;
  /** What a request with images is answered from now on; null takes them. */
  refuseImages(how: ((images: SentImage[]) => Refusal | null) | null): void;
  answerModels(answer: ModelsAnswer | null): void;
  /** Waits until that many requests have come. */
  waitForRequests(count: number): Promise<RecordedRequest>;
  /** How many answers are still being given. */
  running(): number;
  close(): Promise<void>;
}

/** Starts a provider on 127.0.0.1. */
export async function startFakeProvider(options: FakeProviderOptions = {}): Promise<FakeProvider> {
  const scripts: { match: (body: ChatBody) => boolean; steps: Step[] }[] = [];
  const waiters: { count: number; resolve: (request: RecordedRequest) => void }[] = [];
  const titleScripts: Step[][] = [];
  const summaryScripts: Step[][] = [];
  let imageRefusal: ((images: SentImage[]) => Refusal | null) | null = null;
  let modelsAnswer: ModelsAnswer | null = null;

  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://fake').pathname;
    const isAllowed = !options.apiKey || keyOf(request) === options.apiKey;
    const protocol = PROTOCOLS[path];
    if (request.method === 'POST' && protocol) {
      if (!isAllowed) return refuseKey(request, response);
      return void complete(request, response, protocol);
    }
    if (request.method === 'GET' && path === '/v1/models') {
      provider.modelRequests += 1;
      provider.lists.push({ path: request.url ?? '', headers: request.headers });
      if (!isAllowed) return refuseKey(request, response);
      if (modelsAnswer === 'hang') return;
      if (modelsAnswer) return json(response, modelsAnswer.status, modelsAnswer.body);
      const data = (options.models ?? ['fake-model']).map((id) => ({
        id,
        object: 'model',
        created: 1,
        owned_by: 'fake',
      }));
      return json(response, 200, { object: 'list', data });
    }
    if (request.method === 'GET' && path === '/api/tags' && options.ollama) {
      return json(response, 200, { models: options.ollama.map((name) => ({ name, model: name, size: 1 })) });
    }
    json(response, 404, { error: { message: 'not found', type: 'invalid_request_error' } });
  });

  async function complete(request: IncomingMessage, response: ServerResponse, protocol: Protocol): Promise<void> {
    let isGone = false;
    let ended = (_aborted: boolean): void => {};
    const gone = new Promise<void>((resolve) => {
      response.on('close', () => {
        isGone = true;
        resolve();
      });
    });
    const raw: unknown = JSON.parse(await readText(request));
    const body = protocol.read(raw);
    const recorded: RecordedRequest = {
      body,
      raw,
      images: imagesOf(raw),
      headers: request.headers,
      aborted: false,
      isOver: false,
      ended: new Promise((resolve) => {
        ended = resolve;
      }),
    };
    void gone.then(() => {
      recorded.aborted = !response.writableFinished;
      recorded.isOver = true;
      ended(recorded.aborted);
    });
    const told = JSON.stringify(protocol.told(raw)) ?? '';
    const isSummary = !body.tools && told.includes('You write the summary');
    const isTitle = !body.tools && !isSummary;
    (isTitle ? provider.titles : isSummary ? provider.summaries : provider.requests).push(recorded);
    for (const waiter of waiters) if (provider.requests.length >= waiter.count) waiter.resolve(recorded);

    const faults = protocol.faults(raw, request.headers);
    faults.push(...imageFaults(raw));
    provider.violations.push(...faults);
    if (faults.length > 0 && options.strict !== false) {
      const error = { message: faults.join('; '), type: 'invalid_request_error' };
      return json(response, 400, { type: 'error', error });
    }
    const refused = recorded.images.length > 0 ? imageRefusal?.(recorded.images) : null;
    if (refused) return json(response, refused.status, refused.body);
    const dialect = protocol.dialect(body, String(provider.requests.length));
    const play = (steps: Step[]) => playSteps(steps, { dialect, response, gone, isGone: () => isGone });
    if (isTitle && body.stream) return play(titleScripts.shift() ?? [{ text: ['A fitting', ' title'] }]);
    if (isSummary) return play(summaryScripts.shift() ?? [{ text: provider.summarise(body) }]);
    const at = scripts.findIndex(({ match }) => match(body));
    const steps = at < 0 ? inlineSteps(body) : scripts.splice(at, 1)[0]!.steps;
    if (body.stream) return play(steps);
    const text = steps.flatMap((step) => ('text' in step ? step.text : [])).join('');
    const status = steps.find((step) => 'status' in step);
    if (status) return json(response, status.status, status.body);
    const message = { role: 'assistant', content: text };
    json(response, 200, {
      id: 'chatcmpl-fake',
      object: 'chat.completion',
      created: 1,
      model: body.model,
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: 7, total_tokens: 17 },
    });
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const provider: FakeProvider = {
    port,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests: [],
    titles: [],
    summaries: [],
    lists: [],
    violations: [],
    modelRequests: 0,
    script: (match, steps) => void scripts.push({ match, steps }),
    next: (...steps) => void scripts.push({ match: () => true, steps }),
    nextTitle: (...steps) => void titleScripts.push(steps),
    summarise: () => `Summary number ${provider.summaries.length}.`,
    nextSummary: (...steps) => void summaryScripts.push(steps),
    hold: createHold,
    refuseImages: (how) => {
      imageRefusal = how;
    },
    answerModels: (answer) => {
      modelsAnswer = answer;
    },
    waitForRequests: (count) =>
      new Promise((resolve) => {
        const last = provider.requests[count - 1];
        if (last) resolve(last);
        else waiters.push({ count, resolve });
      }),
    running: () => provider.requests.filter(({ isOver }) => !isOver).length,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return provider;
}

/** One of the protocols that are spoken here. */
interface Protocol {
  /** A request in the shape of chat completions. */
  read(raw: unknown): ChatBody;
  /** Where it says what the model is to be. */
  told(raw: unknown): unknown;
  faults(raw: unknown, headers: IncomingHttpHeaders): string[];
  /** @param id parts the answers of one provider */
  dialect(body: ChatBody, id: string): Dialect;
}

const PROTOCOLS: Record<string, Protocol> = {
  '/v1/chat/completions': {
    read: (raw) => raw as ChatBody,
    told: (raw) => (raw as ChatBody).messages?.[0],
    faults: (raw) => violationsOf(raw as ChatBody),
    dialect: openAiDialect,
  },
  '/v1/messages': {
    read: (raw) => chatBodyOf(raw as AnthropicBody),
    told: (raw) => (raw as AnthropicBody).system,
    faults: (raw, headers) => anthropicViolations(raw as AnthropicBody, headers),
    dialect: (body, id) => anthropicDialect(body.model, `msg_${id}`),
  },
  '/v1/responses': {
    read: (raw) => chatBodyOfResponses(raw as ResponsesBody),
    told: () => '',
    faults: (raw) => responsesViolations(raw as ResponsesBody),
    dialect: (_body, id) => responsesDialect(`resp_${id}`),
  },
};

const keyOf = ({ headers }: IncomingMessage): string =>
  String(headers['x-api-key'] ?? headers.authorization?.replace('Bearer ', '') ?? '');

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function refuseKey(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  const message = `Incorrect API key provided: ${keyOf(request) || 'none'}.`;
  json(response, 401, { error: { message, type: 'invalid_request_error', code: 'invalid_api_key' } });
}

if (process.argv[1] && import.meta.url === new URL(`file://${process.argv[1]}`).href) {
  const { values } = parseArgs({
    options: { port: { type: 'string', default: '0' }, model: { type: 'string', multiple: true } },
  });
  const provider = await startFakeProvider({
    port: Number(values.port),
    ...(values.model ? { models: values.model } : {}),
  });
  process.stdout.write(`${JSON.stringify({ port: provider.port })}\n`);
}
