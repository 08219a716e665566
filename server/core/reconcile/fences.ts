/** The edit fences that another program keeps in the sidecars that it writes. */
import { type Fences, secondsOf } from './row.ts';

/** @param header the scalar fields of a sidecar; null when there is none */
export function fencesOf(header: Readonly<Record<string, unknown>> | null): Fences {
  return { watermark: secondsOf(header?.truncation_watermark), boundary: secondsOf(header?.truncation_boundary) };
}
