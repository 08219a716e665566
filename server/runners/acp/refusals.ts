/**
 * What an agent is answered when it asks its client for something that it cannot have: errors of JSON-RPC, in words that it
 * can read. Source of the codes: JSON-RPC 2.0, 5.1, and the Agent Client Protocol, which has -32002 for what is not there.
 */
import { RequestError } from '@agentclientprotocol/sdk';

/** The request makes no sense, or means something outside the workspace. */
export const unfit = (words: string): RequestError => new RequestError(-32602, words);

export const notThere = (words: string): RequestError => new RequestError(-32002, words);

/** The person said no, or could not be asked. */
export const notAllowed = (words: string): RequestError => new RequestError(-32001, words);

/** The machine did not do it. */
export const notDone = (words: string): RequestError => new RequestError(-32603, words);

/** Nothing is done for an agent that has no prompt to work on. */
export const notNow = (): RequestError =>
  new RequestError(-32600, 'No prompt of this session is running, so nothing is done for it.');
