/**
 * An agent of the Agent Client Protocol (version 1, stdio) that does what its prompt says. Its own JSON-RPC, no library:
 * it can also be wrong. `node test/support/acp-agent.mjs [flags]`. The steps are played by acp-agent-steps.mjs.
 *
 * THE SCRIPT. The last text block of a prompt is the script if it begins with `acp:`; anything else is said back in
 * chunks ("You said: …"). Steps are parted by `; ` (a semicolon and a blank) or a line break: within a step write `;`
 * without a blank. In texts `\n` is a line break and `\s` a blank. Paths are taken from the cwd of the session.
 *
 *   say TEXT · think TEXT           one chunk of text or thought          user TEXT   a user_message_chunk
 *   pour N MS                       N chunks ("1 ", "2 ", …), MS ms apart
 *   plan a, now:b, done:c           the plan                              usage USED SIZE [USD]
 *   mode ID · info TITLE · commands current_mode_update, session_info_update, available_commands_update
 *   blocks                          says as JSON what blocks the prompt had (bytes in place of data)
 *   memory                          says as JSON what it was told in this session, this prompt included
 *   about                           says as JSON {pid, cwd, session, model, mode, env (names), mcpServers}
 *
 *   call KIND TITLE => RESULT       a call: pending, in_progress, completed (RESULT: default "ok")
 *   fail KIND TITLE => TEXT         the same, failed
 *   open ID KIND TITLE              a call begins (in_progress) …         text ID TEXT   … its content is TEXT
 *   done ID TEXT · broken ID TEXT   … and ends completed or failed
 *   ask KIND TITLE => RESULT        a call that asks for permission first; refused: failed "The person did not allow this."
 *   edit PATH TEXT                  asks (kind edit, with the diff), then writes the file itself
 *   exec COMMAND                    asks (kind execute), then runs `sh -c COMMAND` itself; its output is told as it comes
 *   options KIND,…                  options of the questions from now on (default allow_once,allow_always,reject_once)
 *
 *   write PATH TEXT · read PATH [LINE LIMIT]    fs/write_text_file, fs/read_text_file in a call; no question of its own
 *   term COMMAND                    terminal/create (sh -c) in a call, embedded, waited for, released
 *   termkill MS COMMAND             the same, terminal/kill after MS ms     termkeep COMMAND   made and left alone
 *   askwrite PATH TEXT · askterm COMMAND        the same as write and term, but it asks for permission first
 *
 *   stop REASON · error CODE TEXT   how the prompt ends (default stop end_turn; `stop none` gives no reason)
 *   sleep MS · wait FILE · touch FILE           a pause; until a file is there; makes one
 *   hang                            the prompt never ends; a cancel ends it (see --ignore-cancel)
 *   freeze                          reads and writes nothing any more        crash [CODE] · kill   exits; kills itself
 *   garbage · halfline · longline MB · endless MB    no JSON; half a message and exit; an update of MB megabytes in one
 *                                   line; MB megabytes without a line end
 *   stderr TEXT · grand             two children in the same process group that ignore TERM
 *   late MS STEP                    plays STEP MS ms later, whatever is then
 *   oncancel STEP                   plays STEP after a cancel was answered
 *   together STEP | STEP            side by side                             repeat N STEP
 *   update JSON · notify METHOD JSON · request METHOD JSON · raw TEXT        anything; the answer of a request is said
 *
 * FLAGS
 *   --protocol N            the version it answers                --capabilities LIST   of load,resume,image,embedded,http
 *   --sessions DIR          keeps its sessions there (default: in memory alone: lost with the process)
 *   --lose                  refuses load and resume: it knows no such session
 *   --blank                 takes a session that it does not know for an empty one
 *   --models a,b            offered as the config option "model"  --old-models a,b      as `models` (session/set_model)
 *   --modes ask,code        --slow-start MS   before initialize is answered
 *   --ignore-cancel · --ignore-term · --grandchildren (as `grand`, at once) · --banner (text on stdout at first)
 *   --silent METHOD         never answers it                      --refuse METHOD:CODE[:TEXT]   answers with an error
 *   --exit METHOD:CODE      exits when it is asked that           --auth                session/new needs a login
 *   --log FILE              appends each message that it gets, one JSON a line
 *   --pids FILE             appends its process id and those of its grandchildren, one a line
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { grandchildren, playScript } from './acp-agent-steps.mjs';

const text = { type: 'string' };
const flag = { type: 'boolean', default: false };
const list = { type: 'string', multiple: true, default: [] };
const { values: flags } = parseArgs({
  options: {
    ...{
      protocol: text,
      capabilities: text,
      sessions: text,
      lose: flag,
      blank: flag,
      models: text,
      'old-models': text,
      modes: text,
    },
    ...{
      'slow-start': text,
      'ignore-cancel': flag,
      'ignore-term': flag,
      grandchildren: flag,
      banner: flag,
      auth: flag,
    },
    ...{ silent: list, refuse: list, exit: list, log: text, pids: text },
  },
});

const can = new Set((flags.capabilities ?? '').split(','));
/** Sessions by id: {id, cwd, told: {user, agent}[], model, mode, mcpServers, prompt} */
const sessions = new Map();
const waiting = new Map();
let ids = 0;

const notePid = (pid) => flags.pids && appendFileSync(flags.pids, `${pid}\n`);
const write = (line, done) => process.stdout.write(line, done);
const send = (message) => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

class Refused extends Error {
  constructor(code, words) {
    super(words);
    this.code = code;
  }
}

/** What the steps may do. */
const link = {
  flags,
  write,
  notePid,
  notify: (method, params) => send({ method, params }),
  update: (session, update) => send({ method: 'session/update', params: { sessionId: session.id, update } }),
  /** Resolves with {result} or {error}. */
  request(method, params) {
    ids += 1;
    const id = `agent-${ids}`;
    send({ id, method, params });
    return new Promise((resolve) => waiting.set(id, resolve));
  },
};

const names = (given) => (given ? given.split(',') : []);
const modesOf = ({ mode }) =>
  flags.modes
    ? { modes: { currentModeId: mode, availableModes: names(flags.modes).map((id) => ({ id, name: `Mode ${id}` })) } }
    : {};

function modelsOf({ model }) {
  const label = (id) => `Model ${id}`;
  if (flags['old-models']) {
    const availableModels = names(flags['old-models']).map((modelId) => ({ modelId, name: label(modelId) }));
    return { models: { currentModelId: model, availableModels } };
  }
  if (!flags.models) return {};
  const options = names(flags.models).map((value) => ({ value, name: label(value) }));
  return {
    configOptions: [{ id: 'model', name: 'Model', category: 'model', type: 'select', currentValue: model, options }],
  };
}

const fileOf = (id) => join(flags.sessions, `${id.replaceAll(/[^\w-]/g, '_')}.json`);

function keep({ id, cwd, told, model, mode }) {
  if (!flags.sessions) return;
  mkdirSync(flags.sessions, { recursive: true });
  writeFileSync(fileOf(id), JSON.stringify({ id, cwd, told, model, mode }));
}

function known({ sessionId, cwd, mcpServers }) {
  let session = sessions.get(sessionId);
  if (!session && flags.sessions && existsSync(fileOf(sessionId)))
    session = JSON.parse(readFileSync(fileOf(sessionId)));
  if (!session && flags.blank) session = { id: sessionId, told: [] };
  if (!session || flags.lose) throw new Refused(-32002, 'There is no such session.');
  sessions.set(sessionId, Object.assign(session, { cwd, mcpServers }));
  return session;
}

const running = ({ sessionId }) => {
  const session = sessions.get(sessionId);
  if (!session) throw new Refused(-32602, 'There is no such session.');
  return session;
};

const methods = {
  async initialize() {
    if (flags['slow-start']) await new Promise((resolve) => setTimeout(resolve, Number(flags['slow-start'])));
    return {
      protocolVersion: Number(flags.protocol ?? 1),
      agentCapabilities: {
        loadSession: can.has('load'),
        promptCapabilities: { image: can.has('image'), embeddedContext: can.has('embedded') },
        mcpCapabilities: { http: can.has('http') },
        sessionCapabilities: can.has('resume') ? { resume: {} } : {},
      },
      agentInfo: { name: 'scripted', version: '1.0.0' },
      authMethods: flags.auth ? [{ id: 'login', name: 'Log in with `scripted login`' }] : [],
    };
  },
  'session/new'({ cwd, mcpServers }) {
    if (flags.auth) throw new Refused(-32000, 'Authentication required');
    const id = `${process.pid}-${sessions.size + 1}-${Date.now()}`;
    const model = names(flags.models ?? flags['old-models'])[0];
    const session = { id, cwd, mcpServers, told: [], model, mode: names(flags.modes)[0] };
    sessions.set(id, session);
    keep(session);
    return { sessionId: id, ...modesOf(session), ...modelsOf(session) };
  },
  'session/load'(params) {
    const session = known(params);
    for (const { user, agent } of session.told) {
      link.update(session, { sessionUpdate: 'user_message_chunk', content: { type: 'text', text: user } });
      link.update(session, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: agent } });
    }
    return { ...modesOf(session), ...modelsOf(session) };
  },
  'session/resume'(params) {
    const session = known(params);
    return { ...modesOf(session), ...modelsOf(session) };
  },
  'session/set_mode'(params) {
    running(params).mode = params.modeId;
    return {};
  },
  'session/set_model'(params) {
    running(params).model = params.modelId;
    return {};
  },
  'session/set_config_option'(params) {
    const session = running(params);
    session[params.configId] = params.value;
    return modelsOf(session);
  },
  async 'session/prompt'(params) {
    const session = running(params);
    if (session.prompt) throw new Refused(-32600, 'A prompt is running in this session.');
    const controller = new AbortController();
    const prompt = {
      blocks: params.prompt,
      signal: controller.signal,
      cancel: () => controller.abort(),
      afterwards: [],
    };
    session.prompt = prompt;
    try {
      return await playScript(link, session, prompt);
    } finally {
      session.prompt = undefined;
      keep(session);
      if (controller.signal.aborted)
        setImmediate(() => void Promise.allSettled(prompt.afterwards.map((play) => play())));
    }
  },
  'session/cancel'({ sessionId }) {
    if (!flags['ignore-cancel']) sessions.get(sessionId)?.prompt?.cancel();
  },
};

async function answer({ id, method, params }) {
  const exit = flags.exit.map((each) => each.split(':')).find(([name]) => name === method);
  if (exit) process.exit(Number(exit[1] ?? 1));
  if (flags.silent.includes(method)) return;
  try {
    const refusal = flags.refuse.map((each) => each.split(':')).find(([name]) => name === method);
    if (refusal) throw new Refused(Number(refusal[1] ?? -32603), refusal[2] ?? 'This agent refuses that.');
    if (!Object.hasOwn(methods, method)) throw new Refused(-32601, `"Method not found": ${method}`);
    const result = await methods[method](params ?? {});
    if (id !== undefined) send({ id, result: result ?? {} });
  } catch (error) {
    if (id !== undefined) send({ id, error: { code: error.code ?? -32603, message: error.message, data: error.data } });
  }
}

notePid(process.pid);
if (flags['ignore-term']) process.on('SIGTERM', () => {});
if (flags.grandchildren) grandchildren(link);
if (flags.banner) write('Welcome to the scripted agent!\n\n  {not json}\n');
process.stdout.on('error', () => process.exit(0));

createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })
  .on('line', (line) => {
    if (line.trim() === '') return;
    if (flags.log) appendFileSync(flags.log, `${line}\n`);
    const message = JSON.parse(line);
    if (message.method) void answer(message);
    else {
      waiting.get(message.id)?.(message);
      waiting.delete(message.id);
    }
  })
  .on('close', () => {
    if (!flags['ignore-term']) process.exit(0);
  });
if (flags['ignore-term']) setInterval(() => {}, 60_000);
