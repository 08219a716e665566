/**
 * The agents of others that a session can be given: those of the configuration, and the known ones on PATH. Owns what each of
 * them offered when it last ran, so that its models and modes can be chosen before it runs again (AC10, AC11).
 *
 * None is started to be listed. An agent that is not there is not refused either: its turn says what is wrong.
 */

import type { AgentOfferStore } from '../../../db/agent-offer-store.ts';
import { isProgram } from '../../../db/files/programs.ts';
import type { ModelInfo } from '../runner.ts';
import { type AgentOffer, type AgentTarget, NO_OFFER } from './agent-target.ts';
import { findAgents } from './found-agents.ts';
import { type KnownAgent, knownAgent } from './known-agents.ts';

/** The model of an agent that takes whatever it takes by itself. */
export const AGENTS_OWN_CHOICE = 'default';

export interface AgentStatus {
  name: string;
  status: 'ok' | 'unreachable' | 'loading';
  /** For a person. */
  error?: string;
}

export interface AgentList {
  /** The agent whose models new sessions take, if the configuration says so. */
  readonly preferred: string | null;
  models(): ModelInfo[];
  statuses(): AgentStatus[];
  /** Looks at PATH. Never rejects. */
  refresh(): Promise<void>;
  /** The agent of that name; null when there is none (any more). */
  find(name: string): AgentTarget | null;
  /** What one of that name offered when it last said so; null: it has not run here. */
  lastOffer(name: string): AgentOffer | null;
  /** An agent has said what it offers. */
  offered(name: string, offer: AgentOffer): void;
}

export interface AgentListParts {
  configured: readonly AgentTarget[];
  /** Whether the first of them is the default. */
  preferFirst: boolean;
  /** Names that providers have: an agent on PATH does not take them over. */
  taken: readonly string[];
  /** Those to look for on PATH. */
  known: readonly KnownAgent[];
  /** PATH as the agents have it. */
  path: string;
  store: AgentOfferStore;
  /** Epoch seconds. */
  now: () => number;
  onError: (error: unknown) => void;
}

/** Makes the list, with what agents offered in earlier starts. */
export async function createAgentList(parts: AgentListParts): Promise<AgentList> {
  const { configured } = parts;
  const kept = await parts.store.all();
  const offers = new Map(kept.map(({ agent, offer }) => [agent, JSON.parse(offer) as AgentOffer]));
  const statuses = new Map<string, AgentStatus>(configured.map(({ name }) => [name, { name, status: 'loading' }]));
  /** Null until it was looked. */
  let onPath: AgentTarget[] | null = null;

  /** One that is configured already is not found a second time, not even under another name. */
  const isFree = ({ name, command }: AgentTarget): boolean =>
    !parts.taken.includes(name) &&
    configured.every((agent) => agent.name !== name && agent.command.join('\0') !== command.join('\0'));

  const look = async ({ name, command, env }: AgentTarget): Promise<void> => {
    const program = command[0] ?? '';
    const there = await isProgram(program, env.PATH ?? parts.path);
    statuses.set(
      name,
      there ? { name, status: 'ok' } : { name, status: 'unreachable', error: `there is no program "${program}"` },
    );
  };

  const find = (name: string): AgentTarget | null => {
    const agent = [...configured, ...(onPath ?? [])].find((one) => one.name === name);
    if (agent || onPath) return agent ?? null;
    // A prompt of an earlier start may run before it was looked.
    const [command] = parts.known.find((agent) => agent.name === name)?.commands ?? [];
    const expected = command && { name, command, env: {} };
    return expected && isFree(expected) ? expected : null;
  };

  const modelsOf = ({ name }: AgentTarget, source: 'configured' | 'path'): ModelInfo[] => {
    const { models, modes, currentModel } = offers.get(name) ?? NO_OFFER;
    const current = models.find(({ id }) => id === currentModel);
    const own = {
      id: AGENTS_OWN_CHOICE,
      label: `${knownAgent(name)?.label ?? name}${current ? ` (${current.label})` : ''}`,
    };
    return [own, ...models.filter(({ id }) => id !== AGENTS_OWN_CHOICE)].map(({ id, label }) => ({
      id: `${name}/${id}`,
      label,
      provider: name,
      source,
      ...(modes.length > 0 ? { modes: modes.map((mode) => ({ id: mode.id, label: mode.label })) } : {}),
    }));
  };

  return {
    preferred: parts.preferFirst ? (configured[0]?.name ?? null) : null,
    find,
    lastOffer: (name) => offers.get(name) ?? null,
    models: () => [
      ...configured.flatMap((agent) => modelsOf(agent, 'configured')),
      ...(onPath ?? []).flatMap((agent) => modelsOf(agent, 'path')),
    ],
    statuses: () => [...statuses.values(), ...(onPath ?? []).map(({ name }): AgentStatus => ({ name, status: 'ok' }))],
    async refresh() {
      const [found] = await Promise.all([findAgents(parts.path, parts.known), ...configured.map(look)]);
      onPath = found.filter(isFree);
    },
    offered(name, offer) {
      const text = JSON.stringify(offer);
      if (JSON.stringify(offers.get(name)) === text) return;
      offers.set(name, offer);
      parts.store.put(name, text, parts.now()).catch(parts.onError);
    },
  };
}
