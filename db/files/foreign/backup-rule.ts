/**
 * Which of two sidecars counts: the live one, or the `.bak` that its writer made before it saved fewer rows. The backup does,
 * unless the live one is short on purpose: it was cleared, compressed by hand, or edited. A mark that is none says nothing.
 */
import type { SidecarHeader } from '../sidecar-text.ts';

/** What the rule looks at. */
export interface Candidate {
  header: SidecarHeader;
  /** Rows of its transcript. */
  rows: number;
  /** Fields behind the transcript. */
  tail: Readonly<Record<string, unknown>>;
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
/** A random UUID as 32 hexadecimal digits. */
const isUuid4 = (value: unknown): value is string =>
  typeof value === 'string' && /^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$/.test(value);
const isNone = (value: unknown): boolean => value === undefined || value === null;

const contextOf = ({ tail, header }: Candidate): readonly unknown[] => {
  const context = tail.context_messages ?? header.context_messages;
  return Array.isArray(context) ? context : [];
};

export function backupCounts(live: Candidate, backup: Candidate): boolean {
  return (
    backup.rows > live.rows && !wasCleared(live, backup) && !wasCompressed(live, backup) && !wasEdited(live, backup)
  );
}

function wasCleared(live: Candidate, { header: old }: Candidate): boolean {
  const { header } = live;
  if (isNone(header.clear_generation) || header.clear_generation === old.clear_generation) return false;
  const fencesAreZero = header.truncation_watermark === 0 && header.truncation_boundary === 0;
  if (!fencesAreZero) return false;
  // Cleared and still empty, or gone on with since.
  if (live.rows > 0) return true;
  return contextOf(live).length === 0 && !isText(header.active_stream_id) && !isText(header.pending_user_message);
}

function wasCompressed(live: Candidate, backup: Candidate): boolean {
  const { header } = live;
  if (header.compression_anchor_mode !== 'manual' && !isText(header.compression_anchor_summary)) return false;
  const isOlder = backup.header.compression_anchor_summary !== header.compression_anchor_summary;
  return isOlder && contextOf(backup).length > contextOf(live).length;
}

function wasEdited({ header }: Candidate, { header: old }: Candidate): boolean {
  const [now, before] = [header.intentional_shrink_generation, old.intentional_shrink_generation];
  return isUuid4(now) && (isNone(before) || (isUuid4(before) && before !== now));
}
