/** How requests are checked and answers are written: by the schemas beside the handlers. */
import { Ajv, type ValidateFunction } from 'ajv';
import type { FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify';

/**
 * Bodies as they are; addresses and queries coerced. Fastify's own settings would drop unknown fields in silence.
 * A schema is compiled when it is first needed: most routes are not used in the first second of a server.
 */
export function createValidatorCompiler(): FastifySchemaCompiler<object> {
  const body = new Ajv({ removeAdditional: false, coerceTypes: false, useDefaults: true, allErrors: false });
  // Coercion makes numbers of "Infinity" and "1e999", and strict numbers have no minimum and no maximum.
  const coerced = { coerceTypes: 'array', strictNumbers: false } as const;
  const query = new Ajv({ removeAdditional: false, useDefaults: true, allErrors: false, ...coerced });
  return ({ schema, httpPart }) => {
    let compiled: ValidateFunction | null = null;
    const check = (data: unknown): boolean => {
      compiled ??= (httpPart === 'body' ? body : query).compile(schema);
      const ok = compiled(data) as boolean;
      check.errors = compiled.errors ?? null;
      return ok;
    };
    check.errors = null as ValidateFunction['errors'] | null;
    return check;
  };
}

/**
 * Answers are written as they are: the services make exactly what a client may see, and schemas document it. They end
 * with a newline, for whoever reads them in a terminal.
 */
export const serializerCompiler: FastifySerializerCompiler<unknown> = () => (data) => `${JSON.stringify(data)}\n`;
