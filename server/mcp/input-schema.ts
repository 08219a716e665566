/**
 * The input schemas of other programs' tools, made safe to pass on. A provider that dislikes one schema refuses the
 * whole request, and with it the turn: so what is known to be refused is taken out, and what cannot be saved costs that
 * tool alone. The server checks what it is given by itself.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { isDeeperThan, isRecord } from '../core/text.ts';

export type SafeSchema = { ok: true; schema: Record<string, unknown> } | { ok: false; reason: string };

/** Most characters of a schema: a model has to read it with every request. */
const MAX_SCHEMA = 32 * 1024;
const MAX_DEPTH = 40;

/** At the top, providers take an object and no choices. */
const NOT_AT_TOP = [
  '$schema',
  '$id',
  '$anchor',
  'oneOf',
  'anyOf',
  'allOf',
  'not',
  'enum',
  'const',
  'if',
  'then',
  'else',
];
/** Keys under which a value is not a schema, whatever it looks like. */
const VALUES = new Set(['default', 'enum', 'const', 'examples', 'required']);
/** Keys under which names of the author's own lead to schemas. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);

/** @returns what makes schemas safe; it takes whatever a server sends as the schema of a tool's arguments */
export function createSafeSchema(): (given: unknown) => SafeSchema {
  // The draft that providers check against.
  const draft = new Ajv2020({ strict: false, logger: false });
  return (given) => {
    const safe = safeSchema(given);
    return safe.ok && !draft.validateSchema(safe.schema) ? { ok: false, reason: 'its input schema is none' } : safe;
  };
}

function safeSchema(given: unknown): SafeSchema {
  if (given === undefined || given === null) return { ok: true, schema: { type: 'object', properties: {} } };
  if (!isRecord(given)) return { ok: false, reason: 'its input schema is no object' };
  if (isDeeperThan(given, MAX_DEPTH)) return { ok: false, reason: 'its input schema is nested too deep' };
  const size = JSON.stringify(given).length;
  if (size > MAX_SCHEMA) {
    return { ok: false, reason: `its input schema has ${size} characters; ${MAX_SCHEMA} are the most` };
  }
  if (given.type !== undefined && given.type !== 'object') {
    return { ok: false, reason: 'its input schema describes no object' };
  }
  const { properties, required, ...others } = given;
  if (properties !== undefined && !isRecord(properties)) return { ok: false, reason: 'its properties are no object' };
  for (const key of NOT_AT_TOP) delete others[key];
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
  const schema = { ...others, type: 'object', properties: properties ?? {} };
  // One that is required and described nowhere is refused by some.
  const known = [...new Set(names)].filter((name) => Object.hasOwn(schema.properties, name));
  return { ok: true, schema: cleaned({ ...schema, ...(known.length > 0 ? { required: known } : {}) }, given) };
}

/** The same schema with references only where they lead somewhere. */
function cleaned(schema: Record<string, unknown>, root: Record<string, unknown>): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === '$ref' && typeof value === 'string' && !leadsSomewhere(value, root)) continue;
    if (VALUES.has(key)) result[key] = value;
    else if (NAMED.has(key) && isRecord(value)) {
      result[key] = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, cleanedSchema(one, root)]));
    } else if (key === 'items' && Array.isArray(value)) {
      // So it was called before the draft of 2020.
      result.prefixItems = value.map((one) => cleanedSchema(one, root));
    } else result[key] = cleanedItem(value, root);
  }
  return result;
}

/** What is no schema where one has to be says nothing. */
function cleanedSchema(value: unknown, root: Record<string, unknown>): unknown {
  if (isRecord(value)) return cleaned(value, root);
  return typeof value === 'boolean' ? value : {};
}

function cleanedItem(value: unknown, root: Record<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((item) => cleanedItem(item, root));
  return isRecord(value) ? cleaned(value, root) : value;
}

/** Whether a reference ends at a schema of this document, and not in a circle of references or elsewhere. */
function leadsSomewhere(reference: string, root: Record<string, unknown>): boolean {
  const seen = new Set<string>();
  for (let at = reference; !seen.has(at); ) {
    seen.add(at);
    if (at !== '#' && !at.startsWith('#/')) return false;
    // What is taken out at the top is not there to be referred to.
    const keys = at
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    if (keys[0] !== undefined && NOT_AT_TOP.includes(keys[0])) return false;
    let found: unknown = root;
    for (const key of keys) found = isOpen(found) && Object.hasOwn(found, key) ? found[key] : undefined;
    if (!isRecord(found)) return typeof found === 'boolean';
    if (typeof found.$ref !== 'string') return true;
    at = found.$ref;
  }
  return false;
}

const isOpen = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
