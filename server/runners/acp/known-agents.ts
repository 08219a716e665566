/**
 * The agents that people are likely to have, by the names of their programs. What is listed here is offered when it is found
 * on PATH, and gives an agent of the configuration its name; any other agent takes a command and, at will, a name.
 */
import path from 'node:path';

export interface KnownAgent {
  name: string;
  /** For a person. */
  label: string;
  /** The commands under which it speaks the Agent Client Protocol, the preferred one first. */
  commands: readonly (readonly [program: string, ...args: string[]])[];
}

export const KNOWN_AGENTS: readonly KnownAgent[] = [
  { name: 'opencode', label: 'opencode', commands: [['opencode', 'acp']] },
  { name: 'claude', label: 'Claude Code', commands: [['claude-agent-acp'], ['claude-code-acp']] },
  { name: 'codex', label: 'Codex', commands: [['codex-acp']] },
  { name: 'qwen', label: 'Qwen Code', commands: [['qwen', '--acp']] },
  { name: 'gemini', label: 'Gemini CLI', commands: [['gemini', '--acp']] },
  { name: 'goose', label: 'goose', commands: [['goose', 'acp']] },
  { name: 'hermes', label: 'Hermes', commands: [['hermes', 'acp'], ['hermes-acp']] },
];

/** The known agent of that name. */
export const knownAgent = (name: string): KnownAgent | undefined => KNOWN_AGENTS.find((agent) => agent.name === name);

/** Programs that run another one, which their arguments name. */
const LAUNCHERS = /^(node|npx|bun|bunx|deno|pnpm|yarn|uv|uvx|pipx|python3?|env|nice|sudo)$/;
const LAUNCHER_WORDS = /^(-|exec$|dlx$|run$|tool$|x$|[A-Za-z_][A-Za-z0-9_]*=)/;

/**
 * The name that a command gives its agent: that of a known agent, else of the program. `npx -y @org/codex-acp@1.2` is `codex`.
 * @returns text that may still be no valid name
 */
export function nameOfCommand(command: readonly string[]): string {
  const words = command.map(programOf);
  const [program = ''] = words;
  const at = LAUNCHERS.test(program) ? command.findIndex((word, n) => n > 0 && !LAUNCHER_WORDS.test(word)) : 0;
  const meant = words[at] ?? program;
  return KNOWN_AGENTS.find(({ commands }) => commands.some(([known]) => known === meant))?.name ?? meant;
}

/** `/opt/codex-acp.js` and `@org/codex-acp@1.2` are `codex-acp`. */
const programOf = (word: string): string =>
  path
    .basename(word)
    .replace(/(?<=.)@[^@]*$/, '')
    .replace(/\.(m?js|cjs|ts|py|sh|exe)$/, '');
