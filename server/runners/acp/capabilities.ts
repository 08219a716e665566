/** What an agent says in its greeting that it can do, as far as it matters here. */
import { recordOf } from './raw.ts';

export interface Capabilities {
  load: boolean;
  resume: boolean;
  /** Whether prompts may have images. */
  image: boolean;
  /** MCP servers that it can reach, beside those that are programs. */
  mcp: { http: boolean };
}

/** @param value `agentCapabilities` of the response to initialize, as the agent wrote it */
export function readCapabilities(value: unknown): Capabilities {
  const { loadSession, promptCapabilities, sessionCapabilities, mcpCapabilities } = recordOf(value);
  const { resume } = recordOf(sessionCapabilities);
  return {
    load: loadSession === true,
    resume: typeof resume === 'object' && resume !== null,
    image: recordOf(promptCapabilities).image === true,
    mcp: { http: recordOf(mcpCapabilities).http === true },
  };
}
