/**
 * MCP servers as the configuration names them: `mcp_servers.<name>`, in the form that a Hermes config.yaml has. Owns what
 * a section may hold and what it comes to; reads neither the file nor the environment.
 *
 * A value may name variables as `${NAME}`. One that is not set costs that server, not the start.
 */
import path from 'node:path';
import Type, { type Static } from 'typebox';
import { isSecretName, SHORTEST_SECRET } from '../core/secret-names.ts';

const Scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
const Seconds = Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 86_400 }));
const Names = Type.Union([Type.String(), Type.Array(Type.String())]);

/** `mcp_servers`: what is not known in a section is reported, because other programs have more there. */
export const McpServersSection = Type.Record(
  Type.String({ minLength: 1 }),
  Type.Object(
    {
      command: Type.Optional(Type.String({ minLength: 1 })),
      args: Type.Optional(Type.Array(Scalar)),
      env: Type.Optional(Type.Record(Type.String(), Scalar)),
      cwd: Type.Optional(Type.String({ minLength: 1 })),
      url: Type.Optional(Type.String({ minLength: 1 })),
      headers: Type.Optional(Type.Record(Type.String(), Scalar)),
      enabled: Type.Optional(Type.Boolean()),
      timeout: Seconds,
      connect_timeout: Seconds,
      tools: Type.Optional(
        Type.Object({ include: Type.Optional(Names), exclude: Type.Optional(Names) }, { additionalProperties: true }),
      ),
    },
    { additionalProperties: true },
  ),
);

type Section = Static<typeof McpServersSection>[string];

export interface McpServerSettings {
  /** As a person wrote it. */
  name: string;
  transport:
    | { kind: 'stdio'; command: string; args: string[]; env: Record<string, string>; folder: string }
    | { kind: 'http'; url: string; headers: Record<string, string> };
  /** Most seconds of a call, and of the way to the list of its tools. */
  timeoutS: number;
  connectTimeoutS: number;
  /** Names of its own of the tools that are wanted; null for all of them. */
  include: readonly string[] | null;
  exclude: readonly string[];
  /** Why it cannot be used as it is configured, in words; null when it can. */
  unusable: string | null;
  /** What of it is not to be shown to anybody. */
  secrets: readonly string[];
}

/** As Hermes has them. */
const [TIMEOUT_S, CONNECT_TIMEOUT_S] = [120, 60];
/** Longest name of a server. */
const MAX_NAME = 64;

export interface Surroundings {
  /** The environment, and what `<home>/.env` adds to it. */
  variables: Readonly<Record<string, string | undefined>>;
  /** All that a program has of the environment, its own `env` apart. */
  commandEnv: Readonly<Record<string, string>>;
  /** Folder to start in; also `~`. */
  userHome: string;
}

/**
 * Brings checked sections into settings, in their order; those that are not enabled are left out.
 * @returns `problem`: what is wrong with the sections, with its key
 */
export function readMcpServers(
  sections: Static<typeof McpServersSection>,
  surroundings: Surroundings,
): { servers: McpServerSettings[]; problem: string | null } {
  const servers: McpServerSettings[] = [];
  for (const [name, section] of Object.entries(sections)) {
    const problem = problemOf(name, section);
    if (problem !== null) return { servers: [], problem };
    if (section.enabled !== false) servers.push(settingsOf(name, section, surroundings));
  }
  return { servers, problem: null };
}

/** Keys that are not understood, with their places. */
export function unknownMcpKeys(sections: Static<typeof McpServersSection>): string[] {
  const known = ['command', 'args', 'env', 'cwd', 'url', 'headers', 'enabled', 'timeout', 'connect_timeout', 'tools'];
  return Object.entries(sections).flatMap(([name, section]) => [
    ...Object.keys(section).flatMap((key) => (known.includes(key) ? [] : `mcp_servers.${name}.${key}`)),
    ...Object.keys(section.tools ?? {}).flatMap((key) =>
      key === 'include' || key === 'exclude' ? [] : `mcp_servers.${name}.tools.${key}`,
    ),
  ]);
}

/** Nothing that a value holds is repeated: it may be a secret. */
function problemOf(name: string, { command, url }: Section): string | null {
  const place = `mcp_servers.${name}`;
  if (name.length > MAX_NAME || /[\x00-\x1f\x7f]/.test(name)) {
    return `mcp_servers has a name that is longer than ${MAX_NAME} characters or has signs that cannot be seen`;
  }
  if (command === undefined && url === undefined) return `${place} needs a command (stdio) or a url (HTTP)`;
  if (command !== undefined && url !== undefined) return `${place} has a command and a url; it can be only one of them`;
  return url === undefined || url.includes('${') || isAddress(url) ? null : `${place}.url is no http or https address`;
}

function settingsOf(
  name: string,
  section: Section,
  { variables, commandEnv, userHome }: Surroundings,
): McpServerSettings {
  const missing = new Set<string>();
  const secrets = new Set<string>();
  const filled = (value: string | number | boolean): string =>
    String(value).replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_whole, variable: string) => {
      const found = variables[variable];
      if (found === undefined || found === '') missing.add(variable);
      else if (found.length >= SHORTEST_SECRET) secrets.add(found);
      return found ?? '';
    });
  const filledAll = (values: Section['env'] = {}): Record<string, string> =>
    Object.fromEntries(
      Object.entries(values).map(([key, value]) => {
        const text = filled(value);
        if (isSecretName(key) && text.length >= SHORTEST_SECRET) secrets.add(text);
        return [key, text];
      }),
    );
  const place = (text: string): string => path.resolve(userHome, text.replace(/^~(?=\/|$)/, userHome));
  const list = (names: string | string[] | undefined): string[] =>
    typeof names === 'string' ? [names] : (names ?? []);
  const include = list(section.tools?.include);
  const transport: McpServerSettings['transport'] =
    section.url === undefined
      ? {
          kind: 'stdio',
          command: filled(section.command!).replace(/^~(?=\/)/, userHome),
          args: (section.args ?? []).map(filled),
          env: { ...commandEnv, ...filledAll(section.env) },
          folder: section.cwd === undefined ? userHome : place(filled(section.cwd)),
        }
      : { kind: 'http', url: filled(section.url), headers: filledAll(section.headers) };
  return {
    name,
    transport,
    timeoutS: section.timeout ?? TIMEOUT_S,
    connectTimeoutS: section.connect_timeout ?? CONNECT_TIMEOUT_S,
    include: include.length > 0 ? include : null,
    exclude: list(section.tools?.exclude),
    unusable: unusableWords([...missing], transport),
    secrets: [...secrets],
  };
}

function unusableWords(missing: readonly string[], transport: McpServerSettings['transport']): string | null {
  if (missing.length > 0) return `the variable ${missing.join(', ')} is not set`;
  return transport.kind === 'http' && !isAddress(transport.url) ? 'its url is no http or https address' : null;
}

const isAddress = (url: string): boolean => URL.canParse(url) && /^https?:/i.test(url);
