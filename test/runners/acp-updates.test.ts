/** What an agent of another make tells while it works, as the events of a run (server/runners/acp/updates.ts). */
import { describe, expect, it } from 'vitest';
import { createTurnUpdates, type TurnUpdates } from '../../server/runners/acp/updates.ts';
import type { RunnerEvent } from '../../server/runners/runner.ts';

const CWD = '/home/me/project';

/** A turn whose clock goes on by hand, and everything that it told. */
function turn(ledger: { cost: number | null } = { cost: 0 }) {
  let time = 1000;
  const updates = createTurnUpdates({ now: () => time, cwd: CWD, ledger });
  const events: RunnerEvent[] = [];
  const keep = (made: RunnerEvent[]) => {
    events.push(...made);
    return made;
  };
  const take = (sessionUpdate: string, fields: object) => keep(updates.take({ sessionUpdate, ...fields }));
  return {
    updates,
    events,
    pass: (seconds: number) => {
      time += seconds;
    },
    say: (text: string, messageId?: string) =>
      take('agent_message_chunk', { content: { type: 'text', text }, ...(messageId ? { messageId } : {}) }),
    think: (text: string, messageId?: string) =>
      take('agent_thought_chunk', { content: { type: 'text', text }, ...(messageId ? { messageId } : {}) }),
    call: (toolCallId: string, fields: object = {}) => take('tool_call', { toolCallId, title: 'x', ...fields }),
    change: (toolCallId: string, fields: object) => take('tool_call_update', { toolCallId, ...fields }),
    take,
    announce: (toolCall: object) => keep(updates.announce(toolCall)),
    terminal: (...args: Parameters<TurnUpdates['terminalOutput']>) => keep(updates.terminalOutput(...args)),
    end: (usage: unknown = null) => keep(updates.promptEnded(usage)),
  };
}

const types = (events: RunnerEvent[]): string[] => events.map(({ type }) => type);
const text = (value: string) => [{ type: 'content', content: { type: 'text', text: value } }];
const payload = <T extends RunnerEvent['type']>(events: RunnerEvent[], type: T) =>
  events.flatMap((event) =>
    event.type === type ? [event.payload as Extract<RunnerEvent, { type: T }>['payload']] : [],
  );

/** A whole call, and how it is shown. */
function shown(fields: object, end: object = { status: 'completed' }) {
  const made = turn();
  made.call('1', { status: 'in_progress', ...fields });
  made.change('1', end);
  return { start: payload(made.events, 'tool.start')[0]!, complete: payload(made.events, 'tool.complete')[0]! };
}

describe('text and thoughts', () => {
  it('[AC2] each chunk is one delta, in a message that has begun', () => {
    const { say, think, events } = turn();
    think('Hm.');
    say('Hel');
    say('lo');
    expect(events).toEqual([
      { type: 'message.start', payload: {} },
      { type: 'reasoning.delta', payload: { text: 'Hm.' } },
      { type: 'message.delta', payload: { text: 'Hel' } },
      { type: 'message.delta', payload: { text: 'lo' } },
    ]);
  });

  it('[AC2] another message id begins another message; thoughts with an id of their own go with what follows them', () => {
    const { say, think, events } = turn();
    think('First I look.', 'thought-1');
    say('I look.', 'text-1');
    think('Found.', 'thought-2');
    say('Here it is.', 'text-2');
    const start = 'message.start';
    expect(types(events)).toEqual([
      start,
      'reasoning.delta',
      'message.delta',
      start,
      'reasoning.delta',
      'message.delta',
    ]);
  });

  it('[AC2] a character that was cut between two chunks is whole; half of one is replaced', () => {
    const { say, end, events } = turn();
    say('a\ud83d');
    say('\ude00b\ud83d');
    end();
    expect(payload(events, 'message.delta').map((delta) => delta.text)).toEqual(['a', '😀b', '\uFFFD']);
  });

  it('[AC2] what is no text is named in its place', () => {
    const { take, events } = turn();
    const chunk = (content: unknown) => take('agent_message_chunk', { content });
    chunk({ type: 'image', mimeType: 'image/png', data: 'AAAA' });
    chunk({ type: 'resource_link', name: 'notes', uri: 'file:///n.md' });
    chunk({ type: 'resource', resource: { uri: 'file:///a.txt', text: 'inside' } });
    chunk({ type: 'resource', resource: { uri: 'file:///a.bin', blob: 'AAAAAAAA' } });
    chunk({ type: 'audio', mimeType: 'audio/wav', data: 'AAAA' });
    chunk({ type: 'hologram' });
    expect(payload(events, 'message.delta').map((delta) => delta.text)).toEqual([
      '[image, image/png, 3 bytes]',
      '[notes](file:///n.md)',
      'inside',
      '[file, file:///a.bin, 6 bytes]',
      '[audio, audio/wav, 3 bytes]',
    ]);
  });

  it('[AC2] a text without end is cut, and says so once', () => {
    const { say, events } = turn();
    for (let n = 0; n < 12; n += 1) say('x'.repeat(512 * 1024));
    const all = payload(events, 'message.delta')
      .map((delta) => delta.text)
      .join('');
    expect(all.length).toBeLessThan(4.1 * 1024 * 1024);
    expect(all.match(/too long and left out/g)).toHaveLength(1);
  });
});

it('[AC2] a chunk that is too long for one is cut in its middle, and what comes behind it is told', () => {
  const { say, events } = turn();
  say('x'.repeat(10 * 1024 * 1024));
  say('end');
  const deltas = payload(events, 'message.delta').map((delta) => delta.text);
  expect(deltas[0]).toMatch(/of 10485760 characters are left out here/);
  expect(deltas[0]!.length).toBeLessThan(600_000);
  expect(deltas[1]).toBe('end');
});

describe('tool calls', () => {
  it('[AC2] a call is announced when its input is known, and ends with its result and how long it ran', () => {
    const { call, change, pass, events } = turn();
    call('7', { title: 'Terminal', name: 'Bash', kind: 'execute', status: 'pending' });
    change('7', { title: 'ls -la' });
    expect(events).toEqual([]);
    change('7', { rawInput: { command: 'ls -la' } });
    expect(types(events)).toEqual(['message.start', 'tool.start']);
    pass(5);
    change('7', { status: 'in_progress' });
    pass(2);
    change('7', { status: 'completed', content: text('a\nb') });
    expect(events.slice(1)).toEqual([
      { type: 'tool.start', payload: { tool_id: '7', name: 'Bash', args: { command: 'ls -la' }, preview: 'ls -la' } },
      {
        type: 'tool.complete',
        payload: { tool_id: '7', name: 'Bash', result: 'a\nb', is_error: false, duration_s: 2 },
      },
    ]);
  });

  it('[AC2] a call whose input never comes is announced with the next thing that is told', () => {
    const { call, say, end, events } = turn();
    call('7', { status: 'pending' });
    say('So.');
    end();
    expect(types(events)).toEqual(['message.start', 'tool.start', 'message.delta', 'tool.complete']);
  });

  it('[AC2] all known calls are announced before one ends; what comes then begins another message', () => {
    const { call, change, say, events } = turn();
    call('a', { status: 'in_progress' });
    call('b', { status: 'pending' });
    change('a', { status: 'completed' });
    say('And now?');
    call('c', { status: 'in_progress' });
    change('b', { status: 'failed' });
    change('c', { status: 'completed' });
    const [start, begin, end] = ['message.start', 'tool.start', 'tool.complete'];
    expect(types(events)).toEqual([start, begin, begin, end, start, 'message.delta', begin, end, end]);
  });

  it('[AC2] calls that are open when the prompt ends have failed, and it is said that nobody knows how they ended', () => {
    const { call, change, end, events, updates } = turn();
    call('a', { status: 'in_progress' });
    change('a', { content: text('half of it') });
    expect(updates.busy()).toBe(true);
    end();
    expect(updates.busy()).toBe(false);
    const [ended] = payload(events, 'tool.complete');
    expect(ended).toMatchObject({ is_error: true, result: 'half of it\nThe agent did not say how this ended.' });
  });

  it('[AC2] an end is told once, and the end of a call of an earlier turn not at all', () => {
    const { call, change, events } = turn();
    call('a', { status: 'completed' });
    call('a', { status: 'completed' });
    change('a', { status: 'failed', content: text('late') });
    change('earlier', { status: 'completed', title: 'Read', content: text('late') });
    change('earlier', { content: text('late') });
    expect(types(events)).toEqual(['message.start', 'tool.start', 'tool.complete']);
  });

  it('[AC2] an id that is used again, or is none, is told as another one', () => {
    const { call, take, end, events } = turn();
    for (let n = 0; n < 2; n += 1) {
      call('a', { status: 'in_progress' });
      call('a', { status: 'completed' });
    }
    take('tool_call', { title: 'no id' });
    end();
    const ids = payload(events, 'tool.start').map((start) => start.tool_id);
    expect(new Set(ids).size).toBe(3);
    expect(payload(events, 'tool.complete').map((complete) => complete.tool_id)).toEqual(ids);
  });

  it('[AC2] a permission request announces its call; the time until the answer is not the time of the call', () => {
    const { call, announce, change, pass, events, updates } = turn();
    call('a', { status: 'pending', title: 'Edit', kind: 'edit' });
    announce({ toolCallId: 'a', title: 'Write notes.md' });
    announce({ toolCallId: 'b', title: 'Remove it', kind: 'delete' });
    pass(60);
    updates.answered({ toolCallId: 'a' }, 'yes');
    pass(1);
    change('a', { status: 'completed' });
    expect(payload(events, 'tool.start').map(({ name, preview }) => [name, preview])).toEqual([
      ['Edit', 'Write notes.md'],
      ['delete', 'Remove it'],
    ]);
    expect(payload(events, 'tool.complete')[0]?.duration_s).toBe(1);
  });

  it('[AC20] a call that the person denied is told as that, however its agent ends it; what it would change is no change', () => {
    const { call, change, events, updates } = turn();
    const content = [{ type: 'diff', path: '/work/a.txt', oldText: null, newText: 'new\n' }];
    call('a', { status: 'pending', title: 'Write', kind: 'edit', content });
    updates.answered({ toolCallId: 'a' }, 'no');
    change('a', { status: 'completed' });
    call('b', { status: 'pending', title: 'Write', kind: 'edit', content });
    updates.answered({ toolCallId: 'b' }, 'no');
    updates.answered({ toolCallId: 'b' }, 'yes');
    change('b', { status: 'completed' });
    // What it was allowed to do it has done, whatever was said to the rest; and nobody has said no by saying nothing.
    for (const [id, ...said] of [
      ['c', 'yes', 'no'],
      ['d', 'nothing'],
    ] as const) {
      call(id, { status: 'pending', title: 'Write', kind: 'edit', content });
      for (const word of said) updates.answered({ toolCallId: id }, word);
      change(id, { status: 'completed' });
    }
    const [no, yes, both, none] = payload(events, 'tool.complete');
    expect(no).toMatchObject({ denied: true, result: 'The person did not allow this.' });
    expect(no?.diff).toBeUndefined();
    for (const one of [yes, both, none]) {
      expect(one?.denied).toBeUndefined();
      expect(one?.diff).toContain('+new');
    }
  });

  it('[AC2] what is known of an open call can be asked for, all its updates together', () => {
    const { call, change, updates } = turn();
    call('a', { kind: 'execute', rawInput: { command: 'rm x' } });
    change('a', { title: 'Remove', rawInput: {} });
    const fields = { kind: 'execute', title: 'Remove', rawInput: { command: 'rm x' } };
    expect(updates.known('a')).toMatchObject({ id: 'a', fields });
    change('a', { status: 'completed' });
    expect(updates.known('a')).toBe(null);
  });

  it('[AC2] of calls that are open, and never end, so much is kept and no more; others go on', () => {
    const { call, change, updates, events } = turn();
    const rawInput = { command: 'x'.repeat(1024 * 1024) };
    for (let n = 0; n < 70; n += 1) call(`c${n}`, { kind: 'execute', rawInput });
    const isKept = (id: string): boolean => updates.known(id)?.fields.rawInput !== undefined;
    expect(Array.from({ length: 70 }, (_, n) => isKept(`c${n}`)).filter(Boolean)).toHaveLength(63);
    change('c69', { content: text('y'.repeat(2 * 1024 * 1024)), status: 'completed' });
    expect(payload(events, 'tool.complete')).toMatchObject([
      { result: expect.stringContaining('too much to be kept') },
    ]);
    change('c0', { content: text('done'), status: 'completed' });
    call('next', { kind: 'execute', rawInput });
    expect(isKept('next')).toBe(true);
    expect(payload(events, 'tool.start')).toHaveLength(71);
  });
});

describe('output', () => {
  it('[AC2] what the content of a running call has more is output; a fence around it is none', () => {
    const { call, change, events } = turn();
    call('a', { status: 'in_progress', kind: 'execute' });
    change('a', { content: text('```sh\none\n```\n') });
    change('a', { content: text('```sh\none\ntwo\n```\n') });
    change('a', { content: text('```sh\none\ntwo\n```\n') });
    change('a', { status: 'completed' });
    expect(payload(events, 'tool.output').map((output) => output.text)).toEqual(['one', '\ntwo']);
    expect(payload(events, 'tool.complete')[0]?.result).toBe('one\ntwo');
  });

  it('[AC2] a terminal of ours speaks in the call that shows it, also what it said before it was shown', () => {
    const { call, change, terminal, events } = turn();
    call('a', { status: 'in_progress', kind: 'execute' });
    expect(terminal('t1', 'early ')).toEqual([]);
    change('a', { content: [{ type: 'terminal', terminalId: 't1' }] });
    terminal('t1', 'late');
    terminal('other', 'not here');
    change('a', { status: 'completed', rawOutput: { exitCode: 0 } });
    expect(payload(events, 'tool.output').map((output) => output.text)).toEqual(['early ', 'late']);
    expect(payload(events, 'tool.complete')[0]?.result).toBe('early late');
  });

  it('[AC2] output that an agent tells beside the protocol is output, with the exit code', () => {
    const { call, change, events } = turn();
    call('a', { status: 'in_progress' });
    change('a', { _meta: { terminal_output: { terminal_id: 'a', data: 'one\n' } } });
    change('a', { _meta: { terminal_output_delta: { terminal_id: 'a', data: 'two' } } });
    change('a', { status: 'failed', _meta: { terminal_exit: { exit_code: 2, signal: null } } });
    expect(payload(events, 'tool.output')).toHaveLength(2);
    expect(payload(events, 'tool.complete')[0]?.result).toBe('one\ntwo\n[exit code 2]');
  });

  it('[AC2] output without end is bounded, and what is left out of a result is counted', () => {
    const { call, change, end, events } = turn();
    call('a', { status: 'in_progress' });
    let all = '';
    for (let n = 0; n < 40; n += 1) {
      all += `${n}`.repeat(20_000);
      change('a', { content: text(all) });
    }
    change('a', { status: 'completed' });
    const told = payload(events, 'tool.output').reduce((sum, output) => sum + output.text.length, 0);
    expect(told).toBeLessThan(300_000);
    expect(payload(events, 'tool.complete')[0]?.result).toMatch(/^0000.*characters are left out here.*3939$/s);
    expect(payload(events, 'tool.complete')[0]?.result.length).toBeLessThan(33_000);
    call('b', { status: 'in_progress', content: text(all) });
    end();
    expect(payload(events, 'tool.complete')[1]?.result).toMatch(/left out here.*did not say how this ended\.$/s);
    expect(payload(events, 'tool.complete')[1]?.result.length).toBeLessThan(33_000);
  });
});

describe('what a card shows', () => {
  it.each([
    ['the protocol field', { name: 'Bash', kind: 'execute' }, 'Bash'],
    ['a name beside the protocol', { _meta: { toolName: 'read_file' }, kind: 'read' }, 'read_file'],
    ['a name of an older adapter', { _meta: { claudeCode: { toolName: 'Edit' } }, kind: 'edit' }, 'Edit'],
    ['the head of a title', { title: 'terminal: ls', kind: 'execute' }, 'terminal'],
    ['the kind', { title: 'README.md', kind: 'read' }, 'read'],
    ['nothing', { title: 'Doing things', kind: 'other' }, 'tool'],
    ['no strings', { title: 7, kind: {}, name: [] }, 'tool'],
  ])('[AC2] the name of a tool: %s', (_, fields, name) => {
    expect(shown(fields).start.name).toBe(name);
  });

  it('[AC2] the title of a call whose input is not known yet is its name, where it is one word', () => {
    const { call, change, events } = turn();
    call('a', { title: 'webfetch', kind: 'fetch', status: 'pending', rawInput: {} });
    change('a', { title: 'https://example.org', status: 'in_progress', rawInput: { url: 'https://example.org' } });
    expect(payload(events, 'tool.start')[0]).toMatchObject({ name: 'webfetch', preview: 'https://example.org' });
  });

  it.each([
    ['a command', { kind: 'execute', title: 'Terminal', rawInput: { command: 'ls  -l\n' } }, 'ls -l'],
    ['a list of words', { kind: 'execute', rawInput: { command: ['bash', '-lc', 'echo hi'] } }, 'echo hi'],
    ['the title', { kind: 'read', title: 'Read a.txt' }, 'Read a.txt'],
    ['a title that begins with the name', { title: 'terminal: ls' }, 'ls'],
    ['another title with a colon', { title: 'error: none', name: 'Check' }, 'error: none'],
    ['a place', { kind: 'read', title: '', locations: [{ path: `${CWD}/src/a.txt` }] }, 'src/a.txt'],
    ['the input', { kind: 'search', title: null, rawInput: { q: 'x', n: 2, deep: {} } }, 'x · 2'],
    ['too much', { title: 'y'.repeat(1000) }, `${'y'.repeat(119)}…`],
  ])('[AC2] the line at its head: %s', (_, fields, preview) => {
    expect(shown(fields).start.preview).toBe(preview);
  });

  it('[AC2] arguments are an object, and bounded in size and depth', () => {
    expect(shown({ rawInput: 'ls' }).start.args).toEqual({ input: 'ls' });
    expect(shown({ rawInput: null, locations: [{ path: '/a' }] }).start.args).toEqual({ paths: ['/a'] });
    expect(shown({}).start.args).toEqual({});
    let deep: unknown = 'end';
    for (let n = 0; n < 10_000; n += 1) deep = [deep];
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`key${n}`, 'v']));
    for (const rawInput of [{ deep }, { long: 'z'.repeat(5_000_000) }, many, { s: '\ud800\0' }]) {
      const written = JSON.stringify(shown({ rawInput }).start.args);
      expect(written.length).toBeLessThan(100_000);
      expect(written).not.toContain('\\ud800');
    }
  });

  it('[AC2] changes of files are one diff, named from the folder of the session; a call that failed has changed nothing', () => {
    const content = [
      { type: 'diff', path: `${CWD}/src/a.txt`, oldText: 'one\n', newText: 'two\n' },
      { type: 'diff', path: '/else/b.txt', newText: 'new\n' },
    ];
    const { complete } = shown({ kind: 'edit', content });
    expect(complete.result).toBe('Changed "src/a.txt" (+1 −1 lines).\nCreated "/else/b.txt" (1 lines).');
    expect(complete.diff).toBe(
      '--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n--- /dev/null\n+++ b/else/b.txt\n@@ -0,0 +1,1 @@\n+new\n',
    );
    expect(shown({ content }, { status: 'failed', content: text('no') }).complete).not.toHaveProperty('diff');
  });

  it('[AC2] the result is the content, or what the tool put out raw, or says that there is none', () => {
    const result = (end: object) => shown({}, { status: 'completed', ...end }).complete.result;
    expect(result({ content: text('shown'), rawOutput: 'raw' })).toBe('shown');
    expect(result({ content: text('\u001b[31mred\u001b[0m') })).toBe('red');
    expect(result({ rawOutput: 'raw' })).toBe('raw');
    expect(result({ rawOutput: { output: 'out', metadata: {} } })).toBe('out');
    expect(result({ rawOutput: { content: text('from elsewhere') } })).toBe('from elsewhere');
    expect(result({ rawOutput: { n: 1 } })).toBe('{\n  "n": 1\n}');
    expect(result({})).toBe('(no output)');
    const failed = (end: object) => shown({}, { status: 'failed', ...end }).complete;
    expect(failed({ rawOutput: { error: { message: 'no such file' } } })).toMatchObject({
      is_error: true,
      result: 'no such file',
    });
    expect(failed({}).result).toBe('The agent says that this failed, and not why.');
  });
});

describe('as agents tell it', () => {
  it('[AC2] opencode: the folder first, then the input; what it puts out grows in the content', () => {
    const { call, change, announce, events } = turn();
    const rawInput = { command: 'echo one', description: 'a command', cwd: CWD };
    call('c', { title: 'bash', kind: 'execute', status: 'pending', rawInput: { cwd: CWD } });
    change('c', { title: 'echo one', kind: 'execute', status: 'in_progress', rawInput });
    announce({ toolCallId: 'c', title: 'echo one', status: 'pending', rawInput: { command: 'echo one' } });
    change('c', { status: 'in_progress', content: text('one\n') });
    change('c', { status: 'completed', content: text('one\n'), rawOutput: { output: 'one\n', metadata: { exit: 0 } } });
    expect(types(events)).toEqual(['message.start', 'tool.start', 'tool.output', 'tool.complete']);
    expect(events[1]).toMatchObject({ payload: { name: 'bash', args: rawInput, preview: 'echo one' } });
  });

  it('[AC2] codex: the words of its question are no result, and its books no arguments', () => {
    const { call, change, announce, events } = turn();
    const books = { call_id: 'c', turn_id: 't', started_at_ms: 1, parsed_cmd: [{ type: 'unknown' }] };
    const rawInput = { ...books, command: ['/bin/bash', '-lc', 'false'], cwd: CWD };
    const asked = { toolCallId: 'c', kind: 'execute', status: 'pending', title: 'false' };
    announce({ ...asked, content: text('Proposed: false'), rawInput });
    call('c', { kind: 'execute', status: 'in_progress', title: 'false', rawInput });
    change('c', { status: 'failed', rawOutput: { ...books, stdout: '', aggregated_output: '', exit_code: 3 } });
    const [start] = payload(events, 'tool.start');
    expect(start).toMatchObject({ args: { command: rawInput.command, cwd: CWD }, preview: 'false' });
    expect(start?.args).not.toHaveProperty('call_id');
    expect(payload(events, 'tool.complete')[0]).toMatchObject({ is_error: true, result: '(no output)\n[exit code 3]' });
  });

  it('[AC2] claude: parts of a file as the change, and none of its own words as output', () => {
    const { call, change, events } = turn();
    const _meta = { claudeCode: { toolName: 'Edit' } };
    call('c', { _meta, title: 'Edit', kind: 'edit', status: 'pending', rawInput: {}, content: [], locations: [] });
    const content = [{ type: 'diff', path: `${CWD}/a.txt`, oldText: 'one', newText: 'two' }];
    change('c', { _meta, title: 'Edit a.txt', rawInput: { file_path: `${CWD}/a.txt` }, content });
    change('c', { _meta, status: 'completed', rawOutput: 'The file was updated.' });
    expect(payload(events, 'tool.start')[0]).toMatchObject({ name: 'Edit', preview: 'Edit a.txt' });
    expect(payload(events, 'tool.complete')[0]).toMatchObject({
      result: 'The file was updated.',
      diff: '--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n',
    });
  });

  it('[AC2] qwen: a call that is first heard of in a question, and ends with its change', () => {
    const { change, announce, events } = turn();
    const content = [{ type: 'diff', path: 'a.txt', oldText: 'one\n', newText: 'two\n' }];
    const asked = { toolCallId: 'c', status: 'pending', title: 'a.txt: one => two', kind: 'edit' };
    announce({ ...asked, content, rawInput: { file_path: 'a.txt' } });
    change('c', { status: 'completed', content, _meta: { toolName: 'edit' }, rawOutput: { fileDiff: 'x' } });
    expect(payload(events, 'tool.start')[0]).toMatchObject({ name: 'edit', preview: 'a.txt: one => two' });
    expect(payload(events, 'tool.complete')[0]).toMatchObject({ result: 'Changed "a.txt" (+1 −1 lines).' });
  });
});

describe('plan and usage', () => {
  it('[AC2] a plan is the list of what the agent means to do; the same one is told once, a broken one not at all', () => {
    const { take, events } = turn();
    const entries = [
      { content: ' a\nb', status: 'in_progress' },
      { content: 'c', status: 'odd' },
      { status: 'pending' },
      7,
    ];
    take('plan', { entries });
    take('plan', { entries });
    take('plan', { entries: 'no list' });
    expect(events).toEqual([
      {
        type: 'todo.updated',
        payload: {
          todos: [
            { content: 'a b', status: 'in_progress' },
            { content: 'c', status: 'pending' },
          ],
        },
      },
    ]);
  });

  it('[AC2] what a prompt used is told at its end, before its first call that ends there', () => {
    const { say, call, take, end, events } = turn({ cost: 0.5 });
    say('Hm.');
    call('a', { status: 'in_progress' });
    take('usage_update', { used: 900, size: 1000, cost: { amount: 0.75, currency: 'USD' } });
    end({ inputTokens: 10, outputTokens: 5, cachedReadTokens: 100, cachedWriteTokens: 20, totalTokens: 135 });
    expect(types(events).slice(-2)).toEqual(['usage', 'tool.complete']);
    expect(payload(events, 'usage')).toEqual([
      {
        ...{ input_tokens: 130, output_tokens: 5, cached_tokens: 100 },
        ...{ cost_usd: 0.25, context_used: 900, context_length: 1000 },
      },
    ]);
  });

  it('[AC2] usage stands in a message that has begun also when the last thing was a call', () => {
    const { call, end, events } = turn();
    call('a', { status: 'completed' });
    end({ inputTokens: 1, outputTokens: 1, totalTokens: 2 });
    expect(types(events)).toEqual(['message.start', 'tool.start', 'tool.complete', 'message.start', 'usage']);
  });

  it('[AC2] a cost whose beginning is not known is not told; the next one is', () => {
    const { take, end, events } = turn({ cost: null });
    for (const amount of [2, 2.5]) {
      take('usage_update', { used: 1, size: 2, cost: { amount, currency: 'USD' } });
      end();
    }
    expect(payload(events, 'usage').map((usage) => usage.cost_usd)).toEqual([undefined, 0.5]);
  });

  it('[AC2] numbers that are none, and an agent that tells nothing, make no usage', () => {
    const { take, end, events } = turn();
    take('usage_update', { used: -1, size: '9', cost: { amount: Number.NaN, currency: 'USD' } });
    end({ inputTokens: 'many', outputTokens: -4 });
    end();
    expect(events).toEqual([]);
  });
});

it('[AC2] what an agent tells of its session, and what nobody knows, is no event of a run', () => {
  const { take, events, updates } = turn();
  const kinds = ['user_message_chunk', 'current_mode_update', 'config_option_update', 'available_commands_update'];
  for (const kind of [...kinds, 'session_info_update', 'notice', 'constructor', '__proto__']) {
    take(kind, { content: { type: 'text', text: 'x' }, title: 'x' });
  }
  for (const odd of [null, undefined, 7, 'x', [], [{}], {}, { sessionUpdate: {} }]) events.push(...updates.take(odd));
  expect(events).toEqual([]);
});
