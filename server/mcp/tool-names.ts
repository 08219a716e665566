/**
 * Names of the tools of MCP servers as a model is given them: `<server>__<tool>`, of the signs that every provider takes
 * and at most 64 of them. A name depends on the two names alone, so that it stays the same whatever else there is.
 */
import { createHash } from 'node:crypto';

const MOST = 64;
const HASH = 8;

/** A name that had to be changed, or could be read as that of another pair, has a part of a hash at its end. */
export function toolName(server: string, tool: string): string {
  const plain = `${server}__${tool}`;
  const legal = plain.replace(/[^A-Za-z0-9_-]/g, '_');
  const isClear = !server.includes('__') && !server.endsWith('_') && !tool.startsWith('_');
  if (legal === plain && isClear && plain.length <= MOST) return plain;
  const hash = createHash('sha256')
    .update(JSON.stringify([server, tool]))
    .digest('hex')
    .slice(0, HASH);
  return `${legal.slice(0, MOST - HASH - 1)}_${hash}`;
}
