/**
 * What an agent may ask of its client while it works on a prompt: permissions, files and terminals. Made anew for each
 * turn, so that nothing of one turn is done for another.
 *
 * Parameters come unchecked and may be anything. A refusal is thrown as an error of JSON-RPC with words for the agent.
 */
import { type AgentFiles, createAgentFiles } from './agent-files.ts';
import { type AgentTerminals, createAgentTerminals } from './agent-terminals.ts';
import { type ClientMethodsParts, createClientParts } from './client-parts.ts';
import { createPermissions, type PermissionOutcome } from './permissions.ts';

export type { ClientMethodsParts };

/** `cancelled` of a method aborts when the agent takes its request back, or is gone. */
export interface ClientMethods extends AgentFiles, AgentTerminals {
  requestPermission(params: unknown, cancelled: AbortSignal): Promise<PermissionOutcome>;
}

export function createClientMethods(given: ClientMethodsParts): ClientMethods {
  const parts = createClientParts(given);
  return { requestPermission: createPermissions(parts), ...createAgentFiles(parts), ...createAgentTerminals(parts) };
}
