/** Compaction as decisions over values: where a conversation is parted, what is asked of a model, what is left out. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  cleanSummary,
  knownFill,
  planCompaction,
  summaryQuestion,
  summaryRow,
  withoutOldest,
} from '../../server/core/compaction.ts';
import { tokensOf, tokensOfRows } from '../../server/core/context-size.ts';
import type { Message } from '../../server/core/terms.ts';

type Kind = 'prompt' | 'steer' | 'answer' | 'call' | 'marker';

/** A transcript of turns; each is told by what comes after its prompt. */
function transcriptOf(turns: readonly (readonly Kind[])[], size = 40): Message[] {
  const rows: Message[] = [];
  for (const [turn, kinds] of turns.entries()) {
    const run_id = `run${turn}`;
    let n = 0;
    const push = (row: Omit<Message, 'id' | 'timestamp' | 'run_id'>): void => {
      rows.push({ ...row, id: `${run_id}.${n}`, timestamp: turn * 100 + n, run_id });
      n += 1;
    };
    push({ role: 'user', content: 'x'.repeat(size) });
    for (const kind of kinds) {
      if (kind === 'steer') push({ role: 'user', content: 'y'.repeat(size) });
      if (kind === 'answer') push({ role: 'assistant', content: 'z'.repeat(size) });
      if (kind !== 'call') continue;
      const call = { id: `c${turn}_${n}`, type: 'function' as const, function: { name: 'read_file', arguments: '{}' } };
      push({ role: 'assistant', content: '', tool_calls: [call] });
      push({ role: 'tool', content: 'r'.repeat(size), tool_call_id: call.id });
    }
  }
  return rows;
}

const idsOf = (rows: readonly Message[]): string[] => rows.map(({ id }) => id);
const anyTurns = fc.array(fc.array(fc.constantFrom<Kind>('answer', 'call', 'steer'), { maxLength: 5 }), {
  maxLength: 12,
});
const HEAD = summaryRow({ text: 'before', created_at: -1 });

describe('where a conversation is parted', () => {
  it('[CX2][ED6] always before a prompt: no call is parted from its results, nothing is twice or missing', () => {
    fc.assert(
      fc.property(
        anyTurns,
        fc.boolean(),
        fc.nat(600),
        fc.nat(6),
        fc.integer({ min: 1, max: 400 }),
        (turns, hasHead, keepTokens, keepTurns, most) => {
          const rows = transcriptOf(turns);
          const context = hasHead ? [HEAD, ...rows] : rows;
          const pieces = planCompaction(context, idsOf(rows), { keepTokens, keepTurns }, most);
          const covered = pieces.flatMap((piece) => piece.rows);
          expect(covered).toEqual(rows.slice(0, covered.length));
          let at = 0;
          for (const piece of pieces) {
            at += piece.rows.length;
            expect(piece.anchor).toBe(rows[at - 1]!.id);
            // What follows is a prompt that begins a turn, or nothing.
            expect(
              rows[at] === undefined || (rows[at]!.role === 'user' && rows[at]!.run_id !== rows[at - 1]!.run_id),
            ).toBe(true);
            const isOneTurn = new Set(piece.rows.map((row) => row.run_id)).size === 1;
            expect(isOneTurn || tokensOfRows(piece.rows) <= most).toBe(true);
          }
          if (rows.length === 0) expect(pieces).toEqual([]);
          const kept = rows.slice(at);
          if (pieces.length > 0 && kept.length > 0) {
            expect(tokensOfRows(kept)).toBeLessThanOrEqual(keepTokens);
            expect(new Set(kept.map((row) => row.run_id)).size).toBeLessThanOrEqual(keepTurns);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it('[CX2][RC9] where another program keeps a context, only behind what is its own', () => {
    const rows = transcriptOf([['answer'], ['answer'], ['answer']]);
    const own: Message[] = [
      { id: 'context.0', role: 'user', content: '[CONTEXT COMPACTION] of the first', timestamp: 0 },
      { id: 'context.1', role: 'assistant', content: 'seen', timestamp: 0 },
    ];
    const context = [...own, ...rows.slice(2)];
    const pieces = planCompaction(context, idsOf(rows), { keepTokens: 1000, keepTurns: 1 }, 10_000);
    expect(pieces).toEqual([{ rows: [...own, ...rows.slice(2, 4)], anchor: 'run1.1' }]);
    // Nothing of the transcript stands in it row by row: all of it is summarised.
    const strange = planCompaction(own, idsOf(rows), { keepTokens: 1000, keepTurns: 9 }, 10_000);
    expect(strange).toEqual([{ rows: own, anchor: 'run2.1' }]);
  });

  it('[CX2] a summary alone is not summarised again', () => {
    expect(planCompaction([HEAD], ['run0.0'], { keepTokens: 0, keepTurns: 0 }, 100)).toEqual([]);
  });
});

describe('what a model is asked', () => {
  it('[CX5] is never longer than it may be, whatever is in the conversation', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.constantFrom<Kind>('answer', 'call'), { maxLength: 30 }), { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 60_000 }),
        fc.integer({ min: 1000, max: 6000 }),
        (turns, size, most) => {
          const { text } = summaryQuestion('s'.repeat(size), transcriptOf(turns, size), 'f'.repeat(3000), most);
          expect(tokensOf(text)).toBeLessThanOrEqual(most * 1.3);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('[CX5] tells who said what, with the calls and their results, and not what we wrote in a model’s place', () => {
    const rows = transcriptOf([['call', 'answer']], 3);
    const failed: Message = {
      id: 'f',
      role: 'assistant',
      content: 'It broke.',
      timestamp: 9,
      status: 'error',
      error: { code: 'network', message: 'It broke.', retryable: true },
    };
    const { text } = summaryQuestion('earlier', [...rows, failed], null, 5000);
    expect(text).toContain('earlier');
    expect(text).toContain('The person: xxx');
    expect(text).toContain('The assistant used read_file: {}');
    expect(text).toContain('Result of a tool: rrr');
    expect(text).toContain('The assistant: zzz');
    expect(text).not.toContain('It broke.');
  });

  it('[CX5] a summary without a word in it is none', () => {
    expect(cleanSummary('<think>only thoughts', 100)).toBeNull();
    expect(cleanSummary(' \n- … ', 100)).toBeNull();
    expect(cleanSummary('<think>a</think>\n- The person wants b.', 100)).toBe('- The person wants b.');
    expect(cleanSummary('long '.repeat(100), 12)).toBe('long long lo');
  });
});

describe('what is left out', () => {
  it('[CX5] whole turns, the oldest first, until the rest fits; a summary stays', () => {
    const rows = transcriptOf([['call', 'answer'], ['answer'], ['answer']]);
    const first = tokensOfRows(rows.slice(0, 4));
    expect(withoutOldest([HEAD, ...rows], first)).toEqual({ rows: [HEAD, ...rows.slice(4)], turns: 1 });
    expect(withoutOldest([HEAD, ...rows], first + 1)).toEqual({ rows: [HEAD, ...rows.slice(6)], turns: 2 });
    expect(withoutOldest(rows, 0)).toEqual({ rows, turns: 0 });
    expect(withoutOldest(rows, 1e9)).toEqual({ rows: [], turns: 3 });
  });
});

describe('how full the window is', () => {
  it('[CX1] by the last count and what came behind it; a count of before a summary is none', () => {
    const rows = transcriptOf([['answer'], ['answer']]);
    const counted = rows.map((row, at) =>
      at === 1 ? { ...row, usage: { input_tokens: 1, output_tokens: 1, context_used: 700 } } : row,
    );
    expect(knownFill(rows)).toBeNull();
    expect(knownFill(counted)).toBe(700 + tokensOfRows(rows.slice(2)));
    expect(knownFill([summaryRow({ text: 's', created_at: 50 }), ...counted])).toBeNull();
    const estimated = counted.map((row) =>
      row.usage ? { ...row, usage: { ...row.usage, context_estimated: true } } : row,
    );
    expect(knownFill(estimated)).toBeNull();
  });

  it('[CX1] other scripts count more for each sign', () => {
    expect(tokensOf('abcdefgh')).toBe(2);
    expect(tokensOf('日本語で話す')).toBe(5);
  });
});
