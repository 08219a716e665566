/**
 * What the built-in agent needs from the server, and nothing more. Owns nothing; the composition root gives it.
 */
import type { Message, MessageRole } from '../../core/terms.ts';
import type { McpServers } from '../../mcp/mcp-servers.ts';
import type { ToolDefinition } from '../../workspace/tool.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import type { Approvals } from '../approvals.ts';
import type { ModelInfo } from '../runner.ts';

/** One message that a search found. */
export interface ChatHit {
  session_id: string;
  title: string;
  message_id: string;
  role: MessageRole;
  snippet: string;
  /** Epoch seconds. */
  timestamp: number;
}

export interface ServerInfo {
  version: string;
  /** Absolute path of the home folder, where config.yaml is. */
  home: string;
  /** Where the web page is. */
  url: string;
}

export interface BuiltinServices {
  /** The tools that every runner has. */
  tools: readonly ToolDefinition[];
  /** What has further tools. */
  outside?: Pick<McpServers, 'forTurn'>;
  /** Decides on what writes or runs. */
  approvals: Approvals;
  /** Opens a session's workspace by its absolute path. */
  openWorkspace(root: string): Workspace;
  /** Epoch seconds. */
  now(): number;
  /** The server's own zone, an IANA name. */
  timeZone: string;
  /** Full-text search over the stored chats, best first. `q` is plain words. */
  searchChats(q: string, limit: number): Promise<ChatHit[]>;
  /** The transcript of a stored session, oldest first; null when there is none. */
  transcript(sessionId: string): Promise<Message[] | null>;
  /** The session that a person means by a title, whatever its case. */
  findSessionByTitle?(title: string): Promise<{ session_id: string; title: string } | null>;
  listModels(): Promise<ModelInfo[]>;
  serverInfo(): ServerInfo;
  /** Waits `ms` milliseconds, or until the signal aborts; resolves in both cases. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Milliseconds between two words of an answer; 12 when not given. */
  wordDelayMs?: number;
  /** An id for a tool call, never given before. */
  newToolId(): string;
}
