/**
 * What a tool card says of a call of an agent: its name, the line at its head, its arguments. Agents name their tools in
 * different places; those that were looked at are named at their rule.
 */
import { boundedJson, isEmptyValue, listOf, oneLineOf, type Raw, recordOf, stringOf } from './raw.ts';

/** What an agent has said of a call, all its updates together. */
export interface CallFields {
  title?: unknown;
  name?: unknown;
  kind?: unknown;
  rawInput?: unknown;
  rawOutput?: unknown;
  content?: unknown;
  locations?: unknown;
  _meta?: unknown;
}

const FIELDS = ['title', 'name', 'kind', 'rawInput', 'rawOutput', 'content', 'locations'] as const;

/** Takes an update in: what it does not say stays. */
export function mergeFields(fields: CallFields, update: Raw): void {
  for (const field of FIELDS) {
    const value = update[field];
    if (isEmptyValue(value) && fields[field] !== undefined) continue;
    if (value !== undefined && value !== null) fields[field] = value;
  }
  fields._meta = { ...recordOf(fields._meta), ...recordOf(update._meta) };
}

/** Whether the arguments are known. The folder may come before them (opencode). */
export const hasInput = ({ rawInput }: CallFields): boolean =>
  Array.isArray(rawInput) || typeof rawInput !== 'object'
    ? !isEmptyValue(rawInput)
    : Object.keys(rawInput ?? {}).some((key) => key !== 'cwd');

const NAME_CHARACTERS = 64;
const PREVIEW_CHARACTERS = 120;
/** Characters of the arguments that are kept. */
const ARGUMENT_CHARACTERS = 64 * 1024;

/** What stands in an input beside the arguments, for the agent's own books (codex). */
const BOOKKEEPING = new Set([
  ...['call_id', 'turn_id', 'process_id', 'started_at_ms', 'source'],
  ...['parsed_cmd', 'proposed_execpolicy_amendment', 'available_decisions'],
]);

/** The name of a tool at the head of a title: `terminal: ls` (hermes). */
const NAMED_TITLE = /^([a-z][a-z0-9_]{1,40}): +(?=\S)/;

/**
 * @param first the title of a call whose input was not known yet: some have the tool's name there first (opencode)
 */
export function callName(fields: CallFields, first: string): string {
  const kind = stringOf(fields.kind);
  const candidates = [
    stringOf(fields.name), // the protocol's own field
    ...[fields._meta, ...Object.values(recordOf(fields._meta))].map((meta) => stringOf(recordOf(meta).toolName)), // qwen, claude
    NAMED_TITLE.exec(stringOf(fields.title))?.[1] ?? '',
    /^[a-z][\w-]{1,40}$/i.test(first) ? first : '',
    kind === 'other' ? '' : kind, // codex, gemini
    'tool',
  ];
  return candidates.map((candidate) => oneLineOf(candidate, NAME_CHARACTERS)).find((name) => name !== '')!;
}

/** One short line. @param cwd whose files are named relative to it */
export function callPreview(fields: CallFields, name: string, cwd: string | null): string {
  const title = stringOf(fields.title).replace(/^`([^`]*)`$/s, '$1');
  const rest = title.startsWith(`${name}: `) ? title.slice(name.length + 2) : title;
  const values = Object.values(recordOf(fields.rawInput)).filter((value) =>
    ['string', 'number'].includes(typeof value),
  );
  const candidates = [
    fields.kind === 'execute' ? commandOf(fields.rawInput) : '',
    rest === name ? '' : rest,
    pathsOf(fields.locations)[0] ?? '',
    values.map((value) => String(value).slice(0, PREVIEW_CHARACTERS)).join(' · '),
    title,
  ];
  const shown = (text: string): string => (cwd === null ? text : text.slice(0, 4000).replaceAll(`${cwd}/`, ''));
  return candidates.map((text) => oneLineOf(shown(text), PREVIEW_CHARACTERS)).find((line) => line !== '') ?? '';
}

/** The command of an input: a line, or a list of words whose last is the line that a shell is given (codex). */
function commandOf(input: unknown): string {
  const { command } = recordOf(input);
  if (typeof command === 'string') return command;
  const words = listOf(command).filter((word) => typeof word === 'string');
  return /^-\w*c$/.test(words.at(-2) ?? '') ? (words.at(-1) ?? '') : words.join(' ');
}

const pathsOf = (locations: unknown): string[] =>
  listOf(locations)
    .map((location) => stringOf(recordOf(location).path))
    .filter((path) => path !== '');

/** An object, as our own calls have it; where an agent does not tell its input, the files that it names. */
export function callArguments({ rawInput, locations }: CallFields): unknown {
  if (isEmptyValue(rawInput)) {
    const paths = pathsOf(locations);
    return paths.length > 0 ? boundedJson({ paths }, ARGUMENT_CHARACTERS) : {};
  }
  if (typeof rawInput !== 'object' || Array.isArray(rawInput))
    return boundedJson({ input: rawInput }, ARGUMENT_CHARACTERS);
  const entries = Object.entries(recordOf(rawInput));
  const isBooked = entries.some(([key]) => key === 'call_id') && entries.some(([key]) => key === 'turn_id');
  const args = isBooked ? Object.fromEntries(entries.filter(([key]) => !BOOKKEEPING.has(key))) : rawInput;
  return boundedJson(args, ARGUMENT_CHARACTERS);
}
