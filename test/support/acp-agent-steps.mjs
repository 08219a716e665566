/** The steps of the scripted agent (acp-agent.mjs, which says what each of them does). */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const REFUSED = 'The person did not allow this.';
const OPTIONS = ['allow_once', 'allow_always', 'reject_once'];

const unescaped = (text) => text.replaceAll('\\n', '\n').replaceAll('\\s', ' ');
const textBlock = (text) => ({ type: 'text', text });
const content = (text) => [{ type: 'content', content: textBlock(text) }];

/** Ends the prompt with an error of JSON-RPC. */
class PromptError extends Error {
  constructor(code, words) {
    super(words);
    this.code = code;
  }
}

/** Two children of the same process group that ignore TERM. */
export function grandchildren(link) {
  for (let n = 0; n < 2; n += 1) {
    const child = spawn('sh', ['-c', 'trap "" TERM; while :; do sleep 0.2; done'], { stdio: 'ignore' });
    link.notePid(child.pid);
  }
}

/** Plays a prompt. @returns the result of session/prompt */
export async function playScript(link, session, prompt) {
  const given = prompt.blocks.findLast(({ type }) => type === 'text')?.text ?? '';
  const told = { user: given, agent: '' };
  session.told.push(told);
  const play = createPlayer(link, session, prompt, told);
  const cancelled = new Promise((end) => {
    const stop = () => end({ stopReason: 'cancelled' });
    if (prompt.signal.aborted) stop();
    prompt.signal.addEventListener('abort', stop);
  });
  const played = (async () => {
    if (!given.startsWith('acp:')) {
      for (const chunk of `You said: ${given}`.match(/\S+\s*|\s+/g))
        await play(`say ${chunk.replaceAll(/\s/g, '\\s')}`);
      return { stopReason: 'end_turn' };
    }
    for (const step of given.slice(4).split(/;\s|;$|\n/)) {
      if (prompt.signal.aborted) break;
      const end = await play(step);
      if (end) return end;
    }
    return { stopReason: 'end_turn' };
  })();
  return Promise.race([cancelled, played]);
}

let calls = 0;

function createPlayer(link, session, prompt, told) {
  let options = OPTIONS;
  const update = (sessionUpdate, fields) => link.update(session, { sessionUpdate, ...fields });
  const sleep = (ms) => new Promise((wake) => setTimeout(wake, Number(ms)));
  const path = (given) => resolve(session.cwd, given);
  const newId = () => {
    calls += 1;
    return `call_${calls}`;
  };
  const say = (text) => {
    told.agent += text;
    update('agent_message_chunk', { content: textBlock(text) });
  };
  const begin = (id, fields) => update('tool_call', { toolCallId: id, status: 'pending', ...fields });
  const change = (id, fields) => update('tool_call_update', { toolCallId: id, ...fields });
  const end = (id, ok, text, fields = {}) =>
    change(id, { status: ok ? 'completed' : 'failed', content: content(text), ...fields });
  const request = (method, params) => link.request(method, { sessionId: session.id, ...params });

  /** Whether it was allowed. */
  async function asked(id, fields) {
    const { result } = await request('session/request_permission', {
      toolCall: { toolCallId: id, ...fields },
      options: options.map((kind) => ({ optionId: `opt-${kind}`, name: kind.replace('_', ' '), kind })),
    });
    return result?.outcome?.outcome === 'selected' && result.outcome.optionId.startsWith('opt-allow');
  }

  /** A call around what is done in it; `work` returns [ok, text, more fields]. */
  async function inCall(fields, mustAsk, work) {
    const id = newId();
    begin(id, fields);
    if (mustAsk && !(await asked(id, fields))) return end(id, false, REFUSED);
    change(id, { status: 'in_progress' });
    const [ok, text, more] = await work(id);
    return end(id, ok, text, more);
  }

  const splitResult = (rest) => {
    const [head, result = 'ok'] = rest.split(/\s*=>\s*/);
    const [kind, ...title] = head.split(' ');
    return { fields: { kind, title: title.join(' '), rawInput: { what: title.join(' ') } }, result: unescaped(result) };
  };

  const before = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : null);
  const edit = (file, text) => ({
    ...{ kind: 'edit', title: `Write ${file}`, locations: [{ path: file }], rawInput: { path: file, content: text } },
    content: [{ type: 'diff', path: file, oldText: before(file), newText: text }],
  });
  const execute = (command) => ({ kind: 'execute', title: `\`${command}\``, rawInput: { command } });

  function runItself(id, command) {
    return new Promise((finish) => {
      let output = '';
      const child = spawn('sh', ['-c', command], { cwd: session.cwd });
      prompt.signal.addEventListener('abort', () => child.kill('SIGKILL'));
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (bytes) => {
          output += bytes;
          change(id, { content: content(output) });
        });
      }
      child.on('close', (code) => finish([code === 0, output]));
    });
  }

  async function clientWrite(file, text) {
    const { error } = await request('fs/write_text_file', { path: file, content: text });
    return error ? [false, error.message] : [true, 'written'];
  }

  async function clientTerminal(id, command, { killAfter, keep } = {}) {
    const { result, error } = await request('terminal/create', {
      ...{ command: 'sh', args: ['-c', command], cwd: session.cwd, outputByteLimit: 100_000 },
    });
    if (error) return [false, error.message];
    const { terminalId } = result;
    const embedded = [{ type: 'terminal', terminalId }];
    change(id, { content: embedded });
    if (keep) return [true, 'left', { content: embedded }];
    if (killAfter) await sleep(killAfter).then(() => request('terminal/kill', { terminalId }));
    const exit = (await request('terminal/wait_for_exit', { terminalId })).result;
    const { output } = (await request('terminal/output', { terminalId })).result ?? {};
    await request('terminal/release', { terminalId });
    return [exit?.exitCode === 0, '', { content: embedded, rawOutput: { output, ...exit } }];
  }

  const steps = {
    say: (rest) => say(unescaped(rest)),
    think: (rest) => update('agent_thought_chunk', { content: textBlock(unescaped(rest)) }),
    user: (rest) => update('user_message_chunk', { content: textBlock(unescaped(rest)) }),
    async pour(rest) {
      const [count, ms] = rest.split(' ').map(Number);
      for (let n = 1; n <= count && !prompt.signal.aborted; n += 1) {
        say(`${n} `);
        if (ms) await sleep(ms);
      }
    },
    plan(rest) {
      const statuses = { now: 'in_progress', done: 'completed' };
      const entries = rest.split(',').map((each) => {
        const [, status, text] = /^(?:(now|done):)?(.*)$/.exec(each.trim());
        return { content: text, priority: 'medium', status: statuses[status] ?? 'pending' };
      });
      update('plan', { entries });
    },
    usage(rest) {
      const [used, size, amount] = rest.split(' ').map(Number);
      update('usage_update', { used, size, ...(amount ? { cost: { amount, currency: 'USD' } } : {}) });
    },
    mode: (rest) => update('current_mode_update', { currentModeId: rest }),
    info: (rest) => update('session_info_update', { title: rest }),
    commands: () => update('available_commands_update', { availableCommands: [{ name: 'x', description: 'An x.' }] }),
    blocks: () => say(JSON.stringify(prompt.blocks.map(withoutData))),
    memory: () => say(JSON.stringify(session.told.map(({ user }) => user))),
    about() {
      const { cwd, id, model, mode, mcpServers } = session;
      say(
        JSON.stringify({ pid: process.pid, cwd, session: id, model, mode, env: Object.keys(process.env), mcpServers }),
      );
    },
    async call(rest) {
      const { fields, result } = splitResult(rest);
      await inCall(fields, false, () => [true, result]);
    },
    async fail(rest) {
      const { fields, result } = splitResult(rest);
      await inCall(fields, false, () => [false, result]);
    },
    async ask(rest) {
      const { fields, result } = splitResult(rest);
      await inCall(fields, true, () => [true, result]);
    },
    open(rest) {
      const [id, ...others] = rest.split(' ');
      begin(id, { ...splitResult(others.join(' ')).fields, status: 'in_progress' });
    },
    text: (rest) => change(headOf(rest), { content: content(tailOf(rest)) }),
    done: (rest) => end(headOf(rest), true, tailOf(rest)),
    broken: (rest) => end(headOf(rest), false, tailOf(rest)),
    async edit(rest) {
      const file = path(headOf(rest));
      const fields = edit(file, tailOf(rest));
      await inCall(fields, true, () => {
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, tailOf(rest));
        return [true, '', { content: fields.content }];
      });
    },
    exec: (rest) => inCall(execute(rest), true, (id) => runItself(id, rest)),
    options(rest) {
      options = rest === '' ? [] : rest.split(',');
    },
    write: (rest) => clientEdit(rest, false),
    askwrite: (rest) => clientEdit(rest, true),
    async read(rest) {
      const [file, line, limit] = rest.split(' ');
      const fields = {
        kind: 'read',
        title: `Read ${file}`,
        locations: [{ path: path(file) }],
        rawInput: { path: file },
      };
      const numbers = line ? { line: Number(line), limit: Number(limit) } : {};
      await inCall(fields, false, async () => {
        const { result, error } = await request('fs/read_text_file', { path: path(file), ...numbers });
        return error ? [false, error.message] : [true, result.content];
      });
    },
    term: (rest) => inCall(execute(rest), false, (id) => clientTerminal(id, rest)),
    askterm: (rest) => inCall(execute(rest), true, (id) => clientTerminal(id, rest)),
    termkill: (rest) =>
      inCall(execute(tailOf(rest)), false, (id) => clientTerminal(id, tailOf(rest), { killAfter: headOf(rest) })),
    termkeep: (rest) => inCall(execute(rest), false, (id) => clientTerminal(id, rest, { keep: true })),
    stop: (rest) => (rest === 'none' ? {} : { stopReason: rest }),
    error(rest) {
      throw new PromptError(Number(headOf(rest)), tailOf(rest));
    },
    sleep,
    async wait(rest) {
      while (!existsSync(path(rest)) && !prompt.signal.aborted) await sleep(10);
    },
    touch: (rest) => writeFileSync(path(rest), ''),
    hang: () => new Promise(() => {}),
    freeze: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
    crash: (rest) => process.exit(Number(rest || 1)),
    kill: () => process.kill(process.pid, 'SIGKILL'),
    garbage: () => link.write('no json\n{"half": \n[1,2]\n"text"\n{"jsonrpc":"2.0"}\n\u0000\u0001\ufffd\n'),
    halfline: () => link.write('{"jsonrpc":"2.0","method":"session/upd', () => process.exit(1)),
    longline: (rest) => say('x'.repeat(Number(rest) * 1024 * 1024)),
    endless: (rest) => {
      for (let n = 0; n < Number(rest); n += 1) link.write('y'.repeat(1024 * 1024));
    },
    stderr: (rest) => process.stderr.write(`${rest}\n`),
    grand: () => grandchildren(link),
    late: (rest) => void setTimeout(() => play(tailOf(rest, false)).catch(() => {}), Number(headOf(rest))),
    oncancel: (rest) => void prompt.afterwards.push(() => play(rest)),
    together: (rest) => Promise.all(rest.split(' | ').map(play)).then(() => {}),
    async repeat(rest) {
      for (let n = 0; n < Number(headOf(rest)); n += 1) await play(tailOf(rest, false));
    },
    update: (rest) => link.update(session, JSON.parse(rest)),
    notify: (rest) => link.notify(headOf(rest), { sessionId: session.id, ...JSON.parse(tailOf(rest, false)) }),
    async request(rest) {
      const { result, error } = await request(headOf(rest), JSON.parse(tailOf(rest, false)));
      say(JSON.stringify(error ? { error } : { result }));
    },
    raw: (rest) => link.write(`${rest}\n`),
  };

  function clientEdit(rest, mustAsk) {
    const file = path(headOf(rest));
    const fields = edit(file, tailOf(rest));
    return inCall(fields, mustAsk, async () => {
      const [ok, text] = await clientWrite(file, tailOf(rest));
      return [ok, text, ok ? { content: fields.content } : {}];
    });
  }

  /** Plays one step. @returns the result of the prompt if that ends it */
  async function play(step) {
    const [, name, rest] = /^(\S*)\s?(.*)$/s.exec(step.trimStart());
    if (name === '') return undefined;
    if (!Object.hasOwn(steps, name)) throw new PromptError(-32603, `The script has no step "${name}".`);
    const ended = await steps[name](rest);
    return name === 'stop' ? ended : undefined;
  }
  return play;
}

const headOf = (rest) => rest.split(' ', 1)[0];
const tailOf = (rest, plain = true) => {
  const tail = rest.slice(headOf(rest).length + 1);
  return plain ? unescaped(tail) : tail;
};

const withoutData = (block) => {
  const bytes = (data) => (data === undefined ? undefined : Buffer.from(data, 'base64').length);
  if (block.data !== undefined) return { ...block, data: bytes(block.data) };
  if (block.resource?.blob === undefined) return block;
  return { ...block, resource: { ...block.resource, blob: bytes(block.resource.blob) } };
};
