/** The `todo` tool: what the agent means to do, shown to the person. Touches nothing. */
import type { Todo } from '../core/terms.ts';
import { done, failed, schema, type ToolDefinition } from './tool.ts';

const MAX_TODOS = 100;
const MAX_CONTENT = 500;
const STATUSES: readonly Todo['status'][] = ['pending', 'in_progress', 'completed'];

/** `todo`. */
export function createTodoTool(): ToolDefinition {
  return {
    name: 'todo',
    description:
      'Show the person what you mean to do and how far you are, for work of several steps. Give the whole list each time.',
    effect: 'plan',
    parameters: schema(
      {
        todos: {
          type: 'array',
          maxItems: MAX_TODOS,
          items: schema(
            {
              content: { type: 'string', minLength: 1, maxLength: MAX_CONTENT, description: 'One step, one line.' },
              status: { type: 'string', enum: [...STATUSES] },
            },
            ['content', 'status'],
          ),
        },
      },
      ['todos'],
    ),
    preview(args) {
      const read = readTodos(args);
      return typeof read === 'string' ? '' : progress(read);
    },
    async execute(args, context) {
      const todos = readTodos(args);
      if (typeof todos === 'string') return failed(todos);
      if (context.signal.aborted) return failed('Stopped.');
      context.todos(todos);
      return done(todos.length === 0 ? 'The list is empty now.' : `The list is shown: ${progress(todos)}.`);
    },
  };
}

const progress = (todos: readonly Todo[]): string =>
  `${todos.filter(({ status }) => status === 'completed').length} of ${todos.length} done`;

/** The list, or what is wrong with it. */
function readTodos(args: unknown): Todo[] | string {
  const given = typeof args === 'object' && args !== null && Object.hasOwn(args, 'todos') ? args : { todos: undefined };
  const { todos } = given as { todos: unknown };
  if (!Array.isArray(todos)) return 'The argument "todos" must be a list of {content, status}.';
  if (todos.length > MAX_TODOS) return `The list has ${todos.length} entries; ${MAX_TODOS} are the most.`;
  const read: Todo[] = [];
  for (const [index, item] of todos.entries()) {
    const { content, status } = (typeof item === 'object' && item !== null ? item : {}) as Record<string, unknown>;
    if (typeof content !== 'string' || content.trim() === '' || content.length > MAX_CONTENT) {
      return `Entry ${index + 1}: "content" must be a text of 1 to ${MAX_CONTENT} characters.`;
    }
    if (!STATUSES.includes(status as Todo['status'])) {
      return `Entry ${index + 1}: "status" must be one of ${STATUSES.join(', ')}.`;
    }
    read.push({ content: content.toWellFormed(), status: status as Todo['status'] });
  }
  return read;
}
