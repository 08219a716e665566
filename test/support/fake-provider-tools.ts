/**
 * What the pickiest of providers refuse in the tools of a request: names, and schemas that are no objects, have choices at
 * the top, or refer to what is not there.
 */

interface SentTool {
  type?: string;
  function?: { name?: unknown; description?: unknown; parameters?: unknown };
}

/** The faults of the tools of a request, in words. */
export function toolFaults(tools: readonly SentTool[]): string[] {
  const faults: string[] = [];
  const names = new Set<unknown>();
  for (const { type, function: tool } of tools) {
    const name = tool?.name;
    if (type !== 'function') faults.push(`tools: type ${type}`);
    if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(name)) faults.push(`tools: bad name ${String(name)}`);
    if (names.has(name)) faults.push(`tools: ${String(name)} is there twice`);
    names.add(name);
    for (const problem of schemaFaults(tool?.parameters)) faults.push(`tools: ${String(name)}: ${problem}`);
  }
  return faults;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function schemaFaults(schema: unknown): string[] {
  if (!isObject(schema)) return ['no schema'];
  const faults = schema.type === 'object' ? [] : [`type ${String(schema.type)}`];
  const { properties, required } = schema;
  if (!isObject(properties)) return [...faults, 'no properties'];
  for (const key of ['oneOf', 'anyOf', 'allOf', 'not', 'enum']) if (key in schema) faults.push(`${key} at the top`);
  for (const name of (required as string[] | undefined) ?? [])
    if (!(name in properties)) faults.push(`${name} is unknown`);
  for (const reference of texts(schema).matchAll(/"\$ref":"([^"]*)"/g)) {
    let at: unknown = schema;
    for (const key of reference[1]!.split('/').slice(1)) at = isObject(at) ? at[key] : undefined;
    if (!reference[1]!.startsWith('#') || !isObject(at)) faults.push(`${reference[1]} leads nowhere`);
    else if (typeof at.$ref === 'string') faults.push(`${reference[1]} leads to another reference`);
  }
  return faults;
}

/** What stands in a list of values is no reference. */
const texts = (schema: object): string => JSON.stringify(schema, (key, value) => (key === 'enum' ? undefined : value));
