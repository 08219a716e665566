/** The marker: its words, and what they may claim. */
import { expect, it } from 'vitest';
import { isMarker, markerError, markerId, markerRow } from '../../server/core/marker.ts';
import type { MarkerCause, MarkerRecovery } from '../../server/core/terms.ts';

const RUN = '0123456789abcdef0123456789abcdef';
const CAUSES: MarkerCause[] = ['process_restart', 'lost_bookkeeping', 'split_brain', 'unknown'];
const RECOVERIES: MarkerRecovery[] = ['recovered', 'pending', 'none', 'given_up'];

it('[RE4] a marker says that the turn was interrupted before it finished, the cause, and what came back', () => {
  expect(markerRow(RUN, 200, 'process_restart', 'recovered')).toEqual({
    id: `${RUN}.m`,
    role: 'assistant',
    content:
      'Response interrupted: the server stopped before this turn finished. What had been received until then is shown above.',
    timestamp: 200,
    run_id: RUN,
    status: 'error',
    recovered: true,
    error: {
      code: 'interrupted',
      message:
        'Response interrupted: the server stopped before this turn finished. What had been received until then is shown above.',
      retryable: true,
      cause: 'process_restart',
      recovery: 'recovered',
    },
  });
});

it('[RE4] every cause and recovery has a sentence of its own, and none claims another', () => {
  const sentences = CAUSES.flatMap((cause) => RECOVERIES.map((recovery) => markerError(cause, recovery).message));
  expect(new Set(sentences).size).toBe(16);
  for (const sentence of sentences) {
    expect(sentence).toMatch(/^Response interrupted: .*before this turn finished/);
    expect(sentence).not.toContain('undefined');
  }
  for (const cause of CAUSES) {
    const shown = RECOVERIES.filter((recovery) => /shown above/.test(markerError(cause, recovery).message));
    expect(shown).toEqual(['recovered']);
  }
  for (const recovery of RECOVERIES) {
    // A stop of the server is claimed only where that is the cause.
    const stopped = CAUSES.filter((cause) => /the server stopped/.test(markerError(cause, recovery).message));
    expect(stopped).toEqual(['process_restart']);
    expect(markerError('unknown', recovery).message).toContain('the reason is not known');
  }
});

it('[RE4] a marker is told by its id and its code, and nothing else is taken for one', () => {
  const marker = markerRow(RUN, 200, 'unknown', 'none');
  expect(isMarker(marker)).toBe(true);
  expect(isMarker(JSON.parse(JSON.stringify(marker)))).toBe(true);
  expect(markerId(RUN)).toBe(marker.id);
  expect(isMarker({ id: `${RUN}.m` })).toBe(false);
  expect(isMarker({ id: `${RUN}.1`, error: marker.error })).toBe(false);
  expect(isMarker({ id: marker.id, error: { code: 'stalled', message: 'x', retryable: true } })).toBe(false);
});
