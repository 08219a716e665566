/**
 * What the person of a server has chosen in place of config.yaml. Kept as one JSON value, which a later version may have
 * written more into: what is not understood counts as no choice.
 */
import { isRecord } from './text.ts';

/** What a prompt may do by default while a turn runs. */
export const BUSY_MODES = ['queue', 'steer', 'interrupt'] as const;

export interface ServerSettings {
  /** Id of the model for sessions that name none; null for the configured one. */
  default_model: string | null;
  /** What a prompt does while a turn runs and it does not say so itself; null as in `display.busy_input_mode`. */
  busy_input_mode: (typeof BUSY_MODES)[number] | null;
}

/** The fields of the kept value, also those that only other versions know; none of one that is not a JSON object. */
function fieldsOf(kept: string | null): Record<string, unknown> {
  if (kept === null) return {};
  try {
    const value: unknown = JSON.parse(kept);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** The settings in the kept value; null where none were ever kept. */
export function readServerSettings(kept: string | null): ServerSettings {
  const { default_model: model, busy_input_mode: mode } = fieldsOf(kept);
  return {
    default_model: typeof model === 'string' && model !== '' ? model : null,
    busy_input_mode: BUSY_MODES.find((one) => one === mode) ?? null,
  };
}

/** The value to keep after a change; what it does not name stays as it is. */
export const changedServerSettings = (kept: string | null, changes: Partial<ServerSettings>): string =>
  JSON.stringify({ ...fieldsOf(kept), ...changes });
