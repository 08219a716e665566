/**
 * Discovery: model servers that people run on this machine, found on the loopback ports where they listen by default.
 * One short question each; a port where something else answers is not one of them.
 */
import { fetchModelList, type ListedModel } from './model-list.ts';
import type { ProviderConfig } from './provider.ts';

const PROBE_TIMEOUT_MS = 500;

export interface DiscoveryTarget {
  name: string;
  /** For a person. */
  label: string;
  port: number;
  /** Paths of its list of models, the one that tells most about it first. */
  paths: string[];
}

export const DISCOVERY_TARGETS: readonly DiscoveryTarget[] = [
  { name: 'ollama', label: 'Ollama', port: 11434, paths: ['/api/tags', '/v1/models'] },
  { name: 'lmstudio', label: 'LM Studio', port: 1234, paths: ['/v1/models'] },
  { name: 'llama-server', label: 'llama-server', port: 8080, paths: ['/v1/models'] },
];

/** A server that was found. */
export interface Discovered {
  provider: ProviderConfig;
  models: ListedModel[];
}

/** Where a target would be as a provider. */
export function providerOf(target: DiscoveryTarget): ProviderConfig {
  return {
    name: target.name,
    kind: 'custom',
    baseUrl: `http://127.0.0.1:${target.port}/v1`,
    apiKey: null,
    defaultModel: null,
    contextLength: null,
  };
}

/**
 * Looks for one server; null when it is not there or is something else. Never throws, ends within half a second for
 * each path.
 */
export async function probe(target: DiscoveryTarget, fetchImpl: typeof fetch): Promise<Discovered | null> {
  for (const path of target.paths) {
    const outcome = await fetchModelList({
      fetch: fetchImpl,
      url: `http://127.0.0.1:${target.port}${path}`,
      timeoutMs: PROBE_TIMEOUT_MS,
      strict: true,
    });
    if (outcome.kind === 'ok') return { provider: providerOf(target), models: outcome.models };
    // Only where something answers may another path do better.
    if (outcome.kind === 'unreachable' && !outcome.error.startsWith('HTTP ')) return null;
  }
  return null;
}
