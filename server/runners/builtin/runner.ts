/**
 * The built-in agent as a runner: the default when no model is connected. It answers by rules and real tools, says
 * that it is no language model (RU2), and needs nothing but this server.
 */
import type { Runner, RunnerEnd } from '../runner.ts';
import { answer } from './answer.ts';
import { recognise } from './intents.ts';
import type { BuiltinServices } from './services.ts';

const INTERRUPTED: RunnerEnd = {
  kind: 'failed',
  error: { code: 'interrupted', message: 'The turn was interrupted.', retryable: true },
};
const CRASHED: RunnerEnd = {
  kind: 'failed',
  error: { code: 'agent_crashed', message: 'The built-in agent failed while it answered.', retryable: true },
};

/** Makes the built-in agent. */
export function createBuiltinRunner(services: BuiltinServices): Runner {
  const tools = new Map(services.tools.map((tool) => [tool.name, tool]));
  return {
    kind: 'builtin',
    async *run(turn, signal) {
      try {
        const workspace = turn.workspace === null ? null : services.openWorkspace(turn.workspace);
        const files = { tools, workspace };
        let end = yield* answer(recognise(turn.input), { turn, signal, services }, files);
        // What is said meanwhile is answered behind it.
        for (let said = await turn.steer(); said.length > 0 && !signal.aborted; said = await turn.steer()) {
          for (const { text } of said) {
            end = yield* answer(recognise(text), { turn: { ...turn, input: text }, signal, services }, files);
          }
        }
        return signal.aborted ? INTERRUPTED : end;
      } catch {
        // A runner never throws (RU1), whatever a service did.
        return signal.aborted ? INTERRUPTED : CRASHED;
      }
    },
  };
}
