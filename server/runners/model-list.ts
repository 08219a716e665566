/**
 * One look at a server's list of models: `GET <base>/models` or Ollama's own list. Short, bounded in time, never throws:
 * what can happen is a union.
 */

/** A model as a server lists it. */
export interface ListedModel {
  name: string;
  contextLength: number | null;
}

export type ListOutcome =
  | { kind: 'ok'; models: ListedModel[] }
  | { kind: 'unauthorized' }
  | { kind: 'loading' }
  /** Not there, or not such a server; `error` is for a person. */
  | { kind: 'unreachable'; error: string };

export interface ListRequest {
  fetch: typeof fetch;
  url: string;
  /** By which the server knows who asks. */
  headers?: Record<string, string>;
  timeoutMs: number;
  /** The list must say what it is, as it must where anything at all may be listening. */
  strict: boolean;
}

/** Asks for a list in the form of OpenAI (`data`) or of Ollama (`models`). */
export async function fetchModelList(request: ListRequest): Promise<ListOutcome> {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<ListOutcome>((resolve) => {
    timer = setTimeout(() => {
      resolve({ kind: 'unreachable', error: `no answer within ${request.timeoutMs / 1000} s` });
      controller.abort();
    }, request.timeoutMs);
  });
  try {
    return await Promise.race([ask(request, controller.signal), tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

async function ask(request: ListRequest, signal: AbortSignal): Promise<ListOutcome> {
  const { fetch: fetchImpl, url, strict } = request;
  let response: Response;
  let text: string;
  try {
    response = await fetchImpl(url, {
      headers: request.headers ?? {},
      redirect: 'manual', // the key is for this address only
      signal,
    });
    text = await response.text();
  } catch (error) {
    return { kind: 'unreachable', error: reasonOf(error) };
  }
  if (response.status === 401 || response.status === 403) return { kind: 'unauthorized' };
  if (response.status === 503) return { kind: 'loading' };
  if (!response.ok) return { kind: 'unreachable', error: `HTTP ${response.status}` };
  const models = readModelList(text, strict);
  return models ? { kind: 'ok', models } : { kind: 'unreachable', error: 'the answer is not a list of models' };
}

/** The code of the system, such as ECONNREFUSED; the message may hold the address with its credentials. */
function reasonOf(error: unknown): string {
  for (let current = error; current instanceof Error; current = current.cause) {
    if ('code' in current && typeof current.code === 'string') return current.code;
  }
  return 'the request failed';
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

/**
 * Reads a list; null when the text is not one. One entry that is no model makes it some other document.
 * @param strict whether a list under `data` must say `"object": "list"`, as OpenAI's does and not all others do
 */
export function readModelList(text: string, strict: boolean): ListedModel[] | null {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return null;
  }
  const entries = entriesOf(document, strict);
  if (!entries) return null;
  const models = entries.map(readModel);
  return models.every((model) => model !== null) ? models : null;
}

function entriesOf(document: unknown, strict: boolean): unknown[] | null {
  if (Array.isArray(document)) return strict ? null : document;
  if (!isFields(document)) return null;
  if (document.object === 'list' && document.data === null) return [];
  if (Array.isArray(document.data) && (!strict || document.object === 'list')) return document.data;
  return Array.isArray(document.models) ? document.models : null;
}

/** Names that servers give to the size of a model's window, the one in force before the one that is possible. */
const WINDOW_FIELDS = [
  'loaded_context_length',
  'max_model_len',
  'context_length',
  'context_window',
  'max_input_tokens',
  'max_context_length',
];

function readModel(entry: unknown): ListedModel | null {
  if (!isFields(entry)) return null;
  const name = entry.id ?? entry.name;
  if (typeof name !== 'string' || name === '') return null;
  const window = WINDOW_FIELDS.map((field) => entry[field]).find((n) => typeof n === 'number' && n > 0);
  return { name, contextLength: typeof window === 'number' ? window : null };
}
