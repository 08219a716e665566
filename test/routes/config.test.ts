/** The configuration: what beats what, and that every mistake is named. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError, type ConfigFlags, loadConfig } from '../../server/config.ts';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';

/** A home with these files. */
async function homeWith(files: Record<string, string>): Promise<string> {
  const home = await temporaryFolder();
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(home, name), text);
  return home;
}

const load = async (yaml: string, flags: ConfigFlags = {}, env: Record<string, string> = {}) =>
  loadConfig({ home: await homeWith({ 'config.yaml': yaml }), ...flags }, env);

/** The sentence of the error that a file gives. */
async function mistake(yaml: string, flags: ConfigFlags = {}, env: Record<string, string> = {}): Promise<string> {
  try {
    await load(yaml, flags, env);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).message;
  }
  throw new Error(`accepted: ${yaml}`);
}

it('[CF1] without a file everything has its default', async () => {
  const home = path.join(await temporaryFolder(), 'not-there-yet');
  const config = loadConfig({ home }, {});
  expect(config).toMatchObject({
    home,
    token: null,
    apiKey: null,
    logLevel: 'info',
    unknownKeys: [],
    model: { provider: 'builtin' },
    agent: { stall_timeout_s: 120, max_steps: 50 },
    approvals: { mode: 'manual', timeout: 300, allow: [] },
    queue: { max: 100 },
    max_concurrent_sessions: null,
    live: { send_deadline_s: 30, backlog_events: 256, backlog_bytes: 4_194_304 },
    journal: { fsync: 'boundary', keep_h: 24 },
    server: {
      host: '127.0.0.1',
      port: 8787,
      base_path: '',
      trusted_proxies: [],
      allowed_hosts: [],
      allowed_origins: [],
      drain_s: 10,
    },
    limits: { body_mb: 20 },
  });
});

it('[CF1] flags beat the file', async () => {
  const yaml = 'server: {host: 127.0.0.2, port: 1111, base_path: /file}';
  expect((await load(yaml)).server).toMatchObject({ host: '127.0.0.2', port: 1111, base_path: '/file' });
  const flags = { host: '127.0.0.3', port: '0', basePath: '/flag' };
  expect((await load(yaml, flags)).server).toMatchObject({ host: '127.0.0.3', port: 0, base_path: '/flag' });
  expect((await load('', flags)).server).toMatchObject({ host: '127.0.0.3', port: 0, base_path: '/flag' });
});

it('[CF1] flag beats environment beats the home of the user', async () => {
  const [flag, variable, user] = await Promise.all([temporaryFolder(), temporaryFolder(), temporaryFolder()]);
  const env = { TURNKEEP_HOME: variable, HOME: user };
  expect(loadConfig({ home: flag }, env).home).toBe(flag);
  expect(loadConfig({}, env).home).toBe(variable);
  expect(loadConfig({}, { ...env, TURNKEEP_HOME: '' }).home).toBe(path.join(user, '.turnkeep'));
  expect(path.isAbsolute(loadConfig({ home: 'relative' }, {}).home)).toBe(true);
  expect(() => loadConfig({ home: '' }, env)).toThrow(/--home is empty/);
});

it('[CF1] the environment beats .env in the home, and .env fills what it lacks', async () => {
  const home = await homeWith({
    '.env': 'TURNKEEP_TOKEN="token of the file" # comment\nTURNKEEP_LOG_LEVEL=debug\nMY_KEY=key-of-the-file\n',
    'config.yaml': 'model: {provider: custom, base_url: "http://127.0.0.1:1/v1", api_key_env: MY_KEY}',
  });
  expect(loadConfig({ home }, {})).toMatchObject({
    token: 'token of the file',
    logLevel: 'debug',
    apiKey: 'key-of-the-file',
  });
  const env = { TURNKEEP_TOKEN: 'token of the environment', TURNKEEP_LOG_LEVEL: 'warn', MY_KEY: 'key-of-env' };
  expect(loadConfig({ home }, env)).toMatchObject({
    token: 'token of the environment',
    logLevel: 'warn',
    apiKey: 'key-of-env',
  });
});

it.each([
  ['server: {port: "8787"}', /server\.port must be integer \(it is "8787"\)/],
  ['server: {port: 65536}', /server\.port .*65535.*\(it is 65536\)/],
  ['server: {port: -1}', /server\.port/],
  ['server: {port: 80.5}', /server\.port must be integer/],
  ['server: {host: 5}', /server\.host must be string/],
  ['server: {host: ""}', /server\.host/],
  ['server: {drain_s: soon}', /server\.drain_s must be number/],
  ['server: {drain_s: -1}', /server\.drain_s/],
  ['server: {allowed_hosts: chat.example}', /server\.allowed_hosts must be array/],
  ['server: {allowed_origins: [chat.example]}', /server\.allowed_origins\.0/],
  ['server: {allowed_origins: ["https://chat.example/"]}', /server\.allowed_origins\.0/],
  ['server: {trusted_proxies: [banana]}', /server\.trusted_proxies .*"banana"/],
  ['server: {trusted_proxies: [10.0.0.0/33]}', /server\.trusted_proxies .*"10\.0\.0\.0\/33"/],
  ['server: [1]', /server must be object/],
  ['server: yes', /server must be object/],
  ['queue: {max: 0}', /queue\.max/],
  ['queue: {max: many}', /queue\.max must be integer/],
  ['max_concurrent_sessions: 0', /max_concurrent_sessions/],
  ['journal: {fsync: never}', /journal\.fsync/],
  ['runner: {kind: acp}', /runner\.command/],
  ['limits: {body_mb: 0}', /limits\.body_mb/],
  ['live: {backlog_events: 0}', /live\.backlog_events/],
  ['agent: {max_steps: 0}', /agent\.max_steps/],
  ['approvals: {timeout: never}', /approvals\.timeout/],
  ['approvals: {mode: sometimes}', /approvals\.mode must be one of manual, auto \(it is "sometimes"\)/],
  ['approvals: {allow: write_file}', /approvals\.allow must be array/],
  ['approvals: {allow: [1]}', /approvals\.allow\.0 must be string/],
  ['approvals: {allow: ["terminal: *"]}', /approvals\.allow holds "terminal: \*", which is no pattern/],
  ['approvals: {allow: ["terminal: a; b *"]}', /approvals\.allow holds "terminal: a; b \*"/],
  ['model: gpt', /model must be object/],
  ['model: {provider: auto}', /model\.provider must be one of builtin, custom, openai, anthropic \(it is "auto"\)/],
  ['model: {provider: anthropic}', /model\.provider/],
  ['model: {provider: custom}', /model\.base_url/],
  ['model: {provider: custom, base_url: nowhere}', /model\.base_url/],
  ['model: {provider: openai}', /OPENAI_API_KEY/],
  ['model: {provider: openai, api_key_env: MY_KEY}', /MY_KEY/],
])('[CF1] a wrong value is an error that names its key: %s', async (yaml, says) => {
  expect(await mistake(yaml)).toMatch(says);
});

it.each(['server', 'live', 'journal', 'queue', 'limits', 'runner'])(
  '[CF1] an unknown key in our section %s is an error that names it',
  async (section) => {
    expect(await mistake(`${section}: {colour: red}`)).toContain(`${section} has no key "colour"`);
  },
);

it('[TL3] commands of an agent see what a shell needs of the environment, and nothing else', async () => {
  const env = {
    PATH: '/bin',
    HOME: '/h',
    LC_ALL: 'C',
    LC_: 'x',
    TZ: 'UTC',
    OPENAI_API_KEY: 'k',
    TURNKEEP_TOKEN: 'longenough',
  };
  expect((await load('', {}, env)).commandEnv).toEqual({ PATH: '/bin', HOME: '/h', LC_ALL: 'C', TZ: 'UTC' });
  const home = await homeWith({ '.env': 'PATH=/evil\nHOME=/evil\n' });
  expect(loadConfig({ home }, {}).commandEnv).toEqual({ PATH: '/usr/local/bin:/usr/bin:/bin' });
});

it('[AP3] a pattern may stand without quotes, which makes it a pair to YAML', async () => {
  const { approvals } = await load(
    'approvals:\n  allow:\n    - terminal: npm test *\n    - write_file\n    - "terminal: ls"\n',
  );
  expect(approvals.allow).toEqual(['terminal: npm test *', 'write_file', 'terminal: ls']);
});

it('[CF1] the modes of a Hermes configuration are read as ours, and what is not the same is reported', async () => {
  const off = await load('approvals: {mode: off}');
  expect([off.approvals.mode, off.unknownKeys]).toEqual(['auto', []]);
  const smart = await load('approvals: {mode: smart}');
  expect([smart.approvals.mode, smart.unknownKeys]).toEqual([
    'manual',
    [expect.stringContaining('approvals.mode "smart"')],
  ]);
});

it('[CF1] an unknown key elsewhere is reported, not refused', async () => {
  const config = await load('colour: red\nmodel: {flavour: sweet}\nagent: {mood: good}\napprovals: {nerve: steel}\n');
  expect([...config.unknownKeys].sort()).toEqual(['agent.mood', 'approvals.nerve', 'colour', 'model.flavour']);
});

const HERMES = `
model:
  default: qwen3
  provider: custom
  base_url: http://127.0.0.1:11434/v1
  context_length: 32768
toolsets: [all]
agent:
  max_turns: 60
  verbose: false
  reasoning_effort: medium
  personalities: {helpful: You are helpful., pirate: 'Arr!'}
terminal: {backend: local, cwd: ., timeout: 180, env_passthrough: []}
compression: {enabled: true, threshold: 0.5, summary_model: ''}
auxiliary: {vision: {provider: auto, model: ''}}
display: {compact: false, busy_input_mode: interrupt, skin: default}
approvals: {mode: manual, timeout: 60, cron_mode: deny}
command_allowlist: []
mcp_servers: {files: {command: npx, args: [-y, files]}}
_config_version: 12
`;

it('[CF1] a config.yaml of Hermes is read as it is', async () => {
  const config = await load(HERMES);
  expect(config.model).toMatchObject({ provider: 'custom', default: 'qwen3', context_length: 32768 });
  expect(config.approvals.timeout).toBe(60);
  expect(config.unknownKeys).toEqual(
    expect.arrayContaining(['toolsets', 'terminal', 'agent.max_turns', 'approvals.cron_mode', '_config_version']),
  );
  const server = await startTestServer({ config: HERMES });
  expect((await server.call('GET', '/api/models')).json.default).toBe('custom/qwen3');
});

it.each([
  ['nothing', ''],
  ['a comment', '# nothing yet\n'],
  ['null', 'null'],
  ['sections without content', 'server:\nmodel:\nqueue: ~\n'],
  ['an empty document', '---\n...\n'],
])('[CF1] a file with %s means the defaults', async (_what, yaml) => {
  expect((await load(yaml)).server.port).toBe(8787);
});

it.each([
  ['a list', '- a\n- b\n', /must hold keys and values/],
  ['a text', 'hello', /must hold keys and values/],
  ['broken YAML', 'server: {port: 1', /is not valid YAML: .*line 1/],
  ['a tab for indentation', 'server:\n\tport: 1', /is not valid YAML: .*line 2/],
  ['the same key twice', 'queue: {max: 1}\nqueue: {max: 2}', /is not valid YAML: .*line 2/],
])('[CF1] a file with %s is an error that names the file', async (_what, yaml, says) => {
  const message = await mistake(yaml);
  expect(message).toMatch(says);
  expect(message).toContain('config.yaml');
});

it('[CF1] a config.yaml or .env that is a folder is an error that names it', async () => {
  for (const name of ['config.yaml', '.env']) {
    const home = await temporaryFolder();
    await mkdir(path.join(home, name));
    expect(() => loadConfig({ home }, {})).toThrow(ConfigError);
    expect(() => loadConfig({ home }, {})).toThrow(name);
  }
});

it.each([
  ['/', ''],
  ['/x', '/x'],
  ['/x/', '/x'],
  ['/a/b.c/d_e~f-g', '/a/b.c/d_e~f-g'],
])('[CF1] the base path %s is taken', async (given, taken) => {
  expect((await load(`server: {base_path: ${given}}`)).server.base_path).toBe(taken);
  expect((await load('', { basePath: given })).server.base_path).toBe(taken);
});

it.each([
  'x',
  '',
  '//',
  '/x//y',
  '/../x',
  '/x/..',
  '/.',
  '/x y',
  '/x?y',
  '/x#y',
  '/%2e',
  '/é',
  'http://x',
  `/${'a'.repeat(50)}!`,
])('[CF1] the base path "%s" is refused by its name', async (given) => {
  expect(await mistake(`server: {base_path: ${JSON.stringify(given)}}`)).toContain('server.base_path');
  expect(await mistake('', { basePath: given })).toContain('server.base_path');
});

it.each(['', ' 80', 'abc', '1.5', '-1', '65536', '99999', '1e3', '0x50'])(
  '[CF1] --port "%s" is refused',
  async (port) => {
    expect(await mistake('', { port })).toMatch(/port/);
  },
);

it('[CF1] trusted proxies are addresses, ranges and the names of ranges', async () => {
  const proxies = ['127.0.0.1', '::1', '10.0.0.0/8', 'fd00::/8', 'loopback', 'linklocal', 'uniquelocal'];
  const config = `server: {trusted_proxies: ${JSON.stringify(proxies)}}`;
  expect((await load(config)).server.trusted_proxies).toEqual(proxies);
  await startTestServer({ config });
});

it('[CF1] a log level that there is not is an error that names it', async () => {
  expect(await mistake('', {}, { TURNKEEP_LOG_LEVEL: 'loud' })).toMatch(/TURNKEEP_LOG_LEVEL .*"loud"/);
  for (const level of ['fatal', 'silent', 'trace']) {
    expect((await load('', {}, { TURNKEEP_LOG_LEVEL: level })).logLevel).toBe(level);
  }
});

it('[SE5] a key that stands where it does not belong is in no message', async () => {
  const messages = [
    await mistake('model: {provider: openai, api_key_env: sk-live-0123456789}'),
    await mistake('model: {provider: openai, api_key_env: gsk_0123456789abcdef}'),
    await mistake('model: {api_key: sk-live-0123456789, base_url: [}'),
    await mistake('model: {provider: openai, api_key_env: 0123456789}'),
  ];
  for (const message of messages) expect(message).not.toMatch(/0123456789/);
  expect(messages[0]).toContain('model.api_key_env');
  expect(messages[1]).toContain('model.api_key_env');
  const reported = await load('model: {api_key: sk-live-0123456789}');
  expect(reported.unknownKeys).toEqual(['model.api_key']);
});
