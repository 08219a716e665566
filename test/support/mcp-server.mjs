/**
 * An MCP server of the tests, in plain Node and without the SDK, so that it can be as wrong as it likes.
 *
 *   node mcp-server.mjs [flags]          speaks over stdio
 *   node mcp-server.mjs --http [flags]   speaks streamable HTTP; its first line of output is its address
 *   node mcp-server.mjs --sse [flags]    speaks the older HTTP with server-sent events
 *
 * Flags: --log FILE       appends each message that it is sent, as a line of JSON, and `test/closed` for a call whose
 *                         connection was closed before its answer
 *        --tools N        has N more tools, `tool_1` and so on, in pages of 50
 *        --lies           has tools whose schemas are wrong in every way
 *        --endless KIND   its list has no end: of `pages`, of 4 MB each, or of `items` on one page
 *        --garbage        prints what is no JSON before and between its messages
 *        --slow MS        waits so long before it answers `initialize`; `--slow never` for ever
 *        --stubborn       ignores the end of its input and TERM
 *        --family         has two processes that ignore TERM, one of them in a session of its own
 *        --mark WORD      only to be found by it in the process table
 *
 * Tools: echo {text} · add {a, b} · fail · refuse · die · exit {code} · wait (until it is cancelled) · sleep (for ever, and
 * ignores that) · spin (and hears nothing more) · steps {count} (progress) · kinds (content of every kind) · big {size} · key (tells its API_KEY) ·
 * change (its list has `late` from then on) · long (a line of 17 MiB)
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

const flags = process.argv.slice(2);
const has = (flag) => flags.includes(`--${flag}`);
const value = (flag) => (has(flag) ? flags[flags.indexOf(`--${flag}`) + 1] : null);

if (has('stubborn')) process.on('SIGTERM', () => {});
if (has('family')) {
  const mark = value('mark') ?? 'family';
  const code = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); // ${mark}`;
  spawn(process.execPath, ['-e', code], { stdio: 'ignore' });
  spawn(process.execPath, ['-e', code], { stdio: 'ignore', detached: true }).unref();
}

const object = (properties = {}, required = []) => ({ type: 'object', properties, required });
const text = (words) => ({ content: [{ type: 'text', text: words }] });
const forever = () => new Promise(() => {});
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

let changed = false;
const cancels = new Map();

const TOOLS = {
  echo: [object({ text: { type: 'string' } }, ['text']), (args) => text(`echo: ${args.text}`)],
  add: [
    object({ a: { type: 'number' }, b: { type: 'number' } }, ['a', 'b']),
    (args) => ({ content: [], structuredContent: { sum: args.a + args.b } }),
  ],
  fail: [object(), () => ({ ...text('it did not work'), isError: true })],
  refuse: [
    object(),
    () => {
      throw Object.assign(new Error('these arguments are refused'), { rpc: -32602 });
    },
  ],
  die: [object(), () => process.kill(process.pid, 'SIGKILL')],
  exit: [
    object({ code: { type: 'integer' } }),
    (args) => {
      process.stderr.write(`giving up, my key is ${process.env.API_KEY ?? 'none'}\n`);
      process.exit(args.code ?? 3);
    },
  ],
  wait: [object(), (_args, { id }) => new Promise((resolve) => cancels.set(id, () => resolve(null)))],
  sleep: [object(), forever],
  spin: [
    object(),
    () => {
      for (;;);
    },
  ],
  steps: [
    object({ count: { type: 'integer' } }),
    async ({ count = 3 }, { token, say }) => {
      for (let at = 1; at <= count; at++) {
        say({
          method: 'notifications/progress',
          params: { progressToken: token, progress: at, total: count, message: `step ${at}` },
        });
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return text('all steps are done');
    },
  ],
  kinds: [
    object(),
    () => ({
      content: [
        { type: 'text', text: 'words' },
        { type: 'image', data: PIXEL, mimeType: 'image/png' },
        { type: 'audio', data: PIXEL, mimeType: 'audio/wav' },
        { type: 'resource', resource: { uri: 'file:///a.txt', mimeType: 'text/plain', text: 'words of a resource' } },
        { type: 'resource', resource: { uri: 'file:///a.bin', mimeType: 'application/zip', blob: PIXEL } },
        { type: 'resource_link', uri: 'file:///b.txt', name: 'b.txt' },
        { type: 'hologram', depth: 3 },
        'no object at all',
      ],
      structuredContent: { unused: 'the words say it' },
    }),
  ],
  big: [object({ size: { type: 'integer' } }), (args) => text('x'.repeat(args.size))],
  key: [
    object(),
    (_args, { token, say }) => {
      const message = `I use ${process.env.API_KEY}`;
      say({ method: 'notifications/progress', params: { progressToken: token, progress: 1, message } });
      return text(`my key is ${process.env.API_KEY}`);
    },
  ],
  change: [
    object(),
    (_args, { tell }) => {
      changed = true;
      tell({ method: 'notifications/tools/list_changed' });
      return text('changed');
    },
  ],
  long: [
    object(),
    () => {
      process.stdout.write('x'.repeat(17 * 1024 * 1024));
      return forever();
    },
  ],
};

const deep = () => {
  let schema = { type: 'object' };
  for (let at = 0; at < 200; at++) schema = { type: 'object', properties: { a: schema } };
  return schema;
};
const LIES = [
  { name: 'no_object', inputSchema: 'a schema' },
  { name: 'of_a_string', inputSchema: { type: 'string' } },
  { name: 'huge', inputSchema: object({ a: { type: 'string', description: 'x'.repeat(1024 * 1024) } }) },
  { name: 'deep', inputSchema: deep() },
  { name: 'wrong_properties', inputSchema: { type: 'object', properties: ['a'] } },
  { name: '', inputSchema: object() },
  { name: 'twice', inputSchema: object() },
  { name: 'twice', inputSchema: object() },
  'no tool',
  null,
  { name: 'task', inputSchema: object(), execution: { taskSupport: 'required' } },
  { name: 'none' },
  { name: 'no_type', inputSchema: { properties: { a: {} }, required: ['a', 'b', 3] } },
  {
    name: 'choice',
    inputSchema: { type: 'object', anyOf: [{ required: ['a'] }], $schema: 'x', properties: { a: {} } },
  },
  {
    name: 'loop',
    inputSchema: object({
      circle: { $ref: '#/$defs/a' },
      tree: { $ref: '#/$defs/tree' },
      nowhere: { $ref: '#/$defs/missing', description: 'kept' },
      elsewhere: { $ref: 'https://example.test/schema.json' },
      $ref: { type: 'string' },
    }),
    extra: true,
  },
  { name: 'ключ with spaces/and.dots', inputSchema: object() },
  { name: `long_${'n'.repeat(100)}`, inputSchema: object() },
  { name: 'lying_output', inputSchema: object(), outputSchema: { type: 'nonsense', required: 'x' } },
];
LIES.find((tool) => tool?.name === 'loop').inputSchema.$defs = {
  a: { $ref: '#/$defs/b' },
  b: { $ref: '#/$defs/a' },
  tree: object({ children: { type: 'array', items: { $ref: '#/$defs/tree' } } }),
};

function listOf() {
  const own = Object.entries(TOOLS).map(([name, [inputSchema]]) => ({
    name,
    description: name === 'key' ? `It knows ${process.env.API_KEY}.` : `The tool ${name}.`,
    inputSchema,
  }));
  const more = Array.from({ length: Number(value('tools') ?? 0) }, (_, at) => ({
    name: `tool_${at + 1}`,
    inputSchema: object(),
  }));
  return [...own, ...more, ...(has('lies') ? LIES : []), ...(changed ? [{ name: 'late', inputSchema: object() }] : [])];
}

const note = (message) => has('log') && appendFileSync(value('log'), `${JSON.stringify(message)}\n`);

/** @param ways `say` answers beside the request, `tell` tells everybody */
async function answer(message, ways) {
  note(message);
  const { id, method, params } = message;
  if (method === 'notifications/cancelled') cancels.get(params.requestId)?.();
  if (id === undefined) return null;
  try {
    const result = await resultOf(id, method, params ?? {}, ways);
    return result === null ? null : { jsonrpc: '2.0', id, result };
  } catch (error) {
    return { jsonrpc: '2.0', id, error: { code: error.rpc ?? -32603, message: error.message } };
  }
}

async function resultOf(id, method, params, ways) {
  switch (method) {
    case 'initialize': {
      const slow = value('slow');
      if (slow === 'never') await forever();
      if (slow) await new Promise((resolve) => setTimeout(resolve, Number(slow)));
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'test', version: '1' },
      };
    }
    case 'ping':
      return {};
    case 'tools/list': {
      const all = listOf();
      const from = Number(params.cursor ?? 0);
      const page = { name: `page_${from}`, inputSchema: object(), annotations: 'x'.repeat(4 * 1024 * 1024) };
      if (value('endless') === 'pages') return { tools: [page], nextCursor: String(from + 1) };
      if (value('endless') === 'items') return { tools: [...all, ...Array(100_000).fill(1)] };
      return {
        tools: all.slice(from, from + 50),
        ...(from + 50 < all.length ? { nextCursor: String(from + 50) } : {}),
      };
    }
    case 'tools/call': {
      const run =
        TOOLS[params.name]?.[1] ??
        (/^(tool_\d+|late|loop|lying_output)$/.test(params.name) ? () => text(`${params.name} ran`) : null);
      if (!run) throw Object.assign(new Error(`no tool ${params.name}`), { rpc: -32602 });
      return run(params.arguments ?? {}, { ...ways, id, token: params._meta?.progressToken });
    }
    default:
      throw Object.assign(new Error('method not found'), { rpc: -32601 });
  }
}

function stdio() {
  const put = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const garbage = () =>
    has('garbage') && process.stdout.write('Welcome!\n{ "no": json\n[1, 2]\n{"jsonrpc":"2.0"}\n\n\u0000\n');
  garbage();
  const lines = createInterface({ input: process.stdin });
  lines.on('line', async (line) => {
    garbage();
    const said = await answer(JSON.parse(line), { say: put, tell: put });
    if (said) put(said);
  });
  lines.on('close', () => (has('stubborn') ? setInterval(() => {}, 1000) : process.exit(0)));
}

function http() {
  const sessions = new Set();
  const listeners = new Set();
  const event = (message) => `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;
  const tell = (message) => {
    for (const response of listeners) response.write(event(message));
  };
  const isOld = has('sse');
  const server = createServer(async (request, response) => {
    if (value('token') && request.headers.authorization !== `Bearer ${value('token')}`)
      return response.writeHead(401).end();
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(isOld ? 'event: endpoint\ndata: /messages\n\n' : ': hello\n\n');
      listeners.add(response);
      response.on('close', () => listeners.delete(response));
      return;
    }
    if (request.method !== 'POST' || (isOld && request.url !== '/messages')) return response.writeHead(405).end();
    let body = '';
    for await (const chunk of request) body += chunk;
    const message = JSON.parse(body);
    if (isOld) {
      response.writeHead(202).end();
      const said = await answer(message, { say: tell, tell });
      if (said) tell(said);
      return;
    }
    const session = request.headers['mcp-session-id'];
    if (message.method !== 'initialize' && !sessions.has(session))
      return response.writeHead(404).end('no such session');
    if (message.id === undefined) {
      await answer(message, { tell });
      return response.writeHead(202).end();
    }
    const own = session ?? randomUUID();
    sessions.add(own);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'mcp-session-id': own });
    response.on('close', () => {
      if (!response.writableFinished) note({ method: 'test/closed', params: message.params });
      cancels.get(message.id)?.();
    });
    const said = await answer(message, { say: (one) => response.write(event(one)), tell });
    response.end(said ? event(said) : '');
  });
  server.listen(Number(value('port') ?? 0), '127.0.0.1', () =>
    console.log(`http://127.0.0.1:${server.address().port}/mcp`),
  );
}

if (has('http') || has('sse')) http();
else stdio();
