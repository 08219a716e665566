/**
 * The router: the runner that the authority is given. Picks the runner of a turn by the session's model at the moment
 * it starts, so a session can change its model between turns.
 */
import type { AgentTarget } from './acp/agent-target.ts';
import type { Catalog } from './catalog.ts';
import { BUILTIN_MODEL_ID, formatModelId } from './model-id.ts';
import type { Runner, Turn } from './runner.ts';

export interface RouterParts {
  /** Runs turns of the built-in agent. */
  builtin: Runner;
  /** Runs turns of everything else; is given `<provider>/<model>`. */
  model: Runner;
  /** Runs turns of agents of others. */
  agents: AgentRunner;
  catalog: Pick<Catalog, 'resolve'>;
}

/** A runner of many agents, which is told which. */
export interface AgentRunner {
  /** @param model and `mode`: in the agent's own words, null for what it takes by itself */
  run(
    turn: Turn,
    signal: AbortSignal,
    agent: AgentTarget,
    model: string | null,
    mode: string | null,
  ): ReturnType<Runner['run']>;
}

/** Makes the router. A turn whose model is not known fails with `model_not_found`. */
export function createRouterRunner({ builtin, model, agents, catalog }: RouterParts): Runner {
  return {
    kind: 'router',
    async *run(turn, signal) {
      const target = catalog.resolve(turn.model);
      switch (target.kind) {
        case 'builtin':
          return yield* builtin.run({ ...turn, model: BUILTIN_MODEL_ID }, signal);
        case 'model':
          return yield* model.run(
            { ...turn, model: formatModelId({ provider: target.provider.name, model: target.model }) },
            signal,
          );
        case 'agent':
          return yield* agents.run(turn, signal, target.agent, target.model, target.mode);
        case 'unknown':
          return {
            kind: 'failed',
            error: {
              code: 'model_not_found',
              message: `${target.reason} Choose another model for this session.`,
              retryable: false,
            },
          };
      }
    },
  };
}
