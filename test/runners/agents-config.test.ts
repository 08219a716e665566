/** The agents of a configuration: what may be said of one, and that every mistake is named. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../../server/config.ts';
import { temporaryFolder } from '../support/home.ts';

async function load(yaml: string, env: Record<string, string> = {}) {
  const home = await temporaryFolder();
  await writeFile(path.join(home, 'config.yaml'), yaml);
  return loadConfig({ home }, env);
}

it('[AC10] the agent of the runner section is the first, the others follow under their own names', async () => {
  const yaml = `
runner: {kind: acp, command: [npx, -y, "@zed-industries/codex-acp@0.16.0"], env: {CODEX_HOME: /srv/codex}, idle_s: 60}
agents:
  opencode: {command: [opencode, acp]}
  mine: {command: ["~/bin/agent", --stdio], env: {A: "1"}}
`;
  const config = await load(yaml, { HOME: '/home/ada' });
  expect(config.configuredAgents).toEqual([
    {
      name: 'codex',
      command: ['npx', '-y', '@zed-industries/codex-acp@0.16.0'],
      env: { CODEX_HOME: '/srv/codex' },
    },
    { name: 'opencode', command: ['opencode', 'acp'], env: {} },
    { name: 'mine', command: ['/home/ada/bin/agent', '--stdio'], env: { A: '1' } },
  ]);
  const { start_timeout_s, stall_timeout_s, cancel_timeout_s, idle_s, max_processes } = config.runner;
  expect([start_timeout_s, stall_timeout_s, cancel_timeout_s, idle_s, max_processes]).toEqual([60, 600, 5, 60, 8]);
  expect(config.unknownKeys).toEqual([]);
});

it('[AC10] a command names its agent: known ones by what people call them', async () => {
  const names: [string, string][] = [
    ['[opencode, acp]', 'opencode'],
    ['[claude-agent-acp]', 'claude'],
    ['[claude-code-acp]', 'claude'],
    ['[/opt/agents/qwen, --acp]', 'qwen'],
    ['[node, --no-warnings, /opt/agents/claude-agent-acp.js]', 'claude'],
    ['[uvx, "some-agent@1.2", --acp]', 'some-agent'],
    ['[hermes, acp]', 'hermes'],
    ['[env, A=1, goose, acp]', 'goose'],
  ];
  for (const [command, name] of names) {
    const { configuredAgents } = await load(`runner: {kind: acp, command: ${command}}`);
    expect(configuredAgents.map((agent) => agent.name)).toEqual([name]);
  }
  const { configuredAgents } = await load('runner: {kind: acp, name: work, command: [opencode, acp]}');
  expect(configuredAgents[0]?.name).toBe('work');
});

it('[AC10] what is wrong with an agent is named with its key', async () => {
  const wrong: [string, string][] = [
    ['runner: {kind: acp}', 'runner.command'],
    ['runner: {kind: acp, command: []}', 'runner.command'],
    ['runner: {kind: acp, command: opencode acp}', 'runner.command'],
    ['runner: {kind: acp, command: ["", x]}', 'runner.command.0'],
    ['runner: {kind: agent}', 'runner.kind'],
    ['runner: {command: [opencode, acp]}', 'runner.command'],
    ['runner: {kind: model, env: {A: "1"}}', 'runner.env'],
    ['runner: {kind: acp, command: [opencode, acp], comand: 1}', 'comand'],
    ['runner: {kind: acp, command: [bin/agent]}', 'runner.command'],
    ['runner: {kind: acp, command: ["my agent"]}', 'runner.name'],
    ['runner: {kind: acp, command: [x], name: builtin}', 'runner.name'],
    ['runner: {kind: acp, command: [x], idle_s: -1}', 'runner.idle_s'],
    ['runner: {kind: acp, command: [x], start_timeout_s: 0}', 'runner.start_timeout_s'],
    ['runner: {kind: acp, command: [x], max_processes: 0}', 'runner.max_processes'],
    ['agents: {a/b: {command: [x]}}', 'agents.a/b'],
    ['agents: {a: {}}', 'agents.a'],
    ['agents: {a: {command: [./x]}}', 'agents.a.command'],
    ['agents: {a: {command: [x], env: {"A B": "1"}}}', 'agents.a.env'],
    ['agents: [a]', 'agents'],
    ['runner: {kind: acp, command: [opencode, acp]}\nagents: {opencode: {command: [x]}}', 'agents.opencode'],
    ['providers: {p: {kind: custom, base_url: "http://127.0.0.1:1/v1"}}\nagents: {p: {command: [x]}}', 'agents.p'],
  ];
  for (const [yaml, key] of wrong) {
    const error = await load(yaml).catch((thrown: unknown) => thrown);
    expect(error, yaml).toBeInstanceOf(ConfigError);
    expect((error as Error).message, yaml).toContain(key);
  }
});

it('[AC10] what an agent is given is in no message about a mistake', async () => {
  const error = await load('agents: {a: {command: [x], env: {KEY: 12345678}}}').catch((thrown: unknown) => thrown);
  expect((error as Error).message).toContain('agents.a.env.KEY');
  expect((error as Error).message).not.toContain('12345678');
});

it('[AC10] an agent is given the environment and the .env of the home, without what is ours alone', async () => {
  const home = await temporaryFolder();
  await writeFile(path.join(home, '.env'), 'OPENAI_API_KEY=from-file\nTURNKEEP_TOKEN=secret-token\n');
  const { agentEnv, commandEnv } = loadConfig({ home }, { HOME: '/home/ada', TURNKEEP_LOG_LEVEL: 'info', ANY: '1' });
  expect(agentEnv).toEqual({
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: '/home/ada',
    ANY: '1',
    OPENAI_API_KEY: 'from-file',
  });
  expect(commandEnv.OPENAI_API_KEY).toBeUndefined();
});
