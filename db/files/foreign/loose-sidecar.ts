/**
 * A sidecar that its own program can read and that does not fit what we expect of one: a row among the others that is none, or
 * its fields in another order. What fits is read; nothing is repaired.
 */
import { stat } from 'node:fs/promises';
import { isRecord } from '../../../server/core/text.ts';
import { isFolder, isMissing } from '../atomic.ts';
import { readPlainFile } from '../plain-file.ts';
import { type FileIdentity, identityOf } from '../sidecar-jobs.ts';
import { unpack } from '../sidecar-rows.ts';
import type { FoundRow, Sidecar } from '../sidecar-store.ts';
import { lazyTail, parseWhole, toSidecar } from '../sidecar-text.ts';

export interface LooseSidecar {
  sidecar: Sidecar<FoundRow>;
  /** Not that of the file: its rows are not the ones that stand there. */
  identity: FileIdentity;
}

/** Fields that stand behind the rows; all others are of the header. */
const BULK = ['tool_calls', 'context_messages', 'anchor_activity_scenes'];

/** @returns null where there is nothing like a sidecar of this session */
export async function readLoosely(file: string, sessionId: string): Promise<LooseSidecar | null> {
  try {
    const identity = identityOf(await stat(file));
    const value: unknown = JSON.parse(String(await readPlainFile(file)));
    if (!isRecord(value) || !Array.isArray(value.messages) || value.session_id !== sessionId) return null;
    const fields = Object.entries(value).filter(([key]) => key !== 'messages');
    const whole = {
      ...Object.fromEntries(fields.filter(([key]) => !BULK.includes(key))),
      messages: value.messages.filter((row) => isRecord(row) && typeof row.role === 'string'),
      ...Object.fromEntries(fields.filter(([key]) => BULK.includes(key))),
    };
    const parsed = parseWhole(sessionId, JSON.stringify(whole));
    if (typeof parsed === 'string') return null;
    const rows = unpack(parsed.rows);
    return { sidecar: toSidecar(parsed.header, rows, lazyTail(parsed.tail)), identity: `${identity} loose` };
  } catch (error) {
    if (error instanceof SyntaxError || isMissing(error) || isFolder(error)) return null;
    throw error;
  }
}
