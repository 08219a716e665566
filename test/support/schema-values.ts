/** Values for the JSON schemas of the published interface: most fit, some are at a bound or a little off. */

// biome-ignore lint/suspicious/noExplicitAny: the document is looked at as it is.
type Json = any;

/** One call of the interface, as its document describes it. */
export interface Operation {
  method: string;
  /** With `{names}`. */
  address: string;
  parameters: { in: string; name: string; schema: object }[];
  /** Schema of its JSON body; null for none. */
  body: object | null;
}

export function operationsOf(document: Json): Operation[] {
  return Object.entries<Json>(document.paths).flatMap(([address, item]) =>
    Object.entries<Json>(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      address,
      parameters: operation.parameters ?? [],
      body: operation.requestBody?.content?.['application/json']?.schema ?? null,
    })),
  );
}

const ODD: unknown[] = [null, '', 0, -1, 1e308, true, [], {}, '\u0000', '\ud800', '..', '__proto__', 'x'.repeat(5000)];
const WORDS = ['a', 'hello', '..', '\u202e', '\ud83d\ude00', '0', '-1', 'null', '%00', '<b>', "'; --", 'e\u0301'];

/**
 * @param random in [0, 1)
 * @param known texts that mean something to the server
 */
export function anyValueOf(schema: Json, random: () => number, known: readonly string[] = []): unknown {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  const inner = (one: Json): unknown => anyValueOf(one, random, known);
  if (random() < 0.04) return pick(ODD);
  if ('const' in schema) return schema.const;
  if (schema.enum) return pick(schema.enum);
  if (schema.anyOf) return inner(pick(schema.anyOf));
  switch (schema.type) {
    case 'object':
      return objectOf(schema, random, inner);
    case 'array':
      return Array.from({ length: Math.floor(random() * 4) }, () => inner(schema.items ?? {}));
    case 'integer':
    case 'number': {
      const { minimum = -5, maximum = 100_000 } = schema;
      const value = pick([minimum, minimum + 1, maximum, minimum + random() * (maximum - minimum), minimum - 1]);
      return schema.type === 'integer' ? Math.round(value) : value;
    }
    case 'boolean':
      return random() < 0.5;
    case 'null':
      return null;
    case 'string': {
      if (known.length > 0 && random() < 0.3) return pick(known);
      const text = Array.from({ length: 1 + Math.floor(random() * 6) }, () => pick(WORDS)).join(' ');
      const filled = text.padEnd(schema.minLength ?? 0, 'x');
      return random() < 0.8 ? filled.slice(0, schema.maxLength ?? 1000) : filled;
    }
    default:
      return pick([...ODD, ...WORDS]);
  }
}

/** What is required, and of the rest the half. */
function objectOf(schema: Json, random: () => number, inner: (one: Json) => unknown): Record<string, unknown> {
  const required: string[] = schema.required ?? [];
  const entries = Object.entries<Json>(schema.properties ?? {})
    .filter(([key]) => (required.includes(key) ? random() < 0.97 : random() < 0.5))
    .map(([key, one]): [string, unknown] => [key, inner(one)]);
  if (random() < 0.03) entries.push(['other', 'x']);
  return Object.fromEntries(entries);
}
