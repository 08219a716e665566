/**
 * The MCP servers of the configuration as an agent of its own is given them, which starts and asks for them by itself.
 * Source: the Agent Client Protocol, `McpServer` of `session/new`, version 1.
 */
import type { McpServerSettings } from './settings.ts';

type Pair = { name: string; value: string };

export type AgentMcpServer =
  | { name: string; command: string; args: string[]; env: Pair[] }
  | { type: 'http'; name: string; url: string; headers: Pair[] };

/**
 * Those that an agent can have. One of which only some tools are wanted is not among them, because an agent cannot be held
 * to that; nor is one that we could not use.
 * @param agent what its `mcpCapabilities` say
 */
export function mcpServersForAgents(
  settings: readonly McpServerSettings[],
  agent: { http: boolean },
): AgentMcpServer[] {
  return settings.flatMap(({ name, transport, include, exclude, unusable }): AgentMcpServer[] => {
    if (include !== null || exclude.length > 0 || unusable !== null) return [];
    if (transport.kind === 'stdio') {
      const { command, args, env } = transport;
      return [{ name, command, args, env: pairs(env) }];
    }
    return agent.http ? [{ type: 'http', name, url: transport.url, headers: pairs(transport.headers) }] : [];
  });
}

const pairs = (values: Record<string, string>): Pair[] =>
  Object.entries(values).map(([name, value]) => ({ name, value }));
