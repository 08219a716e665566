/** Methods on the connection itself. */
import Type from 'typebox';
import { type Method, method } from '../method.ts';

/** Kinds of questions that an agent may ask. */
const QUESTIONS = ['approval', 'clarify'];

export const connectionMethods: () => Record<string, Method> = () => ({
  'client.capabilities': method(
    Type.Object({
      server_requests: Type.Optional(Type.Boolean()),
      confirm: Type.Optional(Type.Array(Type.String())),
      session_change_cursor: Type.Optional(Type.Boolean()),
    }),
    ({ server_requests }, caller) => {
      if (server_requests !== undefined) caller.setAnswers(server_requests);
      return { server_requests: QUESTIONS };
    },
  ),
  'gateway.capabilities': method(Type.Object({}), () => ({ per_session_exclusive_submit: true })),
  ping: method(Type.Object({}), () => ({ pong: true })),
});
