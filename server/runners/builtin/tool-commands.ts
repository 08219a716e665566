/**
 * The commands of the built-in agent that use the tools which write, run and ask, so that all of it can be tried without
 * a model. Pure: a command becomes the arguments of a tool, or a sentence about how it is used.
 */
import { isRecord } from '../../core/text.ts';
import { readCallArguments } from '../model/call-arguments.ts';

export type ToolCommand =
  | { tool: string; args: Record<string, unknown> }
  /** What was given is no such command. */
  | { usage: string };

/** What each is for, in the order of the help. */
export const TOOL_COMMANDS: readonly { usage: string; gives: string }[] = [
  { usage: '/write <file> <text>', gives: 'a file with this text' },
  { usage: '/edit <file> <old> => <new>', gives: 'this exchange in a file' },
  { usage: '/run <command>', gives: 'what the command puts out' },
  { usage: '/todo <step>; <step>', gives: 'a to-do list' },
  { usage: '/ask <question> | <choice> | <choice>', gives: 'a question to you' },
  { usage: '/tool <name> <arguments as JSON>', gives: 'what any tool gives, also those of MCP servers' },
];

/** Understands a command; null when it is none of these. */
export function readToolCommand(name: string, rest: string): ToolCommand | null {
  switch (name) {
    case 'write': {
      const match = /^("[^"\n]+"|\S+)(?:[ \t]+|[ \t]*\n)([\s\S]*)$/.exec(rest);
      if (!match) return usage(name);
      const text = match[2]!;
      return {
        tool: 'write_file',
        args: { path: unquoted(match[1]!), content: text.endsWith('\n') ? text : `${text}\n` },
      };
    }
    case 'edit': {
      const match = /^("[^"\n]+"|\S+)\s+([\s\S]+?) => ?([\s\S]*)$/.exec(rest);
      if (!match) return usage(name);
      return { tool: 'edit_file', args: { path: unquoted(match[1]!), old_text: match[2], new_text: match[3] } };
    }
    case 'run':
      return rest === '' ? usage(name) : { tool: 'terminal', args: { command: rest } };
    case 'todo': {
      const steps = rest.split(/[;\n]/).flatMap((step) => step.trim() || []);
      if (steps.length === 0) return usage(name);
      const todos = steps.map((content, index) => ({ content, status: index === 0 ? 'in_progress' : 'pending' }));
      return { tool: 'todo', args: { todos } };
    }
    case 'ask':
      return { tool: 'clarify', args: { questions: rest === '' ? SAMPLE_QUESTIONS : [questionOf(rest)] } };
    case 'tool': {
      const match = /^(\S+)\s*([\s\S]*)$/.exec(rest);
      const args = match && readCallArguments(match[2]);
      return match && isRecord(args) ? { tool: match[1]!, args } : usage(name);
    }
    default:
      return null;
  }
}

const SAMPLE_QUESTIONS = [
  { question: 'Which colour shall it have?', choices: ['red', 'green', 'blue'] },
  { question: 'What goes into it?', choices: ['apples', 'pears', 'plums'], multi_select: true },
];

function questionOf(text: string): Record<string, unknown> {
  const [question = '', ...choices] = text.split('|').flatMap((part) => part.trim() || []);
  return { question, ...(choices.length > 0 ? { choices } : {}) };
}

function usage(name: string): ToolCommand {
  const known = TOOL_COMMANDS.find((command) => command.usage.startsWith(`/${name} `));
  return { usage: `Say it like this: \`${known?.usage}\`` };
}

const unquoted = (text: string): string => text.replace(/^"(.*)"$/, '$1');
