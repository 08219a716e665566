/** The providers of a configuration: what may be said of one, and that every mistake is named. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../../server/config.ts';
import { configuredProviders } from '../../server/runners/configured.ts';
import { temporaryFolder } from '../support/home.ts';

async function load(yaml: string, env: Record<string, string> = {}) {
  const home = await temporaryFolder();
  await writeFile(path.join(home, 'config.yaml'), yaml);
  return loadConfig({ home }, env);
}

it('[RU10] the provider of the model section is the first, the others follow under their own names', async () => {
  const yaml = `
model: {provider: anthropic, default: claude-x, price: {input: 3, output: 15, cached: 0.3}}
providers:
  ollama: {kind: custom, base_url: "http://127.0.0.1:11434/v1/", models: [a, org/b], context_length: 4096, images: false}
  openai: {kind: openai, default: gpt-x}
  work: {kind: openai, base_url: "https://proxy.example/v1", api_key_env: WORK_KEY}
`;
  const env = { ANTHROPIC_API_KEY: ' key-a\n', OPENAI_API_KEY: 'key-o', WORK_KEY: 'key-w' };
  const config = await load(yaml, env);
  expect(config.agent.api_max_retries).toBe(2);
  expect(config.unknownKeys).toEqual([]);
  expect(configuredProviders(config)).toEqual([
    {
      name: 'anthropic',
      kind: 'anthropic',
      baseUrl: 'https://api.anthropic.com/v1',
      apiKey: 'key-a',
      defaultModel: 'claude-x',
      contextLength: null,
      price: { input: 3, output: 15, cached: 0.3 },
    },
    {
      name: 'ollama',
      kind: 'custom',
      baseUrl: 'http://127.0.0.1:11434/v1',
      apiKey: null,
      defaultModel: null,
      contextLength: 4096,
      images: false,
      models: ['a', 'org/b'],
    },
    {
      name: 'openai',
      kind: 'openai',
      baseUrl: 'https://api.openai.com/v1',
      apiKey: 'key-o',
      defaultModel: 'gpt-x',
      contextLength: null,
    },
    {
      name: 'work',
      kind: 'openai',
      baseUrl: 'https://proxy.example/v1',
      apiKey: 'key-w',
      defaultModel: null,
      contextLength: null,
    },
  ]);
});

it.each([
  ['providers: {a: {kind: magic}}', /providers\.a\.kind must be one of custom, openai, anthropic \(it is "magic"\)/],
  ['providers: {a: {base_url: "http://x/v1"}}', /providers\.a .*kind/],
  ['providers: {a: {kind: custom, base_ulr: "http://x/v1"}}', /providers\.a has no key "base_ulr"/],
  ['providers: {a: {kind: custom}}', /providers\.a\.base_url is needed/],
  ['providers: {a: {kind: custom, base_url: "ftp://x"}}', /providers\.a\.base_url is not a URL/],
  ['providers: {a: {kind: custom, base_url: "http://x/v1", price: {input: 1}}}', /providers\.a\.price .*output/],
  [
    'providers: {a: {kind: custom, base_url: "http://x/v1", price: {input: -1, output: 1}}}',
    /providers\.a\.price\.input/,
  ],
  ['providers: {a/b: {kind: custom, base_url: "http://x/v1"}}', /providers must have names/],
  ['providers: {builtin: {kind: custom, base_url: "http://x/v1"}}', /providers\.builtin has the name of another/],
  [
    'model: {provider: custom, base_url: "http://x/v1"}\nproviders: {custom: {kind: custom, base_url: "http://y/v1"}}',
    /providers\.custom has the name of another/,
  ],
  ['providers: {a: {kind: anthropic}}', /ANTHROPIC_API_KEY \(providers\.a\.api_key_env\) holds no key/],
  ['providers: [a]', /providers/],
  ['agent: {api_max_retries: -1}', /agent\.api_max_retries/],
  ['agent: {stall_timeout_s: 0}', /agent\.stall_timeout_s/],
])('[RU10][CF1] a wrong provider is an error that names its key: %s', async (yaml, says) => {
  await expect(load(yaml)).rejects.toThrow(says);
  await expect(load(yaml)).rejects.toThrow(ConfigError);
});

it('[SE5] a key that stands where the name of its variable belongs is not in the error', async () => {
  for (const key of ['sk-live-0123456789', 'sk_live_0123456789']) {
    const yaml = `providers: {a: {kind: openai, api_key_env: ${key}}}`;
    await expect(load(yaml)).rejects.toThrow(/providers\.a/);
    await expect(load(yaml)).rejects.not.toThrow(/live/);
  }
});
