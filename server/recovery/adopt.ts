/**
 * Sessions that only their files know: the state DB was lost, or another program put a conversation there. Each gets a row of
 * what its file says of itself; the next read brings its messages back. What was deleted stays deleted (DB3).
 */
import type { SidecarHeader, SidecarStore } from '../../db/files/sidecar-store.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import type { NewCopy, Stores } from '../../db/stores.ts';
import type { Recovery } from './recovery.ts';

export interface AdoptionParts {
  stores: Pick<Stores, 'sessions' | 'edits'>;
  sidecars: Pick<SidecarStore, 'ids' | 'readHeader'>;
  recovery: Pick<Recovery, 'heal'>;
  /** Epoch seconds. */
  now(): number;
  onChange(sessionId: string, reason: string): void;
  log: Record<'info' | 'warn', (fields: object, message: string) => void>;
}

/** Adopts all of them. One that cannot be adopted now is tried again at the next start, and costs the others nothing. */
export function createAdoption(parts: AdoptionParts): () => Promise<void> {
  const { stores, sidecars, log } = parts;

  async function adopt(sessionId: string): Promise<void> {
    const header = await sidecars.readHeader(sessionId);
    if (!header) {
      log.warn({ session_id: sessionId }, 'a file of an unknown session is damaged: see `turnkeep doctor`');
      return;
    }
    const outcome = await stores.edits.copy(rowOf(sessionId, header, parts.now()));
    if (outcome.kind === 'id_taken') return;
    const { pinned, archived } = header;
    const patch = { ...(pinned === true ? { pinned } : {}), ...(archived === true ? { archived } : {}) };
    if (Object.keys(patch).length) await stores.sessions.patch(sessionId, patch, { now: parts.now(), revision: null });
    await parts.recovery.heal(sessionId);
    parts.onChange(sessionId, 'created');
    log.info({ session_id: sessionId }, 'a session that only its file knew is listed again');
  }

  return async () => {
    for (const sessionId of await stores.sessions.unknown(await sidecars.ids())) {
      try {
        await adopt(sessionId);
      } catch (error) {
        if (storageTroubleKind(error) === null) throw error;
        log.warn({ session_id: sessionId, err: error }, 'a session that only its file knows must wait');
      }
    }
  };
}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value.trim() !== '' ? value : null);
const timeOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : null;
const countOf = (value: unknown): number => (typeof value === 'number' && value >= 0 ? Math.floor(value) || 0 : 0);

/** The session's row, as far as its file tells it. @param now epoch seconds */
export function rowOf(sessionId: string, header: SidecarHeader, now: number): NewCopy {
  const title = textOf(header.title);
  const isNamed = title !== null && title !== 'Untitled';
  const changedAt = timeOf(header.updated_at) ?? timeOf(header.created_at) ?? now;
  return {
    session_id: sessionId,
    parent_session_id: textOf(header.parent_session_id),
    title: isNamed ? title : null,
    title_source: isNamed ? (header.manual_title === true ? 'user' : 'derived') : null,
    source: textOf(header.source_tag) ?? textOf(header.session_source) ?? 'turnkeep',
    model: textOf(header.model),
    workspace: textOf(header.workspace),
    project_id: textOf(header.project_id),
    created_at: timeOf(header.created_at) ?? changedAt,
    usage: { input_tokens: countOf(header.input_tokens), output_tokens: countOf(header.output_tokens) },
    rows: [],
    now: changedAt,
  };
}
