/** The commands of the built-in agent that use the tools which write, run and ask; and the arguments of `clarify`. */
import { describe, expect, it } from 'vitest';
import { recognise } from '../../server/runners/builtin/intents.ts';
import { readToolCommand } from '../../server/runners/builtin/tool-commands.ts';
import { createClarifyTool } from '../../server/runners/clarify.ts';
import type { Answer, Question } from '../../server/runners/runner.ts';
import { toolContext } from '../support/tool-context.ts';

/** What a prompt leads to. */
function commandOf(prompt: string) {
  const intent = recognise(prompt);
  return intent.kind === 'command' ? readToolCommand(intent.name, intent.rest) : intent.kind;
}

it.each<[string, string, object]>([
  ['/write a.txt hello', 'write_file', { path: 'a.txt', content: 'hello\n' }],
  ['/write "my notes.txt" one\ntwo\n', 'write_file', { path: 'my notes.txt', content: 'one\ntwo\n' }],
  ['/write a.txt\n  indented', 'write_file', { path: 'a.txt', content: '  indented\n' }],
  ['write "buy milk" to list.txt', 'write_file', { path: 'list.txt', content: 'buy milk\n' }],
  ['/edit a.txt old words => new', 'edit_file', { path: 'a.txt', old_text: 'old words', new_text: 'new' }],
  ['/edit a.txt gone => ', 'edit_file', { path: 'a.txt', old_text: 'gone', new_text: '' }],
  ['/run npm test', 'terminal', { command: 'npm test' }],
  ['run `ls | wc -l`', 'terminal', { command: 'ls | wc -l' }],
  ['Run: echo a; echo b', 'terminal', { command: 'echo a; echo b' }],
  [
    '/todo one; two',
    'todo',
    {
      todos: [
        { content: 'one', status: 'in_progress' },
        { content: 'two', status: 'pending' },
      ],
    },
  ],
  ['/ask Which one? | this | that', 'clarify', { questions: [{ question: 'Which one?', choices: ['this', 'that'] }] }],
  ['/ask Why?', 'clarify', { questions: [{ question: 'Why?' }] }],
])('[RU2] %j uses %s', (prompt, tool, args) => {
  expect(commandOf(prompt)).toEqual({ tool, args });
});

it.each(['/write', '/write a.txt', '/edit a.txt nothing', '/run', '/todo ;'])(
  '[RU2] %j is told how it is said',
  (prompt) => {
    expect(commandOf(prompt)).toEqual({ usage: expect.stringContaining('Say it like this: `/') });
  },
);

it('[RU2] words that only begin so are no command', () => {
  for (const prompt of ['run me through the plan', 'write me a poem', 'running: late']) {
    expect(commandOf(prompt), prompt).toBe('unknown');
  }
});

describe('clarify', () => {
  const tool = createClarifyTool();
  const asked: Question[] = [];
  const call = (args: unknown, answer: Answer) =>
    tool.execute(args, {
      ...toolContext(null),
      ask: async (question) => {
        asked.push(question);
        return answer;
      },
    });

  it.each([
    {},
    null,
    { questions: [] },
    { questions: Array(5).fill({ question: 'x' }) },
    { questions: [null] },
    { questions: [{ question: ' ' }] },
    { questions: [{ question: 'x'.repeat(1001) }] },
    { questions: [{ question: 'x', choices: 'a' }] },
    { questions: [{ question: 'x', choices: [''] }] },
    { questions: [{ question: 'x', choices: Array(11).fill('a') }] },
  ])('[AP6] what is no question is told to the agent, and nobody is asked: %j', async (args) => {
    const before = asked.length;
    expect(await call(args, { kind: 'timeout' })).toMatchObject({ is_error: true });
    expect(tool.preview(args)).toBe('');
    expect(asked).toHaveLength(before);
  });

  it('[AP6] each answer stands under its question, and what was left out is said', async () => {
    const questions = [{ question: 'One?' }, { question: 'Two?', choices: ['a', 'a', 'b'], multi_select: true }];
    const { result } = await call({ questions }, { kind: 'answers', answers: { q0: null, q1: 'a, b' } });
    expect(result).toBe('One?\n→ (no answer)\nTwo?\n→ a, b');
    expect(asked.at(-1)).toEqual({
      kind: 'clarify',
      questions: [
        { qid: 'q0', question: 'One?' },
        { qid: 'q1', question: 'Two?', choices: ['a', 'b'], multi_select: true },
      ],
    });
  });
});
