/** What reaches a model of the files that a session was given: over a strict provider, in both protocols. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { sniffType } from '../../server/core/file-kinds.ts';
import type { Message } from '../../server/core/terms.ts';
import { IMAGE_BYTES, MAX_IMAGES, TEXT_BYTES } from '../../server/runners/model/attached.ts';
import type { ProviderConfig } from '../../server/runners/provider.ts';
import type { Turn, TurnAttachment } from '../../server/runners/runner.ts';
import { type FakeProvider, type RecordedRequest, startFakeProvider } from '../support/fake-provider.ts';
import { startTestServer } from '../support/test-server.ts';
import { PNG, uploaded } from '../support/uploads.ts';
import { drive, modelRunnerOn, providerAt, turnOf } from './model-bench.ts';

/** A text that a file of this size may begin with, and a picture of any size. */
const png = (bytes: number): Buffer => Buffer.concat([PNG, Buffer.alloc(Math.max(0, bytes - PNG.length))]);

const FILES: Record<string, [name: string, bytes: Buffer]> = {
  dot: ['dot.png', PNG],
  other: ['other.png', png(100)],
  text: ['notes.txt', Buffer.from('one\ntwo\n')],
  disguised: ['photo.jpeg', Buffer.from('words, no picture')],
  empty: ['empty.png', Buffer.alloc(0)],
  huge: ['huge.png', png(6_000_000)],
  brim: ['brim.png', png(IMAGE_BYTES)],
  long: ['long.txt', Buffer.from('é'.repeat(TEXT_BYTES))],
  late: ['late.txt', Buffer.concat([Buffer.alloc(5000, 97), Buffer.from([0])])],
  paper: ['paper.pdf', Buffer.from('%PDF-1.7')],
};

async function attachment(id: string): Promise<TurnAttachment | null> {
  const [name, bytes] = FILES[id] ?? (id.startsWith('many') ? [`${id}.png`, PNG] : []);
  if (name === undefined || bytes === undefined) return null;
  return {
    name,
    mime: sniffType(bytes.subarray(0, 4096)),
    size: bytes.length,
    read: async (n) => bytes.subarray(0, n),
  };
}

const asked = (text: string, attachments: string[], change: Partial<Turn> = {}): Turn =>
  turnOf(text, { attachments, attachment, ...change });

async function strictProvider(): Promise<FakeProvider> {
  const provider = await startFakeProvider();
  onTestFinished(async () => {
    await provider.close();
    expect(provider.violations).toEqual([]);
  });
  return provider;
}

const NO_VISION = () => ({
  status: 400,
  body: { error: { message: 'This model does not support image input.', type: 'invalid_request_error' } },
});

/** The text of the last message of a request. */
function lastText({ body }: RecordedRequest): string {
  const content = body.messages.at(-1)?.content;
  if (typeof content === 'string') return content;
  return (content as { text?: string }[]).map((part) => part.text ?? '').join('\n');
}

const row = (role: Message['role'], content: string, attachments?: string[]): Message => ({
  id: `${role}-${content}`,
  role,
  content,
  timestamp: 1,
  ...(attachments ? { attachments } : {}),
});

const statusOf = (events: Awaited<ReturnType<typeof drive>>['events']) =>
  events.flatMap((event) => (event.type === 'status' ? [event.payload.kind] : []));

const KINDS: [ProviderConfig['kind']][] = [['custom'], ['openai'], ['anthropic']];

describe.each(KINDS)('to %s', (kind) => {
  it('[AT7] an image goes as an image, a text as text, with those of earlier turns', async () => {
    const provider = await strictProvider();
    const runner = modelRunnerOn(providerAt(provider.baseUrl, { kind }));
    const history = [row('user', 'first', ['other']), row('assistant', 'seen')];
    const { end } = await drive(runner, asked('and these?', ['dot', 'text'], { history }));
    expect(end).toEqual({ kind: 'completed' });
    const [request] = provider.requests;
    expect(request!.images).toEqual([
      { mediaType: 'image/png', bytes: png(100) },
      { mediaType: 'image/png', bytes: PNG },
    ]);
    expect(lastText(request!)).toContain('[attached file "notes.txt"]\none\ntwo');
    expect(lastText(request!)).toMatch(/and these\?$/);
  });

  it('[AT8] one that refuses every request with an image is asked once more without, and never sent one again', async () => {
    const provider = await strictProvider();
    provider.refuseImages(NO_VISION);
    const runner = modelRunnerOn(providerAt(provider.baseUrl, { kind }), { maxRetries: 2 });
    const { events, end } = await drive(runner, asked('look', ['dot']));
    expect([end, statusOf(events)]).toEqual([{ kind: 'completed' }, ['images']]);
    expect(provider.requests.map(({ images }) => images.length)).toEqual([1, 0]);
    expect(lastText(provider.requests[1]!)).toContain('"dot.png", image/png: not shown');

    const history = [row('user', 'look', ['dot']), row('assistant', 'no')];
    const next = await drive(runner, asked('and this?', ['other'], { history }));
    expect([next.end, statusOf(next.events)]).toEqual([{ kind: 'completed' }, []]);
    expect(provider.requests.map(({ images }) => images.length)).toEqual([1, 0, 0]);
  });
});

describe('a file', () => {
  const BY_NAME: [id: string, told: RegExp][] = [
    ['empty', /"empty\.png", application\/octet-stream, 0 bytes: it is empty/],
    ['huge', /"huge\.png", image\/png, 6000000 bytes: not shown, it is larger than 5 MB/],
    ['paper', /"paper\.pdf", application\/pdf, 8 bytes: only its name/],
    ['late', /"late\.txt", text\/plain, 5001 bytes: only its name/],
    ['gone', /"gone": it is not there any more/],
  ];
  it.each(BY_NAME)('[AT7] %s goes by its name, with why', async (id, told) => {
    const provider = await strictProvider();
    await drive(modelRunnerOn(providerAt(provider.baseUrl)), asked('look', [id]));
    expect(provider.requests[0]!.images).toEqual([]);
    expect(lastText(provider.requests[0]!)).toMatch(told);
  });

  it('[AT7] that the disk cannot give, or that goes while it is read, goes by its name; later turns are not harmed', async () => {
    const provider = await strictProvider();
    const broken = async (id: string): Promise<TurnAttachment | null> => {
      if (id === 'unreadable') throw Object.assign(new Error('EIO: i/o error'), { errno: -5, code: 'EIO' });
      const file = await attachment('dot');
      return file && { ...file, read: async () => Buffer.alloc(0) };
    };
    const turn = asked('look', ['unreadable', 'vanishing'], { attachment: broken });
    expect((await drive(modelRunnerOn(providerAt(provider.baseUrl)), turn)).end).toEqual({ kind: 'completed' });
    expect(provider.requests[0]!.images).toEqual([]);
    expect(lastText(provider.requests[0]!)).toContain('"unreadable": it cannot be read (EIO)');
    expect(lastText(provider.requests[0]!)).toContain('"dot.png": it is not there any more');
  });

  it('[AT7] is what its bytes say: a text named .jpeg is text', async () => {
    const provider = await strictProvider();
    await drive(modelRunnerOn(providerAt(provider.baseUrl)), asked('look', ['disguised']));
    expect(provider.requests[0]!.images).toEqual([]);
    expect(lastText(provider.requests[0]!)).toContain('[attached file "photo.jpeg"]\nwords, no picture');
  });

  it('[AT7] of the most bytes goes as an image; a longer text is cut, which is said', async () => {
    const provider = await strictProvider();
    await drive(modelRunnerOn(providerAt(provider.baseUrl)), asked('look', ['brim', 'long']));
    expect(provider.requests[0]!.images.map(({ bytes }) => bytes.length)).toEqual([IMAGE_BYTES]);
    const told = lastText(provider.requests[0]!);
    expect(told).toContain(`"long.txt", cut: its first ${TEXT_BYTES} of ${2 * TEXT_BYTES} bytes]\néé`);
    expect(told.match(/é/g)).toHaveLength(TEXT_BYTES / 2);
  });

  it('[AT7] of too many images, the newest are shown', async () => {
    const provider = await strictProvider();
    const many = Array.from({ length: MAX_IMAGES + 2 }, (_, n) => `many${n}`);
    const history = [row('user', 'first', many.slice(0, 2)), row('assistant', 'seen')];
    await drive(modelRunnerOn(providerAt(provider.baseUrl)), asked('all', many.slice(2), { history }));
    expect(provider.requests[0]!.images).toHaveLength(MAX_IMAGES);
    expect(JSON.stringify(provider.requests[0]!.body.messages[1])).toContain('many0.png');
  });

  it('[AT7] of too many bytes in all: the newest images and texts have room, the others go by their names', async () => {
    const provider = await strictProvider();
    const large = async (id: string): Promise<TurnAttachment> => {
      const bytes = id.startsWith('image') ? png(4_500_000) : Buffer.alloc(70_000, 97);
      const mime = sniffType(bytes.subarray(0, 4096));
      return { name: id, mime, size: bytes.length, read: async (n) => bytes.subarray(0, n) };
    };
    const ids = Array.from({ length: 5 }, (_, n) => [`image${n}`, `text${n}`]).flat();
    await drive(modelRunnerOn(providerAt(provider.baseUrl)), asked('all', ids, { attachment: large }));
    expect(provider.requests[0]!.images).toHaveLength(3);
    const told = lastText(provider.requests[0]!);
    expect(told.match(/"image[01]", image\/png, 4500000 bytes: not shown, there are newer images/g)).toHaveLength(2);
    expect(told.match(/"text[1-4]", cut: its first 65536 of 70000 bytes/g)).toHaveLength(4);
    expect(told).toContain('"text0", text/plain, 70000 bytes: left out, there are newer files');
  });

  it('[AT7] that is an image is not sent to a provider that takes none, as its configuration says', async () => {
    const provider = await strictProvider();
    await drive(modelRunnerOn(providerAt(provider.baseUrl, { images: false })), asked('look', ['dot']));
    expect(provider.requests.map(({ images }) => images.length)).toEqual([0]);
  });
});

describe('a refused image', () => {
  it('[AT8] costs no other turn: one that the same model took before is still shown', async () => {
    const provider = await strictProvider();
    provider.refuseImages((images) => (images.some(({ bytes }) => bytes.length === 100) ? NO_VISION() : null));
    const runner = modelRunnerOn(providerAt(provider.baseUrl));
    await drive(runner, asked('look', ['dot']));
    const history = [row('user', 'look', ['dot']), row('assistant', 'seen')];
    await drive(runner, asked('and this?', ['other'], { history }));
    expect(provider.requests.map(({ images }) => images.length)).toEqual([1, 2, 0]);
    const later = [...history, row('user', 'and this?', ['other']), row('assistant', 'no')];
    const { end } = await drive(runner, asked('again', [], { history: later }));
    expect(end).toEqual({ kind: 'completed' });
    expect(provider.requests[3]!.images).toEqual([{ mediaType: 'image/png', bytes: PNG }]);
  });

  const OTHER: [what: string, status: number, body: unknown, requests: number[]][] = [
    ['a server error that names images', 500, { error: { message: 'image input is not supported' } }, [1, 0]],
    ['no endpoint for them', 404, { error: { message: 'No endpoints found that support image input' } }, [1, 0]],
    ['too large a request', 413, { error: { message: 'Request too large' } }, [1, 0]],
    ['a wrong key', 401, { error: { message: 'Incorrect API key', code: 'invalid_api_key' } }, [1]],
    ['a full account', 429, { error: { message: 'no', code: 'insufficient_quota' } }, [1]],
  ];
  it.each(OTHER)('[AT8] is told from other trouble: %s', async (_what, status, body, requests) => {
    const provider = await strictProvider();
    provider.refuseImages(() => ({ status, body }));
    await drive(modelRunnerOn(providerAt(provider.baseUrl)), asked('look', ['dot']));
    expect(provider.requests.map(({ images }) => images.length)).toEqual(requests);
  });

  it('[AT8] is not blamed where the request fails without it too', async () => {
    const provider = await strictProvider();
    const failure = { status: 400, body: { error: { message: 'bad', type: 'invalid_request_error' } } };
    provider.refuseImages(() => failure);
    provider.next(failure);
    const runner = modelRunnerOn(providerAt(provider.baseUrl));
    expect((await drive(runner, asked('look', ['dot']))).end).toMatchObject({ kind: 'failed' });
    provider.refuseImages(null);
    await drive(runner, asked('look', ['dot']));
    expect(provider.requests.map(({ images }) => images.length)).toEqual([1, 0, 1]);
  });

  it('[AT8] stays out of the steps behind it, and what a person says meanwhile brings its own files', async () => {
    const provider = await strictProvider();
    provider.refuseImages(NO_VISION);
    let said = [{ text: 'use this as well', attachments: ['other', 'text'] }];
    const steer = async () => {
      const now = said;
      said = [];
      return now;
    };
    const turn = asked('script:tool=list_files,args={}', ['dot'], { steer });
    expect((await drive(modelRunnerOn(providerAt(provider.baseUrl)), turn)).end).toEqual({ kind: 'completed' });
    expect(provider.requests.map(({ images }) => images.length)).toEqual([1, 0, 0]);
    expect(lastText(provider.requests[2]!)).toContain('one\ntwo');
    expect(lastText(provider.requests[2]!)).toContain('other.png');
  });
});

it('[AT7, AT8] a whole server: uploaded, sent, refused, told, and the next turn is not harmed', async () => {
  const provider = await strictProvider();
  const config = `model: {provider: custom, base_url: "${provider.baseUrl}", default: fake-model}`;
  const server = await startTestServer({ config });
  const id = await server.session();
  const ask = (text: string, attachments: string[]) =>
    server.call('POST', `/api/sessions/${id}/prompts?wait=1`, { text, attachments });
  const file = await uploaded(server, id, 'dot.png', PNG);
  expect((await ask('look', [file])).json.message.status).toBe('complete');
  expect(provider.requests[0]!.images).toEqual([{ mediaType: 'image/png', bytes: PNG }]);
  provider.refuseImages(NO_VISION);
  expect((await ask('again', [file])).json.message).toMatchObject({ status: 'complete', content: 'You said: again' });
  expect((await ask('more', [])).json.message.status).toBe('complete');
  expect(provider.requests.map(({ images }) => images.length)).toEqual([1, 1, 0, 0]);
  const told = (content: unknown) => JSON.stringify(content).match(/dot\.png/g)?.length;
  expect(told(provider.requests[3]!.body.messages)).toBe(1);
});
