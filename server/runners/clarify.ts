/**
 * The `clarify` tool: the agent asks the person, with choices or without, and goes on with what they say (AP6). Owns its
 * words; the waiting is server/live/requests.ts.
 */
import { failed, schema, type ToolContext, type ToolDefinition, type ToolResult } from '../workspace/tool.ts';
import type { Question } from './runner.ts';

const MAX_QUESTIONS = 4;
const MAX_CHOICES = 10;
/** Longest question (characters). */
const MAX_QUESTION = 1000;
/** Longest choice (characters). */
const MAX_CHOICE = 200;

type Clarification = Extract<Question, { kind: 'clarify' }>;

const NO_ANSWER = '(no answer)';
const GO_ON = 'Go on with what is most likely, and say what you took for granted.';

/** `clarify`. */
export function createClarifyTool(): ToolDefinition {
  return {
    name: 'clarify',
    description:
      `Ask the person up to ${MAX_QUESTIONS} short questions and wait for the answers, when you cannot go on well without. ` +
      'Give choices where you can; the person may always answer in other words.',
    effect: 'ask',
    parameters: schema(
      {
        questions: {
          type: 'array',
          minItems: 1,
          maxItems: MAX_QUESTIONS,
          items: schema(
            {
              question: { type: 'string', minLength: 1, maxLength: MAX_QUESTION },
              choices: {
                type: 'array',
                maxItems: MAX_CHOICES,
                items: { type: 'string', minLength: 1, maxLength: MAX_CHOICE },
              },
              multi_select: { type: 'boolean', description: 'More than one choice may be taken. Default: false.' },
            },
            ['question'],
          ),
        },
      },
      ['questions'],
    ),
    preview(args) {
      const read = readQuestions(args);
      return typeof read === 'string' ? '' : read[0]!.question.replace(/\s+/g, ' ').slice(0, 80).toWellFormed();
    },
    execute: clarify,
  };
}

async function clarify(args: unknown, { ask }: ToolContext): Promise<ToolResult> {
  const questions = readQuestions(args);
  if (typeof questions === 'string') return failed(questions);
  const answer = await ask({ kind: 'clarify', questions });
  switch (answer.kind) {
    case 'answers':
      return { result: told(questions, answer.answers), is_error: false };
    case 'timeout': {
      const said = Object.keys(answer.answers ?? {}).length > 0 ? `${told(questions, answer.answers!)}\n` : '';
      return { result: `${said}Nobody answered in time. ${GO_ON}`, is_error: false };
    }
    case 'withdrawn':
      return failed('The question was withdrawn before it was answered.');
    case 'choice':
      return failed('That was no answer to these questions.');
  }
}

/** The answers, each under its question. */
function told(questions: Clarification['questions'], answers: Record<string, string | null>): string {
  const lines = questions.map(({ qid, question }) => `${question}\n→ ${answers[qid]?.trim() || NO_ANSWER}`);
  const isSilent = questions.every(({ qid }) => !answers[qid]?.trim());
  return isSilent ? `${lines.join('\n')}\nThe person did not want to answer. ${GO_ON}` : lines.join('\n');
}

/** The questions, or what is wrong with them. A single question may stand without a list. */
function readQuestions(args: unknown): Clarification['questions'] | string {
  const given = (typeof args === 'object' && args !== null ? args : {}) as Record<string, unknown>;
  const list = Array.isArray(given.questions) ? given.questions : typeof given.question === 'string' ? [given] : null;
  if (!list) return 'The argument "questions" must be a list of {question, choices?, multi_select?}.';
  if (list.length === 0 || list.length > MAX_QUESTIONS)
    return `Ask 1 to ${MAX_QUESTIONS} questions, not ${list.length}.`;
  const read: Clarification['questions'] = [];
  for (const [index, item] of list.entries()) {
    const { question, choices = [], multi_select } = (item ?? {}) as Record<string, unknown>;
    if (typeof question !== 'string' || question.trim() === '' || question.length > MAX_QUESTION) {
      return `Question ${index + 1}: "question" must be a text of 1 to ${MAX_QUESTION} characters.`;
    }
    const isChoice = (one: unknown) => typeof one === 'string' && one.trim() !== '' && one.length <= MAX_CHOICE;
    if (!Array.isArray(choices) || choices.length > MAX_CHOICES || !choices.every(isChoice)) {
      return `Question ${index + 1}: "choices" must be up to ${MAX_CHOICES} texts of 1 to ${MAX_CHOICE} characters.`;
    }
    read.push({
      qid: `q${index}`,
      question: question.toWellFormed(),
      ...(choices.length > 0 ? { choices: [...new Set(choices.map((one: string) => one.toWellFormed()))] } : {}),
      ...(multi_select === true ? { multi_select: true } : {}),
    });
  }
  return read;
}
