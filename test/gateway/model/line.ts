/**
 * What one reader was shown of one session, whichever way it came, and the faults that its numbers alone give away. A
 * gateway connection counts over the whole live session (GW3); a stream counts in each run and goes on with its cursor
 * over any number of connections (EV1).
 */

export interface Shown {
  type: string;
  runId: string | null;
  /** Null for what has no number. */
  seq: number | null;
  /** The number of the first of the events that were merged into this one; else `seq`. */
  firstSeq: number | null;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server says.
  payload: any;
}

export interface Line {
  readonly name: string;
  /** The stored id of the session. */
  readonly key: string;
  /** Null for a stream. */
  readonly runtimeId: string | null;
  /** Runs that had ended when it began: it is told nothing of them. */
  readonly endedBefore: ReadonlySet<string>;
  /** What the run that ran when it began had said until then. */
  readonly begun: { readonly runId: string; readonly text: string } | null;
  isOpen(): boolean;
  shown(): readonly Shown[];
  faults(): string[];
}

/** An envelope of either wire. */
interface Envelope {
  type: string;
  run_id?: string;
  seq?: number;
  first_seq?: number;
  payload: unknown;
}

export const shownOf = ({ type, run_id, seq, first_seq, payload }: Envelope): Shown => ({
  type,
  runId: run_id ?? null,
  seq: seq ?? null,
  firstSeq: first_seq ?? seq ?? null,
  payload,
});

/** GW3. @param base the number after which the line began */
export function gatewayFaults(shown: readonly Shown[], base: number): string[] {
  const faults: string[] = [];
  let last = base;
  for (const { type, seq, firstSeq } of shown) {
    if (seq === null || firstSeq !== last + 1) faults.push(`${type} is number ${firstSeq} to ${seq} after ${last}`);
    last = seq ?? last;
  }
  return faults;
}

/** EV1. @param shown all that came since the line began, the snapshot first */
export function streamFaults(shown: readonly Shown[]): string[] {
  const faults: string[] = [];
  let place: { runId: string; seq: number; ended: boolean } | null = null;
  for (const [at, { type, runId, seq, firstSeq, payload }] of shown.entries()) {
    if (type === 'session.snapshot') {
      if (at > 0) faults.push('a second snapshot');
      const [of, number] = String(payload.cursor).split(':');
      if (number !== undefined) place = { runId: of!, seq: Number(number), ended: payload.run === null };
    } else if (type === 'session.reset') {
      faults.push(`reset: ${payload.reason}`);
    } else if (seq !== null && runId !== null) {
      const isSame: boolean = place?.runId === runId;
      const wanted = isSame ? place!.seq + 1 : 1;
      if (firstSeq !== wanted) faults.push(`${type} of ${runId} is number ${firstSeq}, not ${wanted}`);
      if (!isSame && place && !place.ended) faults.push(`${runId} begins before ${place.runId} has ended`);
      place = { runId, seq, ended: type === 'message.complete' };
    }
  }
  return faults;
}
