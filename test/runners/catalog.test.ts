/** Which models there are, from the configuration and from this machine, and which runner a turn gets. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CatalogParts, createCatalog } from '../../server/runners/catalog.ts';
import { DISCOVERY_TARGETS, type DiscoveryTarget } from '../../server/runners/discover.ts';
import { formatModelId, parseModelId } from '../../server/runners/model-id.ts';
import { createRouterRunner } from '../../server/runners/router.ts';
import type { Runner, Turn } from '../../server/runners/runner.ts';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import { drive, providerAt, turnOf } from './model-bench.ts';

let provider: FakeProvider;
let clock = 1000;
const servers: Server[] = [];
beforeEach(async () => {
  clock = 1000;
  provider = await startFakeProvider({ models: ['fake-model', 'org/other'] });
});
afterEach(async () => {
  await provider.close();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

const catalogOf = (parts: Partial<CatalogParts> = {}) =>
  createCatalog({
    providers: [providerAt(provider.baseUrl)],
    builtin: true,
    now: () => clock,
    discovery: [],
    ...parts,
  });

const target = (name: string, port: number): DiscoveryTarget => ({
  ...DISCOVERY_TARGETS.find((known) => known.name === name)!,
  port,
});

/** A server that answers every path alike; null never answers. */
async function serve(answer: { status?: number; body: unknown } | null): Promise<number> {
  const server = createServer((_request, response) => {
    if (!answer) return;
    response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' });
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

describe('[RU9] models are listed from configuration and loopback without ever blocking', () => {
  it('[RU9] before anything is fetched the configured model is there, and asking starts the fetch', async () => {
    const catalog = catalogOf();
    expect(catalog.list()).toEqual({
      models: [
        { id: 'builtin', label: 'Built-in agent (no model)', provider: 'builtin', source: 'builtin' },
        { id: 'custom/fake-model', label: 'fake-model', provider: 'custom', source: 'configured' },
      ],
      default: 'custom/fake-model',
      providers: [{ name: 'custom', status: 'loading' }],
    });
    await catalog.refresh();
    expect(provider.modelRequests).toBe(1);
    const { models, providers } = catalog.list();
    expect(models.map(({ id, label }) => [id, label])).toEqual([
      ['builtin', 'Built-in agent (no model)'],
      ['custom/fake-model', 'fake-model'],
      ['custom/org/other', 'other'],
    ]);
    expect(providers).toEqual([{ name: 'custom', status: 'ok' }]);
  });

  it('[RU9] a list is fetched again only when it is older than five minutes, behind the answer', async () => {
    const catalog = catalogOf();
    await catalog.refresh();
    clock += 299;
    catalog.list();
    expect(provider.modelRequests).toBe(1);
    clock += 2;
    provider.answerModels({ status: 200, body: { data: [{ id: 'newer', context_length: 4096 }] } });
    expect(catalog.list().models).toHaveLength(3);
    await expect
      .poll(() => catalog.list().models.map(({ id }) => id))
      .toEqual(['builtin', 'custom/fake-model', 'custom/newer']);
    expect(provider.modelRequests).toBe(2);
    expect(catalog.find('custom', 'newer')?.contextLength).toBe(4096);
  });

  it('[RU9] a provider that never answers delays no list, and is unreachable after its time', async () => {
    provider.answerModels('hang');
    const catalog = catalogOf();
    const refreshing = catalog.refresh();
    expect(catalog.list().providers).toEqual([{ name: 'custom', status: 'loading' }]);
    await refreshing;
    expect(catalog.list().providers).toEqual([
      { name: 'custom', status: 'unreachable', error: 'no answer within 3 s' },
    ]);
  }, 10_000);

  it('[RU9] each way in which a list can fail has its status; what was listed stays', async () => {
    const seen: string[] = [];
    const catalog = catalogOf({ onStatus: ({ status }) => seen.push(status) });
    await catalog.refresh();
    const refusals: [{ status: number; body: unknown }, object][] = [
      [
        { status: 401, body: {} },
        { status: 'unauthorized', error: 'an API key is needed' },
      ],
      [{ status: 503, body: {} }, { status: 'loading' }],
      [
        { status: 500, body: {} },
        { status: 'unreachable', error: 'HTTP 500' },
      ],
      [
        { status: 200, body: 'a page' },
        { status: 'unreachable', error: 'the answer is not a list of models' },
      ],
    ];
    for (const [answer, status] of refusals) {
      provider.answerModels(answer);
      await catalog.refresh();
      expect(catalog.list().providers).toEqual([{ name: 'custom', ...status }]);
      expect(catalog.list().models).toHaveLength(3);
    }
    expect(seen).toEqual(['ok', 'unauthorized', 'loading', 'unreachable', 'unreachable']);
  });

  it('[RU9] the key goes to its own address only and is in nothing that is told', async () => {
    const elsewhere = await serve({ body: { object: 'list', data: [] } });
    const server = createServer((_request, response) => {
      response.writeHead(302, { location: `http://127.0.0.1:${elsewhere}/v1/models` });
      response.end();
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const catalog = catalogOf({ providers: [providerAt(baseUrl, { apiKey: 'secret-key-1' })] });
    await catalog.refresh();
    expect(catalog.list().providers[0]).toMatchObject({ status: 'unreachable', error: 'HTTP 302' });
    expect(JSON.stringify(catalog.list())).not.toContain('secret-key-1');
  });

  it('[RU9] servers on this machine are found and usable; other things on their ports are not', async () => {
    const ollama = await startFakeProvider({ ollama: ['llama3:latest'], models: ['llama3:latest'] });
    const targets = [
      target('ollama', ollama.port),
      target('lmstudio', await serve({ body: { object: 'list', data: [{ id: 'qwen', max_context_length: 32768 }] } })),
      target('llama-server', await serve({ body: { data: [{ id: 'a row of some other API' }] } })),
    ];
    const catalog = catalogOf({ providers: [], discovery: targets });
    await catalog.refresh();
    const { models, default: chosen, providers } = catalog.list();
    expect(models.slice(1)).toEqual([
      { id: 'ollama/llama3:latest', label: 'llama3:latest', provider: 'ollama', source: 'discovered' },
      { id: 'lmstudio/qwen', label: 'qwen', provider: 'lmstudio', source: 'discovered', context_length: 32768 },
    ]);
    expect(providers.map(({ name, status }) => [name, status])).toEqual([
      ['ollama', 'ok'],
      ['lmstudio', 'ok'],
    ]);
    expect(chosen).toBe('builtin');
    expect(catalog.resolve('ollama/llama3')).toMatchObject({
      kind: 'model',
      model: 'llama3',
      provider: { name: 'ollama', baseUrl: ollama.baseUrl, apiKey: null },
    });

    await ollama.close();
    await catalog.refresh();
    expect(catalog.list().providers[0]).toMatchObject({ name: 'ollama', status: 'unreachable' });
    expect(catalog.resolve('ollama/llama3').kind).toBe('model');
  });

  it('[RU9] a probe is short, and Ollama is found by its other list too', async () => {
    const other = await serve({ body: { object: 'list', data: [{ id: 'phi' }] } });
    const silent = await serve(null);
    const closed = await serve(null);
    servers.pop()?.close();
    const catalog = catalogOf({
      providers: [],
      discovery: [target('ollama', other), target('lmstudio', silent), target('llama-server', closed)],
    });
    await catalog.refresh();
    expect(catalog.list().providers.map(({ name }) => name)).toEqual(['ollama']);
  });

  it('[RU9] a configured server is not found a second time', async () => {
    const discovery = [target('ollama', provider.port)];
    const byAddress = catalogOf({ discovery });
    await byAddress.refresh();
    expect(byAddress.list().providers.map(({ name }) => name)).toEqual(['custom']);
    const byName = catalogOf({ discovery, providers: [providerAt('http://127.0.0.1:9/v1', { name: 'ollama' })] });
    await byName.refresh();
    expect(byName.list().providers).toHaveLength(1);
  });

  it('[RU9] OpenAI’s models that do not chat are not offered, but not refused', async () => {
    provider.answerModels({ status: 200, body: { object: 'list', data: [{ id: 'gpt-5' }, { id: 'whisper-1' }] } });
    const catalog = catalogOf({
      providers: [providerAt(provider.baseUrl, { name: 'openai', kind: 'openai', defaultModel: null })],
    });
    await catalog.refresh();
    expect(catalog.list().models.map(({ id }) => id)).toEqual(['builtin', 'openai/gpt-5']);
    expect(catalog.list().default).toBe('openai/gpt-5');
    expect(catalog.resolve('openai/whisper-1').kind).toBe('model');
  });

  it('[RU9] what an id means', async () => {
    const catalog = catalogOf();
    const kinds = (...ids: (string | null)[]) => ids.map((id) => catalog.resolve(id).kind);
    expect(kinds('custom/not-fetched-yet')).toEqual(['model']);
    await catalog.refresh();
    expect(kinds(null, '', 'builtin', 'custom/fake-model', 'custom/org/other')).toEqual([
      'model',
      'model',
      'builtin',
      'model',
      'model',
    ]);
    expect(kinds('custom/nope', 'elsewhere/x', 'fake-model', 'custom/')).toEqual(Array(4).fill('unknown'));
    expect(catalog.resolve('custom/org/other')).toMatchObject({ model: 'org/other' });

    provider.answerModels({ status: 200, body: { object: 'list', data: [{ id: 'other' }] } });
    await catalog.refresh();
    expect(kinds('custom/fake-model')).toEqual(['model']); // the configured one, though it is not listed
    expect(catalogOf({ builtin: false, providers: [] }).resolve(null).kind).toBe('unknown');
    expect(catalogOf({ providers: [] }).resolve(null).kind).toBe('builtin');
    expect(catalogOf({ builtin: false }).resolve('builtin').kind).toBe('unknown');
  });

  it('[RU9] model ids are split at the first slash', () => {
    expect(parseModelId('custom/llama3')).toEqual({ provider: 'custom', model: 'llama3' });
    expect(parseModelId('custom/org/name:7b')).toEqual({ provider: 'custom', model: 'org/name:7b' });
    for (const text of ['', 'builtin', '/x', 'x/']) expect(parseModelId(text)).toBeNull();
    expect(formatModelId({ provider: 'a', model: 'b/c' })).toBe('a/b/c');
  });

  it('[RU9] a turn goes to the runner of its model at the moment it runs', async () => {
    const seen: string[] = [];
    const runnerOf = (kind: string): Runner => ({
      kind,
      async *run(turn: Turn) {
        seen.push(`${kind} ${turn.model}`);
        yield { type: 'message.start', payload: {} };
        return { kind: 'completed' };
      },
    });
    const catalog = catalogOf();
    const router = createRouterRunner({
      builtin: runnerOf('builtin'),
      model: runnerOf('model'),
      agents: runnerOf('agents'),
      catalog,
    });
    for (const model of ['', 'builtin', 'custom/org/other']) {
      expect(await drive(router, turnOf('hi', { model }))).toMatchObject({ end: { kind: 'completed' } });
    }
    expect(seen).toEqual(['model custom/fake-model', 'builtin builtin', 'model custom/org/other']);
    const unknown = await drive(router, turnOf('hi', { model: 'elsewhere/x' }));
    expect(unknown).toMatchObject({
      events: [],
      end: { kind: 'failed', error: { code: 'model_not_found', retryable: false } },
    });
  });
});
