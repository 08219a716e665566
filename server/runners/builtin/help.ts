/**
 * The fixed words of the built-in agent: who it is, what it can do, and how to connect a language model. Pure. Short,
 * and honest that no language model speaks.
 */
import type { ModelInfo } from '../runner.ts';
import { EXAMPLES } from './examples.ts';
import type { ServerInfo } from './services.ts';
import { TOOL_COMMANDS } from './tool-commands.ts';

export const IDENTITY =
  'I am the built-in agent of Turnkeep: a set of fixed rules and real tools, **not a language model**. ' +
  'I can search and summarise your chats, calculate, tell dates, keep notes and work with the files of the workspace. ' +
  'Say `/help` for examples, or ask *how do I connect a model?*';

export const GREETING =
  'Hello! I am the built-in agent, no language model, but useful for small things. Try `what is 15% of 80`, `note: buy milk` or `/help`.';

export const THANKS = "You're welcome!";

/** What is said to a prompt that no rule knows. */
export const UNKNOWN =
  'I am no language model, so I cannot answer that. I can search and summarise your chats, calculate, tell dates, keep notes ' +
  'and work with the files of the workspace: `/help` shows how. For answers to anything else, ask me *how do I connect a model?*';

/** The help, with the examples. */
export function helpText(): string {
  const rows = EXAMPLES.map(({ prompt, gives }) => `| \`${prompt}\` | ${gives} |`);
  const commands = TOOL_COMMANDS.map(({ usage, gives }) => `| \`${usage.replaceAll('|', '\\|')}\` | ${gives} |`);
  return [
    'I am the built-in agent, **not a language model**: I know the following kinds of questions, in English.',
    ['| Say | You get |', '|---|---|', ...rows].join('\n'),
    ['| Command | You get |', '|---|---|', ...commands].join('\n'),
    'What writes or runs asks you first, unless the configuration says otherwise. `/help` shows this, `/demo` lists demonstrations of what an agent can send.',
  ].join('\n\n');
}

/** What an unknown command is told. */
export function unknownCommand(name: string): string {
  return `I do not know the command \`/${name.slice(0, 40)}\`. \`/help\` shows which there are.`;
}

/** What is told to whoever asks for a tool that is not there. */
export function unknownTool(name: string, known: readonly string[]): string {
  return `There is no tool \`${name.slice(0, 64)}\`. These are there: ${known.map((one) => `\`${one}\``).join(', ')}.`;
}

/** How to connect a model; names the models that are there already. */
export function modelHelp(info: ServerInfo, models: readonly ModelInfo[]): string {
  const found = models.filter(({ source }) => source !== 'builtin');
  const there =
    found.length > 0
      ? `These are available already; choose one as the model of a chat:\n\n${modelList(found)}`
      : 'At the moment no model is connected, and none was found running on this machine.';
  return [
    there,
    `Models that run on the server's machine (Ollama, LM Studio, llama.cpp) are found by themselves. To make one the default, write into \`${info.home}/config.yaml\`:`,
    yaml('model:', '  provider: custom', '  base_url: http://127.0.0.1:11434/v1', '  default: llama3.2'),
    'For OpenAI, with the key in an environment variable:',
    yaml('model:', '  provider: openai', '  api_key_env: OPENAI_API_KEY', '  default: <model name>'),
    'Then restart the server.',
  ].join('\n\n');
}

const yaml = (...lines: string[]): string => ['```yaml', ...lines, '```'].join('\n');

/** The models as a list. */
export function modelList(models: readonly ModelInfo[]): string {
  return models
    .slice(0, 50)
    .map(({ id, label, source }) => `- \`${id}\`${label && label !== id ? ` (${label})` : ''}, ${SOURCES[source]}`)
    .join('\n');
}

const SOURCES: Record<ModelInfo['source'], string> = {
  builtin: 'built in',
  configured: 'from config.yaml',
  discovered: 'found on this machine',
  path: 'an agent found on PATH',
};

/** What this server is. */
export function serverText(info: ServerInfo): string {
  return [
    `This is **Turnkeep ${info.version}** at ${info.url}, a backend for talking with agents.`,
    `Its home is \`${info.home}\`: settings in \`config.yaml\`, chats in \`state.db\` and \`sessions/\`.`,
    'Ask *how do I connect a model?* to add a language model.',
  ].join('\n\n');
}
