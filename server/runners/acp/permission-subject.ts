/**
 * What an agent asks permission for, in the terms of our own approvals: so that the same patterns, the same words and the
 * same hiding of secrets hold for it (AC20). Everything that it says about itself is read as what it may be: wrong.
 *
 * A command in the workspace is a call of `terminal`, a change of files in the workspace one of `write_file`, because that
 * is what a person means who allows those. Everything else has a name of its own, `<agent>.<kind>`, and is allowed only
 * word by word: no pattern of ours reaches outside the workspace.
 */
import { diffOf } from '../../workspace/diff.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import { commandMeant, runArguments, runKey } from './command-line.ts';
import type { Allowed, ShownChange } from './just-allowed.ts';
import { isEmptyValue, listOf, oneLineOf, recordOf, stringOf } from './raw.ts';

/** What an agent has said of a call, raw. */
export interface RawCall {
  title?: unknown;
  kind?: unknown;
  rawInput?: unknown;
  content?: unknown;
  locations?: unknown;
}

export interface PermissionSubject {
  tool: { name: string; effect: 'write' | 'run' };
  args: Record<string, unknown>;
  /** For the person. */
  description: string;
  /** What a yes allows that the agent may then ask its client to do. */
  covers: Allowed[];
}

const KINDS = new Set(['read', 'edit', 'delete', 'move', 'search', 'execute', 'think', 'fetch', 'switch_mode']);
/** Fields of an input that only speak about it, or are new in each call (the last two lines: codex). */
const NOTES = [
  ...['description', 'reason', 'justification', 'call_id', 'callId', 'turn_id', 'process_id', 'parsed_cmd'],
  ...['started_at_ms', 'proposed_execpolicy_amendment', 'available_decisions', 'command_actions'],
];
/** Says something only when it is true. */
const BACKGROUND = /^(?:is_|run_in_)?background$/;
const PATHS = ['path', 'file_path', 'filePath', 'filepath', 'abs_path', 'notebook_path'];
const FOLDERS = ['cwd', 'workdir', 'directory', 'dir_path'];
/** So much of an agent's own words about a call is shown (characters). */
const MAX_SAID = 300;

/** @param workspace null: nothing of it is inside one */
export async function subjectOf(call: RawCall, agent: string, workspace: Workspace | null): Promise<PermissionSubject> {
  const kind = KINDS.has(stringOf(call.kind)) ? stringOf(call.kind) : 'other';
  const own = { name: `${agent}.${kind}`.replace(/[^\w.-]/g, '-').slice(0, 128), effect: 'run' as const };
  const asks: Asks = { call, input: inputOf(call.rawInput), agent, workspace, own };
  const found =
    kind === 'execute' ? await commandSubject(asks) : kind === 'edit' && workspace ? await changeSubject(asks) : null;
  return found ?? otherSubject(asks, kind);
}

interface Asks {
  call: RawCall;
  input: Record<string, unknown>;
  agent: string;
  workspace: Workspace | null;
  /** The tool that it is when it is none of ours. */
  own: PermissionSubject['tool'];
}

const inputOf = (raw: unknown): Record<string, unknown> =>
  isEmptyValue(raw) || recordOf(raw) === raw ? recordOf(raw) : { input: raw };

/** A command; null where none is said. */
async function commandSubject({ call, input, agent, workspace, own }: Asks): Promise<PermissionSubject | null> {
  const words = [input.command, input.args].flatMap((part) => (Array.isArray(part) ? part : (part ?? [])));
  if (words.length === 0 || !words.every((word) => typeof word === 'string') || words[0] === '') return null;
  const folderName = FOLDERS.find((name) => stringOf(input[name]) !== '');
  const folder = folderName === undefined ? '.' : stringOf(input[folderName]);
  const place = workspace === null ? null : await workspace.place(folder);
  const inside = place?.ok === true;
  const env = envOf(input.env);
  const run = runArguments(commandMeant(words), inside ? place.name : folder, env ?? {});
  const said = ['command', 'args', folderName ?? '', ...(env === null ? [] : ['env']), ...NOTES];
  return {
    tool: inside ? { name: 'terminal', effect: 'run' } : own,
    args: { ...without(input, said), ...run },
    description: `${agent} asks to run this itself, with all rights of the server's user.${saidOf(call, input, [run.command])}`,
    covers: inside && env !== null ? [{ kind: 'run', key: runKey(run) }] : [],
  };
}

/** A change of files that all lie in the workspace; null for others. */
async function changeSubject({ call, input, agent, workspace }: Asks): Promise<PermissionSubject | null> {
  const diffs = diffsOf(call.content);
  const paths = pathsOf(call, input, diffs);
  const found = await namesIn(workspace, paths);
  if (!found) return null;
  const names = [...new Set(found.values())];
  const content = stringOf(input.content);
  const changesOf = (name: string): ShownChange[] =>
    diffs.length === 0 && content !== ''
      ? [{ before: null, after: content }]
      : diffs.filter(({ path }) => found.get(path) === name);
  return {
    tool: { name: 'write_file', effect: 'write' },
    args: { path: names.join(', '), ...whatChanges(diffs, input, found) },
    description: `${agent} asks to change this in the conversation's workspace itself.${saidOf(call, input, paths)}`,
    covers: names.flatMap((name) => {
      const changes = changesOf(name);
      return changes.length > 0 ? [{ kind: 'write', name, changes }] : [];
    }),
  };
}

function otherSubject({ call, input, agent, own }: Asks, kind: string): PermissionSubject {
  const diffs = diffsOf(call.content);
  const paths = pathsOf(call, input, diffs);
  const title = stringOf(call.title).replace(/[\r\n]+/g, ' ') || kind;
  const { command, ...rest } = input;
  return {
    tool: own,
    args: {
      ...(paths.length === 0 ? {} : { paths: paths.join(', ') }),
      ...whatChanges(diffs, without(rest, NOTES), null),
      ...(isEmptyValue(command) ? {} : { input: command }),
      command: title,
    },
    description: `${agent} asks to do this itself, with all rights of the server's user.${saidOf(call, input, [title])}`,
    covers: [],
  };
}

/** An environment as we give one; null for what is none, which is shown as it came. */
function envOf(value: unknown): Record<string, string> | null {
  if (isEmptyValue(value)) return {};
  const env = recordOf(value);
  const isOne = env === value && Object.values(env).every((item) => typeof item === 'string');
  return isOne ? (env as Record<string, string>) : null;
}

interface RawDiff extends ShownChange {
  path: string;
}

function diffsOf(content: unknown): RawDiff[] {
  return listOf(content).flatMap((item) => {
    const { type, path, oldText, newText } = recordOf(item);
    if (type !== 'diff' || typeof path !== 'string') return [];
    return [{ path, before: typeof oldText === 'string' ? oldText : null, after: stringOf(newText) }];
  });
}

const pathsOf = (call: RawCall, input: Record<string, unknown>, diffs: readonly RawDiff[]): string[] => [
  ...new Set(
    [
      ...diffs.map(({ path }) => path),
      ...PATHS.map((name) => stringOf(input[name])),
      ...listOf(call.locations).map((location) => stringOf(recordOf(location).path)),
    ].filter((path) => path !== ''),
  ),
];

/** The names of paths from the root; null unless all of them, and at least one, are inside. */
async function namesIn(workspace: Workspace | null, paths: readonly string[]): Promise<Map<string, string> | null> {
  if (workspace === null || paths.length === 0) return null;
  const names = new Map<string, string>();
  for (const path of paths) {
    const place = await workspace.place(path);
    if (!place.ok) return null;
    names.set(path, place.name);
  }
  return names;
}

/** What is shown of a change: what differs, or the input where the agent shows no difference. */
function whatChanges(
  diffs: readonly RawDiff[],
  input: Record<string, unknown>,
  names: Map<string, string> | null,
): Record<string, unknown> {
  if (diffs.length === 0) return without(input, [...PATHS, ...NOTES]);
  const texts = diffs.map(({ path, before, after }) => diffOf(before, after, names?.get(path) ?? path.slice(1)).text);
  return { diff: texts.join('').trimEnd() };
}

/** Fields that say something, but for these. */
const without = (input: Record<string, unknown>, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(input).filter(
      ([name, value]) => !names.includes(name) && !isEmptyValue(value) && !(value === false && BACKGROUND.test(name)),
    ),
  );

/** @param shown what is shown anyhow */
function saidOf(call: RawCall, input: Record<string, unknown>, shown: readonly string[]): string {
  const words = stringOf(input.description) || stringOf(input.reason) || stringOf(call.title);
  const line = oneLineOf(words, MAX_SAID);
  return line === '' || shown.some((text) => text !== '' && line.includes(text)) ? '' : ` It says: "${line}"`;
}
