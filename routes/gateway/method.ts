/** A method of the gateway: its parameters as a closed record beside its handler. */
import { Ajv, type ValidateFunction } from 'ajv';
import type { Static, TObject } from 'typebox';
import type { GatewayClient } from '../../server/live/gateway-sessions.ts';
import { type Params, RpcError } from './frames.ts';

/** The connection that a request came over. */
export interface Caller extends GatewayClient {
  /** Of the credential that it was opened with. */
  key: string;
  /** Whether it says that it can answer questions of an agent. */
  setAnswers(answers: boolean): void;
}

export interface Method {
  /** @throws RpcError, AppError, a storage error; anything else is a bug */
  handle(params: Params, caller: Caller): Promise<unknown>;
}

/** The code for a parameter that is missing, where it has one of its own. */
const MISSING: Record<string, { code: number; message: string }> = {
  session_id: { code: 4006, message: 'session_id is required.' },
  text: { code: 4002, message: 'text is required.' },
  request_id: { code: 4002, message: 'request_id is required.' },
};

const ajv = () => new Ajv({ coerceTypes: false, useDefaults: true, removeAdditional: false });

/** Binds a handler to the shape of its parameters, which is compiled when it is first needed. */
export function method<S extends TObject>(
  schema: S,
  handle: (params: Static<S>, caller: Caller) => Promise<unknown> | unknown,
): Method {
  let check: ValidateFunction | null = null;
  const known = new Set(Object.keys(schema.properties));
  const hasDefault = (key: string): boolean => 'default' in (schema.properties[key] as object);
  const required = ((schema.required ?? []) as readonly string[]).filter((key) => !hasDefault(key));
  return {
    async handle(params, caller) {
      for (const key of Object.keys(params)) {
        if (!known.has(key)) throw new RpcError(4000, `Unknown parameter "${key.slice(0, 100)}".`);
      }
      for (const key of required) {
        if (params[key] !== undefined) continue;
        const { code, message } = MISSING[key] ?? { code: -32602, message: `${key} is required.` };
        throw new RpcError(code, message);
      }
      check ??= ajv().compile(schema);
      if (!check(params)) {
        const error = check.errors?.[0];
        const where = error?.instancePath.replace(/^\//, '').replaceAll('/', '.') || 'params';
        throw new RpcError(-32602, `${where} ${error?.message ?? 'is malformed'}.`);
      }
      return handle(params as Static<S>, caller);
    },
  };
}
