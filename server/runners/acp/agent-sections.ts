/** The agents of others that a configuration names, in its order: that of the `runner` section first. */
import path from 'node:path';
import type { AgentTarget } from './agent-target.ts';
import { nameOfCommand } from './known-agents.ts';

/** One agent as the configuration has it. */
export interface AgentSection {
  command: readonly string[];
  env?: Record<string, string>;
}

export interface RunnerSection extends Partial<AgentSection> {
  kind: 'model' | 'acp';
  name?: string;
}

export interface AgentPlaces {
  /** Names that something else has. */
  taken: readonly string[];
  /** What `~` stands for. */
  personsFolder: string;
}

/** A name is the part of a model id before its first slash. */
const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Brings the sections of a configuration into one list.
 * @returns or the first problem in words that begin with its key
 */
export function readAgentSections(
  runner: RunnerSection,
  agents: Record<string, AgentSection>,
  { taken, personsFolder }: AgentPlaces,
): { agents: AgentTarget[] } | { problem: string } {
  const { kind, name, command, env } = runner;
  const sections: { place: string; nameKey: string; name: string; section: AgentSection }[] = [];
  if (kind === 'acp') {
    if (!command) return { problem: 'runner.command is needed for kind "acp", for example [opencode, acp].' };
    const section = { command, ...(env ? { env } : {}) };
    sections.push({ place: 'runner', nameKey: 'runner.name', name: name ?? nameOfCommand(command), section });
  } else {
    const idle = (['command', 'name', 'env'] as const).find((key) => runner[key] !== undefined);
    if (idle) return { problem: `runner.${idle} is for kind "acp" only; agents beside a model go under "agents".` };
  }
  for (const [key, section] of Object.entries(agents)) {
    sections.push({ place: `agents.${key}`, nameKey: `agents.${key}`, name: key, section });
  }

  const names = new Set(taken);
  const targets: AgentTarget[] = [];
  for (const { place, nameKey, name, section } of sections) {
    if (!AGENT_NAME.test(name)) {
      return { problem: `${nameKey} must be a name of letters, digits, ".", "_" and "-" (it is "${name}").` };
    }
    if (names.has(name)) return { problem: `${nameKey}: "${name}" is the name of something else; give it its own.` };
    names.add(name);
    const { command, env = {} } = section;
    const program = command[0]!.replace(/^~(?=\/)/, personsFolder);
    if (program.includes('/') && !path.isAbsolute(program)) {
      return {
        problem: `${place}.command must begin with a program on PATH or with an absolute path (it is "${program}").`,
      };
    }
    const wrong = Object.keys(env).find((variable) => !VARIABLE.test(variable));
    if (wrong !== undefined) return { problem: `${place}.env has "${wrong}", which is no name of a variable.` };
    targets.push({ name, command: [program, ...command.slice(1)], env });
  }
  return { agents: targets };
}
