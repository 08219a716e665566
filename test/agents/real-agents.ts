/**
 * The real agents that the tests in this folder drive: where each comes from, how it is started against the fake provider, and
 * which of its own tools the provider has it call. Versions are those that run on Node 20.
 */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';

export interface RealAgent {
  /** As the catalog names it. */
  name: string;
  version: string;
  /** What npm installs. */
  package: string;
  /** Its program, below the folder where it was installed. */
  program: string;
  args: readonly string[];
  /**
   * Its configuration, in files of `home` or in what is returned: variables of its environment.
   * @param provider address of the fake provider without a path
   */
  setUp(home: string, provider: string): Promise<Record<string, string>>;
  /** A call of its tool for shell commands. */
  shell(command: string): { tool: string; args: unknown };
}

const script = (file: string): string => path.join('node_modules/.bin', file);

export const REAL_AGENTS: readonly RealAgent[] = [
  {
    name: 'opencode',
    version: '1.18.33',
    // The package for people has its program brought by an install script; those of the platforms have it.
    package: `opencode-${process.platform}-${process.arch}`,
    program: `node_modules/opencode-${process.platform}-${process.arch}/bin/opencode`,
    args: ['acp'],
    async setUp(_home, provider) {
      const options = { baseURL: `${provider}/v1`, apiKey: 'x' };
      const models = {
        'fake-model': { name: 'Fake model', tool_call: true, limit: { context: 100_000, output: 4000 } },
      };
      const config = {
        model: 'fake/fake-model',
        small_model: 'fake/fake-model',
        permission: { bash: 'ask', edit: 'ask' },
        provider: { fake: { npm: '@ai-sdk/openai-compatible', name: 'Fake', options, models } },
      };
      return {
        OPENCODE_CONFIG_CONTENT: JSON.stringify(config),
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_AUTOUPDATE: '1',
      };
    },
    shell: (command) => ({ tool: 'bash', args: { command, description: 'a command' } }),
  },
  {
    name: 'claude',
    version: '0.49.0',
    package: '@agentclientprotocol/claude-agent-acp',
    program: script('claude-agent-acp'),
    args: [],
    async setUp(_home, provider) {
      return {
        ANTHROPIC_BASE_URL: provider,
        ANTHROPIC_API_KEY: 'x',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        // Tests may run as root, which it refuses outside a sandbox.
        IS_SANDBOX: '1',
      };
    },
    shell: (command) => ({ tool: 'Bash', args: { command, description: 'a command' } }),
  },
  {
    name: 'codex',
    version: '0.16.0',
    package: '@zed-industries/codex-acp',
    program: script('codex-acp'),
    args: [],
    async setUp(home, provider) {
      // Not every machine has what its sandbox needs; it asks all the same.
      const config = `
model = "fake-model"
model_provider = "fake"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
[model_providers.fake]
name = "Fake"
base_url = "${provider}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
`;
      await writeFile(path.join(home, 'config.toml'), config);
      return { CODEX_HOME: home, FAKE_KEY: 'x' };
    },
    shell: (command) => ({ tool: 'exec_command', args: { cmd: command } }),
  },
  {
    name: 'qwen',
    version: '0.15.10',
    package: '@qwen-code/qwen-code',
    program: script('qwen'),
    args: ['--acp', '--auth-type', 'openai'],
    async setUp(_home, provider) {
      return { OPENAI_BASE_URL: `${provider}/v1`, OPENAI_API_KEY: 'x', OPENAI_MODEL: 'fake-model' };
    },
    shell: (command) => ({
      tool: 'run_shell_command',
      args: { command, description: 'a command', is_background: false },
    }),
  },
];
