/** What is known of an agent of others: how it is started, and what it offers. Plain data; owns nothing. */

/** An agent that speaks the Agent Client Protocol over its standard input and output. */
export interface AgentTarget {
  /** Short stable name without a slash: the part of a model id before its first slash. */
  name: string;
  /** The program, by its absolute path or as PATH has it, and its arguments. */
  command: readonly string[];
  /** What it is given besides the server's environment; may hold keys, so it is never told or logged. */
  env: Readonly<Record<string, string>>;
}

/** One of the things that an agent lets a person choose between, in its own words. */
export interface AgentChoice {
  id: string;
  label: string;
}

/** What an agent offered when a session of its own was made. */
export interface AgentOffer {
  models: readonly AgentChoice[];
  /** What it takes where nothing is chosen; null where it does not say. */
  currentModel: string | null;
  modes: readonly AgentChoice[];
  currentMode: string | null;
}

export const NO_OFFER: AgentOffer = { models: [], currentModel: null, modes: [], currentMode: null };
