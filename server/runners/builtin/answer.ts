/**
 * From an intent to an answer: fixed words, or a tool call and the words about its outcome. Which prompt means what is
 * intents.ts; demonstrations are demo.ts.
 */
import type { ToolDefinition } from '../../workspace/tools.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import type { RunnerEnd, RunnerEvent } from '../runner.ts';
import type { Call, Scene } from './call.ts';
import { makeCalls } from './call.ts';
import { matchChatsCall, searchChatsCall, searchWords, summariseChatCall, summariseTextCall } from './chat-calls.ts';
import { demo } from './demo.ts';
import {
  GREETING,
  helpText,
  IDENTITY,
  modelHelp,
  modelList,
  serverText,
  THANKS,
  UNKNOWN,
  unknownCommand,
  unknownTool,
} from './help.ts';
import type { Intent } from './intents.ts';
import { listModelsCall } from './model-calls.ts';
import { addNoteCall, listNotesCall, removeNoteCall } from './note-calls.ts';
import { calculateCall, clockCall } from './reckon-calls.ts';
import { sayMessage } from './speech.ts';
import { toolCall } from './tool-call.ts';
import { readToolCommand } from './tool-commands.ts';

/** The tools of an answer, and the files that they work with. */
export interface Files {
  tools: ReadonlyMap<string, ToolDefinition>;
  workspace: Workspace | null;
}

/** What is said: words, or what a call gives, with `lead` before it. */
type Plan = { say: string } | { call: Call; lead?: string };

const COMPLETED: RunnerEnd = { kind: 'completed' };

/** Answers a turn whose intent is known. */
export async function* answer(
  intent: Intent,
  scene: Scene,
  files: Files,
): AsyncGenerator<RunnerEvent, RunnerEnd, void> {
  if (intent.kind === 'command' && intent.name === 'demo') return yield* demo(intent.rest, scene);
  const asksAnyTool = intent.kind === 'command' && intent.name === 'tool';
  const plan = planFor(intent, scene, asksAnyTool ? yield* withOutside(files, scene) : files);
  if ('say' in plan) {
    yield* sayMessage(plan.say, scene);
    return COMPLETED;
  }
  yield { type: 'message.start', payload: {} };
  const outcomes = yield* makeCalls([plan.call], scene);
  if (outcomes) {
    const said = [plan.lead, outcomes[0]!.say].filter(Boolean).join('\n\n');
    yield* sayMessage(said, scene);
  }
  return COMPLETED;
}

function planFor(intent: Intent, scene: Scene, files: Files): Plan {
  const { turn, services } = scene;
  switch (intent.kind) {
    case 'command': {
      if (intent.name === 'help') return { say: helpText() };
      const command = readToolCommand(intent.name, intent.rest);
      if (!command) return { say: unknownCommand(intent.name) };
      if ('usage' in command) return { say: command.usage };
      if (files.tools.has(command.tool)) return { call: toolCallOf(command.tool, command.args, files, scene) };
      return { say: unknownTool(command.tool, [...files.tools.keys()]) };
    }
    case 'note_add':
      return { call: addNoteCall(intent.text, turn.history) };
    case 'note_list':
      return { call: listNotesCall(turn.history) };
    case 'note_remove':
      return { call: removeNoteCall(intent.number, turn.history) };
    case 'date':
      return { call: clockCall(intent.text, intent.question, services) };
    case 'calculate':
      return { call: calculateCall(intent.expression) };
    case 'summarise_text':
      return { call: summariseTextCall(intent.text) };
    case 'summarise_chat':
      return { call: summariseChatCall(intent.chat, scene) };
    case 'list_files':
      return { call: toolCallOf('list_files', { path: intent.path }, files, scene) };
    case 'read_file': {
      const args = { path: intent.path, ...(intent.offset > 1 ? { offset: intent.offset } : {}) };
      return { call: toolCallOf('read_file', args, files, scene) };
    }
    case 'search_files':
      return { call: toolCallOf('search_files', { query: intent.query }, files, scene) };
    case 'search_chats':
      return { call: searchChatsCall(intent.query, scene) };
    case 'help':
      return { say: helpText() };
    case 'help_model':
      return { call: listModelsCall(services, (models) => modelHelp(services.serverInfo(), models)) };
    case 'list_models':
      return { call: listModelsCall(services, (models) => `These models can be chosen:\n\n${modelList(models)}`) };
    case 'server':
      return { say: serverText(services.serverInfo()) };
    case 'identity':
      return { say: IDENTITY };
    case 'greeting':
      return { say: GREETING };
    case 'thanks':
      return { say: THANKS };
    case 'unknown': {
      const words = searchWords(turn.input);
      return words.length > 0 ? { call: matchChatsCall(words, scene), lead: UNKNOWN } : { say: UNKNOWN };
    }
  }
}

async function* withOutside(files: Files, { services, signal }: Scene): AsyncGenerator<RunnerEvent, Files, void> {
  const outside = services.outside ? yield* services.outside.forTurn(signal) : [];
  return { ...files, tools: new Map([...files.tools, ...outside.map((tool) => [tool.name, tool] as const)]) };
}

function toolCallOf(name: string, args: Record<string, unknown>, { tools, workspace }: Files, scene: Scene): Call {
  return toolCall(tools.get(name)!, args, workspace, scene);
}
