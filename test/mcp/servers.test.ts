/** MCP servers over stdio and HTTP, good and bad: connecting, tools, calls, trouble. Real processes and sockets. */
import { describe, expect, it } from 'vitest';
import { logFile, mcpBench, sentTo, startHttpMcp, stdioServer, variable } from '../support/mcp.ts';
import { processesWith } from '../support/processes.ts';
import { toolContext } from '../support/tool-context.ts';
import { until } from '../support/until.ts';

/** The same server, however it is spoken to. */
const WAYS: [string, (...flags: string[]) => Promise<object>][] = [
  ['stdio', async (...flags) => stdioServer(...flags)],
  ['streamable HTTP', async (...flags) => ({ url: (await startHttpMcp('--http', ...flags)).url })],
  ['HTTP with server-sent events', async (...flags) => ({ url: (await startHttpMcp('--sse', ...flags)).url })],
];

describe.each(WAYS)('over %s', (way, section) => {
  it('[MC1] its tools are listed page by page, called, and what they say is read', async () => {
    const bench = await mcpBench({ own: await section('--tools', '120') });
    const tools = await bench.tools();
    expect([...tools.keys()].filter((name) => name.startsWith('own__tool_'))).toHaveLength(120);
    expect(tools.get('own__echo')).toMatchObject({ effect: 'call', description: 'The tool echo.' });
    expect(await bench.call('own__echo', { text: 'hello' })).toEqual({ result: 'echo: hello', is_error: false });
    expect(await bench.call('own__add', { a: 2, b: 3 })).toMatchObject({ result: '{\n  "sum": 5\n}' });
    expect(await bench.call('own__fail')).toEqual({ result: 'it did not work', is_error: true });
    expect(await bench.call('own__refuse')).toMatchObject({
      is_error: true,
      result: expect.stringMatching(/these arguments are refused/),
    });
    expect(bench.servers.view()).toMatchObject([{ name: 'own', status: 'ready' }]);
  });

  if (way.includes('events')) return; // What follows is the same there, for the transport is the SDK's.

  it('[MC4] a call that is stopped tells the server so, and its progress is shown until then', async () => {
    const log = await logFile();
    const bench = await mcpBench({ own: await section('--log', log) });
    const progress = toolContext(null);
    expect(await bench.call('own__steps', { count: 3 }, progress)).toMatchObject({ result: 'all steps are done' });
    expect(progress.outputs.join('')).toBe('1/3 step 1\n2/3 step 2\n3/3 step 3\n');

    const abort = new AbortController();
    const stopped = bench.call('own__wait', {}, toolContext(null, abort.signal));
    await until('it waits', async () => (await sentTo(log)).some(({ params }) => params?.name === 'wait'));
    abort.abort();
    expect(await stopped).toMatchObject({ is_error: true });
    await until('it was told', async () =>
      (await sentTo(log)).some(({ method }) => method === 'notifications/cancelled'),
    );
    expect(await bench.call('own__echo', { text: 'again' })).toMatchObject({ result: 'echo: again' });
  });

  it('[MC4] a call that takes too long ends as a result, and the next one works', async () => {
    const bench = await mcpBench({ own: { ...(await section()), timeout: 0.2 } });
    expect(await bench.call('own__sleep')).toEqual({
      result: 'The call was stopped after 0.2 s. Whether it was done is not known.',
      is_error: true,
    });
    expect(await bench.call('own__echo', { text: 'again' })).toMatchObject({ result: 'echo: again' });
  });

  it('[MC1] a list that changes is read again', async () => {
    const bench = await mcpBench({ own: await section() });
    await bench.call('own__change');
    await until('the new tool is there', async () => (await bench.tools()).has('own__late'));
    expect(await bench.call('own__late')).toMatchObject({ result: 'late ran' });
  });
});

it('[MC4] a call over HTTP that is given up leaves no connection, also where the server ignores that', async () => {
  const log = await logFile();
  const bench = await mcpBench({ own: { url: (await startHttpMcp('--http', '--log', log)).url, timeout: 0.3 } });
  await bench.call('own__sleep');
  await until('it is closed', async () => (await sentTo(log)).some(({ method }) => method === 'test/closed'));
});

it('[MC2] a server that dies in a call costs that call: the agent is told, and the next call finds it again', async () => {
  const bench = await mcpBench({ own: stdioServer() });
  expect(await bench.call('own__die')).toEqual({
    result:
      'The MCP server "own" broke off during the call: it was ended by SIGKILL. Whether it was done is not known.',
    is_error: true,
  });
  const back = () => bench.call('own__echo', { text: 'back' });
  await until('it is back', async () => (await back()).result === 'echo: back');
});

it('[MC2] a server that is stuck in a call and answers no ping is ended, and started anew', async () => {
  const bench = await mcpBench({ own: { ...stdioServer(), timeout: 0.5 } });
  expect(await bench.call('own__spin')).toMatchObject({ is_error: true });
  await until('it is given up', () => bench.servers.view()[0]!.error === 'it no longer answers');
  await until('it is back', async () => (await bench.call('own__echo', { text: 'back' })).result === 'echo: back');
});

it('[MC2] a server at an address that dies in a call, is away, and comes back', async () => {
  const first = await startHttpMcp('--http');
  const port = new URL(first.url).port;
  const bench = await mcpBench({ own: { url: first.url } });
  expect(await bench.call('own__die')).toMatchObject({
    is_error: true,
    result: expect.stringMatching(/broke off during the call/),
  });
  expect(await bench.call('own__echo', { text: 'x' })).toMatchObject({
    is_error: true,
    result: expect.stringMatching(/Nothing was done/),
  });
  await startHttpMcp('--http', '--port', port);
  await until('it is back', async () => (await bench.call('own__echo', { text: 'back' })).result === 'echo: back');
});

it('[MC2] a server at an address that was started anew meanwhile is called as if nothing had been', async () => {
  const first = await startHttpMcp('--http');
  const bench = await mcpBench({ own: { url: first.url } });
  await bench.call('own__echo', { text: 'x' });
  await first.stop();
  await startHttpMcp('--http', '--port', new URL(first.url).port);
  expect(await bench.call('own__echo', { text: 'y' })).toEqual({ result: 'echo: y', is_error: false });
});

it('[MC2] servers that cannot be used are named with why, and the others work', async () => {
  const away = await startHttpMcp('--http');
  await away.stop();
  const bench = await mcpBench({
    good: stdioServer('--garbage'),
    silent: { ...stdioServer('--slow', 'never'), connect_timeout: 0.5 },
    gone: { url: away.url },
    absent: { command: 'no-such-command-anywhere' },
    dead: { command: process.execPath, args: ['-e', 'console.error("no licence"); process.exit(7)'] },
    keyless: { url: 'http://127.0.0.1:9/mcp', headers: { Authorization: `Bearer ${variable('NOT_SET')}` } },
    locked: { url: (await startHttpMcp('--http', '--token', 'abcdefgh')).url },
    chatty: {
      command: process.execPath,
      args: ['-e', 'process.stdout.write("x".repeat(17e6)); setInterval(() => {}, 9)'],
    },
  });
  const { told, tools } = await bench.turn();
  expect(tools.every(({ name }) => name.startsWith('good__'))).toBe(true);
  expect(tools.length).toBeGreaterThan(5);
  const why = (name: string, words: string) => `The tools of the MCP server "${name}" are missing: ${words}.`;
  expect(told.filter((text) => !text.startsWith('Waiting'))).toEqual([
    why('silent', 'it did not answer within 0.5 s'),
    why('gone', 'it cannot be reached (ECONNREFUSED)'),
    why('absent', 'its command, or the folder to start it in, was not found'),
    why('dead', 'it ended with code 7: no licence'),
    why('keyless', 'the variable NOT_SET is not set'),
    why('locked', 'it refused the credentials (HTTP 401)'),
    why('chatty', 'it sent a message that is too long'),
  ]);
  expect(await bench.call('good__echo', { text: 'through garbage' })).toMatchObject({
    result: 'echo: through garbage',
  });
});

it('[MC2] a turn waits for a server once: not when it has failed before', async () => {
  const bench = await mcpBench({ silent: { ...stdioServer('--slow', 'never'), connect_timeout: 2 } });
  expect((await bench.turn()).told).toEqual([
    'Waiting for MCP servers to start: silent.',
    'The tools of the MCP server "silent" are missing: it did not answer within 2 s.',
  ]);
  await until('it is tried again', () => bench.servers.view()[0]!.status === 'connecting');
  await bench.turn();
  expect(bench.servers.view()[0]!.status).toBe('connecting');
});

it('[MC2] a turn that is stopped does not wait for a server', async () => {
  const bench = await mcpBench({ silent: stdioServer('--slow', 'never') });
  const abort = new AbortController();
  const turn = bench.turn(abort.signal);
  abort.abort();
  expect(await turn).toEqual({ told: [], tools: [] });
  expect(bench.servers.view()).toMatchObject([{ name: 'silent', status: 'connecting' }]);
});

it('[MC3] of a server that lies about its tools those that can be used are used, and the others are named', async () => {
  const bench = await mcpBench({ own: { ...stdioServer('--lies'), tools: { exclude: ['die', 'exit'] } } });
  const tools = await bench.tools();
  expect(tools.has('own__die')).toBe(false);
  const [view] = bench.servers.view();
  expect(view!.left_out).toEqual([
    { name: 'no_object', reason: 'its input schema is no object' },
    { name: 'of_a_string', reason: 'its input schema describes no object' },
    { name: 'huge', reason: expect.stringContaining('32768 are the most') },
    { name: 'deep', reason: 'its input schema is nested too deep' },
    { name: 'wrong_properties', reason: 'its properties are no object' },
    { name: '?', reason: expect.stringContaining('no name') },
    { name: 'twice', reason: 'its server has another tool of this name' },
    { name: '?', reason: expect.stringContaining('no name') },
    { name: '?', reason: expect.stringContaining('no name') },
    { name: 'task', reason: expect.stringContaining('as a task') },
  ]);
  expect(bench.logged()).toContain('a tool is left out');
  // The result is not held against what the tool says of it.
  expect(await bench.call('own__lying_output')).toMatchObject({ result: 'lying_output ran' });
});

it('[MC4] a list of tools without an end is read so far as one message may be long, and that is said', async () => {
  const log = await logFile();
  const bench = await mcpBench({
    pages: stdioServer('--endless', 'pages', '--log', log),
    items: stdioServer('--endless', 'items'),
  });
  const tools = await bench.tools();
  expect([...tools.keys()].filter((name) => name.startsWith('pages__'))).toHaveLength(3);
  expect(tools.has('items__echo')).toBe(true);
  expect((await sentTo(log)).filter(({ method }) => method === 'tools/list')).toHaveLength(4);
  for (const { left_out } of bench.servers.view()) {
    expect(left_out.length).toBeLessThanOrEqual(2001);
    expect(left_out.at(-1)).toEqual({ name: '…', reason: expect.stringContaining('too long') });
  }
});

it('[MC4] results of every kind become text, and a long one is cut with its length', async () => {
  const bench = await mcpBench({ own: stdioServer() });
  const { result } = await bench.call('own__kinds');
  expect(result.split('\n\n')).toEqual([
    'words',
    '[image of type image/png, 70 bytes; it cannot be shown here]',
    '[audio of type audio/wav, 70 bytes; it cannot be shown here]',
    '[resource file:///a.txt]\nwords of a resource',
    '[resource file:///a.bin, application/zip, 70 bytes; it cannot be shown here]',
    '[resource file:///b.txt: b.txt]',
    '{"type":"hologram","depth":3}',
    'no object at all',
  ]);
  const big = (await bench.call('own__big', { size: 100_000 })).result;
  expect(big).toMatch(/x\n\[34464 more characters are cut here\.\]$/);
  expect(await bench.call('own__long')).toMatchObject({
    is_error: true,
    result: expect.stringMatching(/a message that is too long/),
  });
});

it('[MC5] a key of a server is in no result, log or view', async () => {
  const key = 'very-secret-key-0815';
  const env = { API_KEY: variable('MY_KEY') };
  const bench = await mcpBench({ own: { ...stdioServer(), env } }, { MY_KEY: key });
  const context = toolContext(null);
  expect((await bench.call('own__key', {}, context)).result).toBe('my key is [hidden]');
  expect(context.outputs).toEqual(['1 I use [hidden]\n']);
  expect((await bench.tools()).get('own__key')!.description).toBe('It knows [hidden].');
  expect((await bench.call('own__exit', { code: 4 })).result).toContain(
    'ended with code 4: giving up, my key is [hidden]',
  );
  await until('it is away', () => bench.servers.view()[0]!.status !== 'ready');
  expect(bench.logged()).toContain('giving up');
  expect(bench.logged() + JSON.stringify(bench.servers.view())).not.toContain(key);
});

it('[MC6] a server ends with all that it started, though it ignores TERM and the end of its input', async () => {
  const mark = `family-${process.pid}-${Math.random()}`;
  const bench = await mcpBench({ own: stdioServer('--stubborn', '--family', '--mark', mark) });
  await bench.tools();
  await until('its family is there', () => processesWith(mark).length === 3);
  await bench.servers.close();
  expect(processesWith(mark)).toEqual([]);
  expect(bench.programs.running()).toBe(0);
});

it('[MC6] what a server that died has left behind is ended', async () => {
  const mark = `left-${process.pid}-${Math.random()}`;
  const bench = await mcpBench({ own: stdioServer('--family', '--mark', mark) });
  await bench.tools();
  const family = await until('its family is there', () => {
    const found = processesWith(mark);
    return found.length === 3 && found;
  });
  await bench.call('own__die');
  await until('it is gone with them', () => !processesWith(mark).some((pid) => family.includes(pid)));
});
