/**
 * The configuration: flags beat environment beat `config.yaml`. The only reader of the environment.
 *
 * A mistyped value, or an unknown key in our own sections, is an error that names it; unknown keys elsewhere are
 * reported, because `model`, `agent`, `display` and `approvals` use the names of a Hermes config.yaml.
 */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { parseEnv } from 'node:util';
import { Ajv, type ErrorObject } from 'ajv';
import Type, { type Static, type TSchema } from 'typebox';
import { parse as parseYaml } from 'yaml';
import { readAllowPattern } from './core/approval-rules.ts';
import { type McpServerSettings, McpServersSection, readMcpServers, unknownMcpKeys } from './mcp/settings.ts';
import { readAgentSections } from './runners/acp/agent-sections.ts';
import type { AgentTarget } from './runners/acp/agent-target.ts';
import { BUILTIN_MODEL_ID } from './runners/model-id.ts';
import { PROVIDER_DEFAULTS, type ProviderKind } from './runners/provider.ts';

const open = { additionalProperties: true } as const;
const closed = { additionalProperties: false } as const;
const Seconds = (value: number) => Type.Number({ minimum: 0, default: value });

const Price = Type.Object(
  {
    input: Type.Number({ minimum: 0 }),
    output: Type.Number({ minimum: 0 }),
    cached: Type.Optional(Type.Number({ minimum: 0 })),
  },
  closed,
);

/** What a provider may have, in the `model` section and under `providers` alike. */
const providerKeys = {
  base_url: Type.Optional(Type.String({ minLength: 1 })),
  default: Type.Optional(Type.String({ minLength: 1 })),
  api_key_env: Type.Optional(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' })),
  context_length: Type.Optional(Type.Integer({ minimum: 1 })),
  images: Type.Optional(Type.Boolean()),
  price: Type.Optional(Price),
};

const Provider = Type.Object(
  {
    kind: Type.Enum(['custom', 'openai', 'anthropic']),
    ...providerKeys,
    models: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
  },
  closed,
);

const Model = Type.Object(
  {
    provider: Type.Enum(['builtin', 'custom', 'openai', 'anthropic'], { default: 'builtin' }),
    ...providerKeys,
  },
  open,
);

/** How an agent of others is started, in the `runner` section and under `agents` alike. */
const agentKeys = {
  command: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
  env: Type.Optional(Type.Record(Type.String(), Type.String())),
};

const ConfigFile = Type.Object(
  {
    model: Model,
    providers: Type.Record(Type.String(), Provider),
    runner: Type.Object(
      {
        kind: Type.Enum(['model', 'acp'], { default: 'model' }),
        name: Type.Optional(Type.String({ minLength: 1 })),
        command: Type.Optional(agentKeys.command),
        env: agentKeys.env,
        start_timeout_s: Type.Number({ exclusiveMinimum: 0, default: 60 }),
        stall_timeout_s: Type.Number({ exclusiveMinimum: 0, default: 600 }),
        cancel_timeout_s: Type.Number({ exclusiveMinimum: 0, default: 5 }),
        idle_s: Seconds(600),
        max_processes: Type.Integer({ minimum: 1, default: 8 }),
      },
      closed,
    ),
    agents: Type.Record(Type.String(), Type.Object(agentKeys, closed)),
    mcp_servers: McpServersSection,
    agent: Type.Object(
      {
        api_max_retries: Type.Integer({ minimum: 0, default: 2 }),
        stall_timeout_s: Type.Number({ exclusiveMinimum: 0, default: 120 }),
        max_steps: Type.Integer({ minimum: 1, default: 50 }),
        compact_at: Type.Number({ exclusiveMinimum: 0, maximum: 1, default: 0.8 }),
      },
      open,
    ),
    display: Type.Object({ busy_input_mode: Type.Enum(['queue', 'steer', 'interrupt'], { default: 'queue' }) }, open),
    approvals: Type.Object(
      {
        mode: Type.Enum(['manual', 'auto'], { default: 'manual' }),
        timeout: Seconds(300),
        allow: Type.Array(Type.String({ minLength: 1 }), { default: [] }),
      },
      open,
    ),
    queue: Type.Object({ max: Type.Integer({ minimum: 1, default: 100 }) }, closed),
    max_concurrent_sessions: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], { default: null }),
    live: Type.Object(
      {
        send_deadline_s: Type.Number({ exclusiveMinimum: 0, default: 30 }),
        backlog_events: Type.Integer({ minimum: 1, default: 256 }),
        backlog_bytes: Type.Integer({ minimum: 1024, default: 4_194_304 }),
        orphan_reap_grace_s: Seconds(20),
        orphan_activity_stale_s: Seconds(600),
        idle_ttl_s: Seconds(21_600),
        max_sessions: Type.Integer({ minimum: 1, default: 256 }),
      },
      closed,
    ),
    journal: Type.Object(
      {
        fsync: Type.Union([Type.Literal('boundary'), Type.Literal('eager')], { default: 'boundary' }),
        keep_h: Type.Number({ minimum: 0, default: 24 }),
      },
      closed,
    ),
    server: Type.Object(
      {
        host: Type.String({ minLength: 1, default: '127.0.0.1' }),
        port: Type.Integer({ minimum: 0, maximum: 65535, default: 8787 }),
        base_path: Type.String({ pattern: '^/$|^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+/?$', default: '/' }),
        trusted_proxies: Type.Array(Type.String({ minLength: 1 }), { default: [] }),
        allowed_hosts: Type.Array(Type.String({ minLength: 1 }), { default: [] }),
        public_url: Type.Union([Type.String({ pattern: '^https?://[^/?#]+(/[^?#]*)?$' }), Type.Null()], {
          default: null,
        }),
        user_header: Type.Union([Type.String({ pattern: '^[A-Za-z][A-Za-z0-9-]*$' }), Type.Null()], { default: null }),
        allowed_origins: Type.Array(Type.String({ pattern: '^https?://[^/]+$' }), { default: [] }),
        drain_s: Seconds(10),
      },
      closed,
    ),
    limits: Type.Object(
      {
        body_mb: Type.Number({ exclusiveMinimum: 0, default: 20 }),
        upload_mb: Type.Number({ exclusiveMinimum: 0, default: 20 }),
        streams: Type.Integer({ minimum: 1, default: 100 }),
        prompts_per_minute: Type.Integer({ minimum: 1, default: 60 }),
        min_free_mb: Type.Number({ minimum: 0, default: 200 }),
      },
      closed,
    ),
    foreign: Type.Object(
      {
        state_db: Type.Optional(Type.String({ minLength: 1 })),
        sessions_dir: Type.Optional(Type.String({ minLength: 1 })),
      },
      closed,
    ),
  },
  open,
);

type FileConfig = Static<typeof ConfigFile>;

export interface Config extends FileConfig {
  home: string;
  /** The credential that every request must bear, or null for an open loopback server. */
  token: string | null;
  /** The key of the `model` section's provider, read from the variable that is named there; never logged. */
  apiKey: string | null;
  /** The same for `providers`, by their names. */
  providerKeys: Record<string, string | null>;
  /** The agents of others, that of the `runner` section first. */
  configuredAgents: AgentTarget[];
  /** What such an agent is given: the environment of the server and `<home>/.env`, without what is ours alone. */
  agentEnv: Record<string, string>;
  /** The MCP servers that are enabled, in their order. */
  mcpServers: McpServerSettings[];
  /** All that commands of an agent see of the environment. */
  commandEnv: Record<string, string>;
  /** `TURNKEEP_LOG_LEVEL`: fatal, error, warn, info, debug, trace or silent. */
  logLevel: string;
  /** Keys that were not understood and are not ours. */
  unknownKeys: string[];
}

/** A configuration that cannot be used; the message names the key and what to do. */
export class ConfigError extends Error {
  override name = 'ConfigError';
}

export interface ConfigFlags {
  home?: string;
  host?: string;
  port?: string;
  basePath?: string;
}

const SECTIONS = [
  'model',
  'providers',
  'runner',
  'agents',
  'mcp_servers',
  'agent',
  'approvals',
  'display',
  'queue',
  'live',
  'journal',
  'server',
  'limits',
  'foreign',
];

/** The home of this start: flag, else `TURNKEEP_HOME`, else `~/.turnkeep`. Absolute. */
export function resolveHome(flags: Pick<ConfigFlags, 'home'>, env: NodeJS.ProcessEnv): string {
  if (flags.home === '') throw new ConfigError('--home is empty: name a folder.');
  return path.resolve(flags.home ?? (env.TURNKEEP_HOME || path.join(env.HOME || os.homedir(), '.turnkeep')));
}

/** Fills in the defaults, and stops at the first thing that is wrong. */
const isConfig = new Ajv({ useDefaults: true, strict: false }).compile<FileConfig>(ConfigFile);

/**
 * Reads the configuration of a home.
 * @param env the environment of the process; `<home>/.env` fills what it lacks
 * @throws ConfigError
 */
export function loadConfig(flags: ConfigFlags, env: NodeJS.ProcessEnv): Config {
  const home = resolveHome(flags, env);
  const variables = { ...readEnvFile(path.join(home, '.env')), ...env };
  const raw = readYaml(path.join(home, 'config.yaml'));
  for (const section of SECTIONS) raw[section] ??= {};
  const server = raw.server as Record<string, unknown>;
  if (server !== null && typeof server === 'object') {
    if (flags.host !== undefined) server.host = flags.host;
    if (flags.port !== undefined) server.port = toPort(flags.port);
    if (flags.basePath !== undefined) server.base_path = flags.basePath;
  }
  const otherMode = toOurApprovals(raw.approvals);
  if (!isConfig(raw)) throw new ConfigError(describe(isConfig.errors![0]!, raw));
  const file: FileConfig = raw;
  const token = variables.TURNKEEP_TOKEN || null;
  if (token !== null && token.length < 8) throw new ConfigError('TURNKEEP_TOKEN must have at least 8 characters.');
  const logLevel = variables.TURNKEEP_LOG_LEVEL || 'info';
  if (!LOG_LEVELS.includes(logLevel)) {
    throw new ConfigError(`TURNKEEP_LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}, not "${logLevel}".`);
  }
  checkProxies(file.server.trusted_proxies);
  checkUserHeader(file.server);
  checkProvider('model', file.model.provider, file.model);
  checkProviders(file);
  checkAllow(file.approvals.allow);
  const configuredAgents = checkedAgents(file, env);
  return {
    ...file,
    foreign: resolveForeign(file.foreign, home, env),
    server: withPublicUrl({ ...file.server, base_path: trimBasePath(file.server.base_path) }),
    home,
    token,
    apiKey: readKey('model', file.model.provider, file.model, variables),
    providerKeys: Object.fromEntries(
      Object.entries(file.providers).map(([name, provider]) => [
        name,
        readKey(`providers.${name}`, provider.kind, provider, variables),
      ]),
    ),
    configuredAgents,
    agentEnv: pickAgentEnv(variables),
    mcpServers: checkedMcpServers(file, variables, env),
    commandEnv: pickCommandEnv(env),
    logLevel,
    unknownKeys: [...unknownKeys(file), ...otherMode],
  };
}

/** What a shell needs, and nothing that could hold a secret. */
const COMMAND_VARIABLES = /^(PATH|HOME|LANG|LC_[A-Z]+|TERM|TZ|USER|SHELL|TMPDIR)$/;

function pickCommandEnv(env: NodeJS.ProcessEnv): Record<string, string> {
  const picked = Object.entries(env).filter(([name, value]) => COMMAND_VARIABLES.test(name) && value !== undefined);
  return { PATH: '/usr/local/bin:/usr/bin:/bin', ...(Object.fromEntries(picked) as Record<string, string>) };
}

/** Agents have keys and places of their own in the environment; the credential of this server is none of theirs. */
function pickAgentEnv(variables: Record<string, string | undefined>): Record<string, string> {
  const picked = Object.entries(variables).filter(
    ([name, value]) => !name.startsWith('TURNKEEP_') && value !== undefined,
  );
  return { PATH: '/usr/local/bin:/usr/bin:/bin', ...(Object.fromEntries(picked) as Record<string, string>) };
}

/** A home that is no folder at all has no files either; making it fails later, in better words. */
const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');

function readEnvFile(file: string): Record<string, string | undefined> {
  try {
    return parseEnv(readFileSync(file, 'utf8'));
  } catch (error) {
    if (isMissing(error)) return {};
    throw new ConfigError(`${file} cannot be read: ${String(error)}`);
  }
}

function readYaml(file: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (isMissing(error)) return {};
    throw new ConfigError(`${file} cannot be read: ${String(error)}`);
  }
  let value: unknown;
  try {
    value = parseYaml(text);
  } catch (error) {
    // The first line says what and where; the lines after it quote the file, which may hold secrets of others.
    const [what] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new ConfigError(`${file} is not valid YAML: ${what}`);
  }
  if (value === null || value === undefined) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw new ConfigError(`${file} must hold keys and values.`);
  return value as Record<string, unknown>;
}

function toPort(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65535)
    throw new ConfigError(`--port must be a number from 0 to 65535, not "${text}".`);
  return Number(text);
}

/** A validation error in the words of the file: `server.port must be integer`. */
function describe(problem: ErrorObject, value: unknown): string {
  const key = problem.instancePath.slice(1).replaceAll('/', '.') || 'the file';
  const { additionalProperty: extra, allowedValues: allowed } = problem.params;
  if (extra !== undefined) return `config.yaml: ${key} has no key "${extra}".`;
  const found = key.split('.').reduce<unknown>((at, part) => (at as Record<string, unknown>)?.[part], value);
  // Whoever writes the key itself where its variable's name belongs must not find it in a log, nor what an agent is given.
  const isSecret = key.endsWith('.api_key_env') || /(^|\.)env(\.|$)|^mcp_servers\./.test(key);
  const shown = found === undefined || isSecret ? '' : ` (it is ${JSON.stringify(found)})`;
  const what = Array.isArray(allowed) ? `must be one of ${allowed.join(', ')}` : problem.message;
  return `config.yaml: ${key} ${what}${shown}.`;
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** Names that a proxy list may hold besides addresses and ranges. */
const PROXY_NAMES = ['loopback', 'linklocal', 'uniquelocal'];

function checkProxies(proxies: readonly string[]): void {
  for (const proxy of proxies) {
    const [address = '', bits, ...rest] = proxy.split('/');
    const most = isIP(address) === 4 ? 32 : 128;
    const isRange = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= most);
    if (PROXY_NAMES.includes(proxy) || (isIP(address) !== 0 && isRange && rest.length === 0)) continue;
    throw new ConfigError(
      `config.yaml: server.trusted_proxies must hold addresses, ranges such as 10.0.0.0/8, or ${PROXY_NAMES.join(', ')} (it holds "${proxy}").`,
    );
  }
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/;

/** Whether an address is only reachable from this machine. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/** A name that anybody can write into a header is none. */
function checkUserHeader({ user_header, trusted_proxies }: FileConfig['server']): void {
  if (user_header === null || trusted_proxies.length > 0) return;
  throw new ConfigError(
    'config.yaml: server.user_header is believed from server.trusted_proxies only, and that is empty: name your proxy there.',
  );
}

/** The address that people use, said once: its host is allowed, and its origin; the header's name as Node has it. */
function withPublicUrl(server: FileConfig['server']): FileConfig['server'] {
  const userHeader = server.user_header?.toLowerCase() ?? null;
  if (server.public_url === null) return { ...server, user_header: userHeader };
  const { hostname, origin } = new URL(server.public_url);
  return {
    ...server,
    user_header: userHeader,
    allowed_hosts: [...server.allowed_hosts, hostname],
    allowed_origins: [...server.allowed_origins, origin],
  };
}

/**
 * Brings the section into our form. Hermes has a mode `off`, which is our `auto`, and one that lets a model decide: here a
 * person does. A pattern that was written without quotes (`- terminal: npm test`) is a pair to YAML, and meant as text.
 * @returns what is not obeyed as it stands
 */
function toOurApprovals(section: unknown): string[] {
  if (typeof section !== 'object' || section === null) return [];
  const approvals = section as { mode?: unknown; allow?: unknown };
  const { mode } = approvals;
  if (Array.isArray(approvals.allow)) {
    approvals.allow = approvals.allow.map((item: unknown) => {
      const pairs = typeof item === 'object' && item !== null ? Object.entries(item) : [];
      const [tool, command] = pairs[0] ?? [];
      return pairs.length === 1 && typeof command === 'string' ? `${tool}: ${command}` : item;
    });
  }
  if (mode === 'off') approvals.mode = 'auto';
  if (mode === 'smart') approvals.mode = 'manual';
  return mode === 'smart' ? ['approvals.mode "smart" (every question goes to you)'] : [];
}

function checkAllow(patterns: readonly string[]): void {
  const wrong = patterns.find((pattern) => readAllowPattern(pattern) === null);
  if (wrong === undefined) return;
  throw new ConfigError(
    `config.yaml: approvals.allow holds ${JSON.stringify(wrong)}, which is no pattern: it takes a tool (write_file), a command ` +
      '("terminal: npm test"), or the beginning of one without signs of the shell ("terminal: npm test *").',
  );
}

/** Places of another program's home, absolute; `~` is the person's own folder. */
function resolveForeign(foreign: FileConfig['foreign'], home: string, env: NodeJS.ProcessEnv): FileConfig['foreign'] {
  const own = { state_db: path.join(home, 'state.db'), sessions_dir: path.join(home, 'sessions') };
  const resolved: FileConfig['foreign'] = {};
  for (const key of ['state_db', 'sessions_dir'] as const) {
    const given = foreign[key];
    if (given === undefined) continue;
    const place = path.normalize(given.replace(/^~(?=\/|$)/, env.HOME || os.homedir())).replace(/(?<=.)\/$/, '');
    if (!path.isAbsolute(place)) throw new ConfigError(`config.yaml: foreign.${key} must be an absolute path.`);
    if (place === own[key]) {
      throw new ConfigError(
        `config.yaml: foreign.${key} is in this server's own home; it names one of another program.`,
      );
    }
    resolved[key] = place;
  }
  return resolved;
}

type ProviderFields = Pick<FileConfig['model'], 'base_url' | 'api_key_env'>;

/** @param place where it stands in the file: `model` or `providers.<name>` */
function checkProvider(place: string, kind: ProviderKind | 'builtin', { base_url }: ProviderFields): void {
  if (kind === 'custom' && !base_url) {
    throw new ConfigError(
      `config.yaml: ${place}.base_url is needed for provider "custom", for example http://127.0.0.1:11434/v1.`,
    );
  }
  if (base_url !== undefined && !/^https?:\/\//.test(URL.canParse(base_url) ? base_url : '')) {
    throw new ConfigError(`config.yaml: ${place}.base_url is not a URL: "${base_url}".`);
  }
}

/** A name is the part of a model id before its first slash. */
const PROVIDER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

function checkProviders({ model, providers }: FileConfig): void {
  for (const [name, provider] of Object.entries(providers)) {
    if (!PROVIDER_NAME.test(name)) {
      throw new ConfigError(
        `config.yaml: providers must have names of letters, digits, ".", "_" and "-", not "${name}".`,
      );
    }
    if (name === 'builtin' || name === model.provider) {
      throw new ConfigError(`config.yaml: providers.${name} has the name of another provider; give it its own.`);
    }
    checkProvider(`providers.${name}`, provider.kind, provider);
  }
}

function checkedAgents(file: FileConfig, env: NodeJS.ProcessEnv): AgentTarget[] {
  const read = readAgentSections(file.runner, file.agents, {
    taken: [BUILTIN_MODEL_ID, file.model.provider, ...Object.keys(file.providers)],
    personsFolder: env.HOME || os.homedir(),
  });
  if ('problem' in read) throw new ConfigError(`config.yaml: ${read.problem}`);
  return read.agents;
}

function checkedMcpServers(
  { mcp_servers }: FileConfig,
  variables: Record<string, string | undefined>,
  env: NodeJS.ProcessEnv,
): McpServerSettings[] {
  const surroundings = { variables, commandEnv: pickCommandEnv(env), userHome: env.HOME || os.homedir() };
  const { servers, problem } = readMcpServers(mcp_servers, surroundings);
  if (problem !== null) throw new ConfigError(`config.yaml: ${problem}.`);
  return servers;
}

function readKey(
  place: string,
  kind: ProviderKind | 'builtin',
  { api_key_env }: ProviderFields,
  variables: Record<string, string | undefined>,
): string | null {
  const name = api_key_env ?? (kind === 'builtin' ? null : PROVIDER_DEFAULTS[kind].apiKeyEnv);
  if (name === null) return null;
  const key = variables[name]?.trim();
  if (!key && kind !== 'builtin') {
    throw new ConfigError(
      // A name in other letters may be the key itself.
      `The variable ${/^[A-Z][A-Z0-9_]*$/.test(name) ? name : 'that is named there'} (${place}.api_key_env) holds no key, ` +
        `and ${place === 'model' ? 'model.provider' : place} "${kind}" needs it. Set it in the environment or in <home>/.env.`,
    );
  }
  return key || null;
}

const trimBasePath = (text: string): string => text.replace(/\/+$/, '');

/** Keys of the file that the schema does not know, in the sections that other programs share. */
function unknownKeys(file: FileConfig): string[] {
  const known = (schema: TSchema): string[] => Object.keys((schema as unknown as { properties: object }).properties);
  const found: string[] = [];
  for (const key of Object.keys(file)) if (!known(ConfigFile).includes(key)) found.push(key);
  for (const section of ['model', 'agent', 'approvals'] as const) {
    const schema = ConfigFile.properties[section];
    for (const key of Object.keys(file[section])) if (!known(schema).includes(key)) found.push(`${section}.${key}`);
  }
  return [...found, ...unknownMcpKeys(file.mcp_servers)];
}
