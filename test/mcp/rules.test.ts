/** What is decided about MCP servers without asking one: names, schemas, settings, what is handed to agents. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../server/config.ts';
import { mcpServersForAgents } from '../../server/mcp/for-agents.ts';
import { bounded } from '../../server/mcp/http-transport.ts';
import { createSafeSchema } from '../../server/mcp/input-schema.ts';
import { readCallResult } from '../../server/mcp/result-text.ts';
import { readMcpServers, unknownMcpKeys } from '../../server/mcp/settings.ts';
import { toolName } from '../../server/mcp/tool-names.ts';
import { createLineReader } from '../../server/workspace/line-reader.ts';
import { toolFaults } from '../support/fake-provider-tools.ts';
import { temporaryFolder } from '../support/home.ts';
import { variable } from '../support/mcp.ts';

describe('names', () => {
  it('[MC3] a name that fits stays as it is, and any other is legal, short, and its own', () => {
    expect(toolName('github', 'create_issue')).toBe('github__create_issue');
    expect(toolName('my server', 'a/b')).toMatch(/^my_server__a_b_[0-9a-f]{8}$/);
    expect(toolName('s', 'a.b')).not.toBe(toolName('s', 'a_b'));
    expect(toolName('a__b', 'c')).not.toBe(toolName('a', 'b__c'));
    expect(toolName('a_', 'b')).not.toBe(toolName('a', '_b'));
    expect(toolName('s', 'x'.repeat(80))).not.toBe(toolName('s', 'x'.repeat(81)));
  });

  it('[MC3] no two tools of any servers have one name', () => {
    const word = fc.string({ unit: fc.constantFrom('a', '_', '.', 'ü', '-'), minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(word, word, word, word, (server, tool, otherServer, otherTool) => {
        const name = toolName(server, tool);
        expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
        expect(toolName(server, tool)).toBe(name);
        if (server !== otherServer || tool !== otherTool) expect(toolName(otherServer, otherTool)).not.toBe(name);
      }),
    );
  });
});

describe('schemas', () => {
  const safeSchema = createSafeSchema();
  const faultsOf = (given: unknown): string[] => {
    const safe = safeSchema(given);
    return safe.ok ? toolFaults([{ type: 'function', function: { name: 'x', parameters: safe.schema } }]) : [];
  };

  it('[MC3] a good schema is passed on as it is', () => {
    const schema = {
      type: 'object',
      properties: { tree: { $ref: '#/$defs/tree' }, mode: { enum: ['a', { $ref: 'a word' }] } },
      required: ['tree'],
      additionalProperties: false,
      $defs: { tree: { type: 'object', properties: { children: { type: 'array', items: { $ref: '#/$defs/tree' } } } } },
    };
    expect(safeSchema(schema)).toEqual({ ok: true, schema });
    expect(faultsOf(schema)).toEqual([]);
  });

  it('[MC3] references in a circle, to nowhere and to elsewhere are taken out, and so are choices at the top', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      anyOf: [{ required: ['a'] }],
      properties: {
        a: { $ref: '#/$defs/b' },
        c: { $ref: '#/nowhere', description: 'kept' },
        d: { $ref: 'https://example.test/x.json' },
        $ref: { type: 'string' },
      },
      required: ['a', 'unknown', 7],
      $defs: { b: { $ref: '#/$defs/b2' }, b2: { $ref: '#/$defs/b' } },
    };
    expect(safeSchema(schema)).toEqual({
      ok: true,
      schema: {
        type: 'object',
        properties: { a: {}, c: { description: 'kept' }, d: {}, $ref: { type: 'string' } },
        required: ['a'],
        $defs: { b: {}, b2: {} },
      },
    });
  });

  it('[MC3] whatever a server sends as a schema is made safe or left out', () => {
    const value = fc.letrec((tie) => ({
      schema: fc.oneof(
        { maxDepth: 4 },
        fc.jsonValue(),
        fc.record(
          {
            type: fc.constantFrom('object', 'string', 3),
            properties: fc.dictionary(fc.constantFrom('a', 'b', '$ref', '__proto__'), tie('schema')),
            $ref: fc.constantFrom('#', '#/properties/a', '#/properties/b', '#/$defs/a', 'other', '#/anyOf/0'),
            $defs: fc.dictionary(fc.constantFrom('a', 'b'), tie('schema')),
            anyOf: fc.array(tie('schema'), { maxLength: 2 }),
            required: fc.oneof(fc.array(fc.constantFrom('a', 'x')), fc.constant('a')),
          },
          { requiredKeys: [] },
        ),
      ),
    })).schema;
    fc.assert(
      fc.property(value, (given) => {
        expect(faultsOf(given).filter((fault) => !fault.endsWith('another reference'))).toEqual([]);
      }),
    );
  });
});

describe('results', () => {
  it('[MC4] whatever a server answers to a call is a text that says something', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.jsonValue(), fc.record({ content: fc.jsonValue(), isError: fc.jsonValue() })),
        (answer) => {
          const { result } = readCallResult(answer, (text) => text);
          expect(result.trim()).not.toBe('');
          expect(result.isWellFormed()).toBe(true);
        },
      ),
    );
    let deep: unknown = 1;
    for (let at = 0; at < 50_000; at++) deep = [deep];
    expect(readCallResult({ structuredContent: deep }, (text) => text).is_error).toBe(true);
  });

  it('[MC4] lines come whole, however they are cut, until one is too long', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme' }).filter((line) => !/[\r\n]/.test(line))),
        fc.nat(9),
        (lines, cut) => {
          const read: string[] = [];
          const reader = createLineReader(1_000_000, (line) => read.push(line));
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
          for (let at = 0; at < bytes.length; at += cut + 1)
            expect(reader.push(bytes.subarray(at, at + cut + 1))).toBe(true);
          expect(read).toEqual(lines);
        },
      ),
    );
    const reader = createLineReader(10, () => {});
    expect(reader.push(Buffer.from('123456789\n1234567890\n123456'))).toBe(true);
    expect(reader.push(Buffer.from('78901'))).toBe(false);
  });

  it('[MC4] an answer over HTTP is given up when it is too long, and a stream only when one message is', async () => {
    const answering = (type: string, ...pieces: string[]) =>
      bounded(async () => {
        const body = new ReadableStream({
          start(controller) {
            for (const piece of pieces) controller.enqueue(Buffer.from(piece));
            controller.close();
          },
        });
        return new Response(body, { headers: { 'content-type': type } });
      }, 20);
    const read = async (fetched: ReturnType<typeof answering>) => (await fetched('http://x')).text();
    expect(await read(answering('application/json', '1234567890', '1234567890'))).toHaveLength(20);
    await expect(read(answering('application/json', '1234567890', '1234567890', '1'))).rejects.toThrow();
    expect(await read(answering('text/event-stream', ...Array(9).fill('data: 12345\n\n')))).toHaveLength(117);
    await expect(read(answering('text/event-stream', 'data: 1\n\n', 'data: 12345', '6789012345'))).rejects.toThrow();
  });
});

describe('settings', () => {
  const surroundings = { variables: { KEY: 'key-0123456789' }, commandEnv: { PATH: '/bin' }, userHome: '/home/me' };

  it('[MC1] a section is read as another program has it, with variables in its values', () => {
    const { servers } = readMcpServers(
      {
        files: {
          command: '~/bin/files',
          args: ['--port', 8080, variable('KEY')],
          env: { TOKEN: variable('KEY'), DEBUG: true },
          cwd: '~/work',
        },
        remote: {
          url: 'https://mcp.example.test/mcp',
          headers: { Authorization: `Bearer ${variable('KEY')}` },
          timeout: 5,
          tools: { include: 'one', exclude: ['two'] },
        },
        off: { command: 'x', enabled: false },
        without: { command: variable('ABSENT') },
      },
      surroundings,
    );
    expect(servers).toEqual([
      {
        name: 'files',
        transport: {
          kind: 'stdio',
          command: '/home/me/bin/files',
          args: ['--port', '8080', 'key-0123456789'],
          env: { PATH: '/bin', TOKEN: 'key-0123456789', DEBUG: 'true' },
          folder: '/home/me/work',
        },
        timeoutS: 120,
        connectTimeoutS: 60,
        include: null,
        exclude: [],
        unusable: null,
        secrets: ['key-0123456789'],
      },
      {
        name: 'remote',
        transport: {
          kind: 'http',
          url: 'https://mcp.example.test/mcp',
          headers: { Authorization: 'Bearer key-0123456789' },
        },
        timeoutS: 5,
        connectTimeoutS: 60,
        include: ['one'],
        exclude: ['two'],
        unusable: null,
        secrets: ['key-0123456789', 'Bearer key-0123456789'],
      },
      expect.objectContaining({ name: 'without', unusable: 'the variable ABSENT is not set' }),
    ]);
  });

  it('[MC1] what is wrong is named with its place, and what is not known is reported', () => {
    const problem = (section: object) => readMcpServers({ a: section }, surroundings).problem;
    expect(problem({})).toBe('mcp_servers.a needs a command (stdio) or a url (HTTP)');
    expect(problem({ command: 'x', url: 'http://x' })).toMatch(/only one of them/);
    expect(problem({ url: 'ftp://x/?key=secret' })).toBe('mcp_servers.a.url is no http or https address');
    const more: object = { auth: 'oauth', tools: { resources: false } };
    expect(unknownMcpKeys({ a: { command: 'x', ...more } })).toEqual([
      'mcp_servers.a.auth',
      'mcp_servers.a.tools.resources',
    ]);
  });

  it('[MC1][CF1] config.yaml names variables of the environment and of .env; a mistake is named, and no value is shown', async () => {
    const home = await temporaryFolder();
    const load = async (yaml: string) => {
      await writeFile(path.join(home, 'config.yaml'), yaml);
      return loadConfig({ home }, { PATH: '/usr/bin', HOME: '/home/me', OURS: 'from the environment' });
    };
    await writeFile(path.join(home, '.env'), 'THEIRS=from-the-file\n');
    const { mcpServers, unknownKeys } = await load(
      `mcp_servers:\n  a: {command: x, env: {ONE: "${variable('OURS')}", TWO: "${variable('THEIRS')}"}, sampling: {}}\n  b: {command: x, enabled: false}`,
    );
    expect(mcpServers.map(({ name }) => name)).toEqual(['a']);
    const env = { PATH: '/usr/bin', HOME: '/home/me', ONE: 'from the environment', TWO: 'from-the-file' };
    expect(mcpServers[0]!.transport).toMatchObject({ env, folder: '/home/me' });
    expect(unknownKeys).toEqual(['mcp_servers.a.sampling']);
    await expect(load('mcp_servers: {a: {args: [x]}}')).rejects.toThrow('mcp_servers.a needs a command (stdio)');
    await expect(load('mcp_servers: {a: {command: x, env: {KEY: [geheim]}}}')).rejects.toThrow(
      /^(?!.*geheim).*mcp_servers\.a\.env\.KEY/,
    );
  });

  it('[MC7] an agent is given the servers that it can use, and none that it could not be held to', () => {
    const { servers } = readMcpServers(
      {
        files: { command: 'files', args: ['-x'], env: { A: 'b' } },
        remote: { url: 'https://mcp.example.test/mcp', headers: { B: 'c' } },
        some: { command: 'some', tools: { exclude: ['delete'] } },
        without: { command: variable('ABSENT') },
      },
      surroundings,
    );
    const env = [
      { name: 'PATH', value: '/bin' },
      { name: 'A', value: 'b' },
    ];
    const files = { name: 'files', command: 'files', args: ['-x'], env };
    expect(mcpServersForAgents(servers, { http: false })).toEqual([files]);
    expect(mcpServersForAgents(servers, { http: true })).toEqual([
      files,
      { type: 'http', name: 'remote', url: 'https://mcp.example.test/mcp', headers: [{ name: 'B', value: 'c' }] },
    ]);
  });
});
