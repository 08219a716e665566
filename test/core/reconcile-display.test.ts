/** Rows of other programs as a browser sees them, their names, and the cut of a sidecar that missed an edit. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toDisplay } from '../../server/core/reconcile/display.ts';
import { cutAtEdit } from '../../server/core/reconcile/edit-fence.ts';
import { nameRows } from '../../server/core/reconcile/names.ts';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import { call, rows, rowWith } from './reconcile-rows.ts';

const shown = (fields: object) =>
  toDisplay(rowWith({ role: 'assistant', content: 'text', timestamp: 5 }, { ...fields }), 'x1');

describe('a row of another program', () => {
  it('[RC9] shows who said what and when, with 0 for a time that nobody knows', () => {
    expect(shown({})).toEqual({ id: 'x1', role: 'assistant', content: 'text', timestamp: 5, status: 'complete' });
    expect(shown({ role: 'user', timestamp: '5.5' })).toEqual({
      id: 'x1',
      role: 'user',
      content: 'text',
      timestamp: 5.5,
    });
    for (const timestamp of [undefined, null, '', 'never', Number.NaN]) expect(shown({ timestamp }).timestamp).toBe(0);
    expect(shown({ role: 'developer' }).role).toBe('system');
    expect(shown({ content: null }).content).toBe('');
  });

  it('[RC9] shows nothing that only a provider or a program needs', () => {
    const secret = {
      api_content: 's',
      _row_id: 1,
      _state_db_row_id: 1,
      _db_row_id: 1,
      state_db_row_id: 1,
      _active_turn_token: 's',
      _active_turn_user: true,
      _fork_child_turn: true,
      reasoning_details: [1],
      codex_reasoning_items: [1],
      codex_message_items: [1],
      _anything: 1,
    };
    expect(shown(secret)).toEqual(shown({}));
    const id = `${'c'.repeat(32)}.1`;
    const ours = {
      id,
      role: 'assistant',
      content: 'text',
      timestamp: 5,
      run_id: 'c'.repeat(32),
      duration_s: 2,
      anything: 1,
    };
    expect(toDisplay(ours, id)).toBe(ours);
    expect(toDisplay({ ...ours, api_content: 's', _state_db_row_id: 4 }, id)).toEqual(ours);
  });

  it('[RC9] shows an interruption, a cancel and an error as what they are', () => {
    const marker = { _error: true, type: 'interrupted', interruption_cause: 'stream_run_split_brain' };
    const error = { code: 'interrupted', message: 'text', retryable: true, cause: 'split_brain' };
    expect(shown(marker)).toMatchObject({ status: 'error', error });
    expect(shown({ ...marker, _pending_journal_recovery: true }).error).toEqual({ ...error, recovery: 'pending' });
    expect(shown({ ...marker, interruption_cause: 'odd' }).error?.cause).toBe('unknown');
    expect(shown({ _error: true, provider_details_label: 'Cancellation details' }).error?.code).toBe('interrupted');
    expect(shown({ _error: true, type: 'quota' }).error?.code).toBe('quota');
    expect(shown({ _error: true, type: 'odd' }).error?.code).toBe('provider_error');
  });

  it('[RC9] shows what a person denied and what an agent meant to do also where another field is damaged', () => {
    const todos = [{ content: 'look', status: 'pending' }];
    expect(shown({ role: 'tool', denied: true, duration_s: 'long' }).denied).toBe(true);
    expect(shown({ role: 'tool', denied: 'yes' }).denied).toBeUndefined();
    expect(shown({ todos, model: 5 }).todos).toEqual(todos);
    expect(shown({ todos: [{ content: 'look', status: 'soon' }] }).todos).toBeUndefined();
  });

  it('[RC9] shows a fragment and what was recovered as such', () => {
    expect(shown({ _partial: true }).status).toBe('partial');
    expect(shown({ _recovered_from_run_journal: true }).recovered).toBe(true);
    expect(shown({ role: 'user', _recovered: true })).toMatchObject({ role: 'user', recovered: true });
  });

  it('[RC9] shows a list of parts as text, and images by the names of attachments or as such', () => {
    const content = [
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url: 'data:' } },
      { type: 'odd' },
    ];
    expect(shown({ role: 'user', content }).content).toBe('look\n[image]');
    const attachments = [
      { name: 'a.png', path: '/home/me/a.png' },
      { path: '/home/me/b.png' },
      'c.png',
      '/tmp/d.png',
      { size: 1 },
    ];
    expect(shown({ role: 'user', content, attachments })).toMatchObject({
      content: 'look',
      attachments: ['a.png', 'b.png', 'c.png', 'd.png'],
    });
  });

  it('[RC9] shows tool calls only in the shape that providers share', () => {
    const tool_calls = [
      call('c1'),
      { id: 'c2', function: { name: 'f', arguments: { a: 1 } } },
      { id: 'c3', function: { name: 'g' } },
      null,
      {},
      { id: 4, function: { name: 'f' } },
      { id: 'c5', function: {} },
    ];
    expect(shown({ tool_calls }).tool_calls?.map(({ id, function: f }) => [id, f.name, f.arguments])).toEqual([
      ['c1', 'read', '{}'],
      ['c2', 'f', '{"a":1}'],
      ['c3', 'g', '{}'],
    ]);
    expect(shown({ tool_calls: 'odd' })).not.toHaveProperty('tool_calls');
    expect(shown({ role: 'tool', tool_call_id: 'c1', tool_name: 'read' })).toMatchObject({
      tool_call_id: 'c1',
      name: 'read',
    });
  });

  it('[RC9] shows the same when what was shown is shown again', () => {
    const fields = fc.record(
      {
        role: fc.constantFrom('user', 'assistant', 'tool', 'system', 'odd'),
        content: fc.oneof(
          fc.string(),
          fc.constant([{ type: 'text', text: 'a' }, { type: 'image' }]),
          fc.constant(null),
        ),
        timestamp: fc.constantFrom(1, '2', null, 'odd'),
        _error: fc.boolean(),
        type: fc.constantFrom('interrupted', 'quota', 'odd'),
        _partial: fc.boolean(),
        _recovered: fc.boolean(),
        tool_calls: fc.constantFrom([call('c1')], 'odd', []),
        attachments: fc.constantFrom([{ name: 'a' }], ['b'], 'odd'),
        reasoning: fc.string(),
        tool_name: fc.string(),
      },
      { requiredKeys: ['role'] },
    );
    const property = fc.property(fields, (raw) => {
      const once = toDisplay(raw as RawRow, 'x1');
      expect(toDisplay(once, 'x1')).toEqual(once);
    });
    fc.assert(property, { seed: 7, numRuns: 500 });
  });
});

describe('the name of a row without an id', () => {
  /** A digest with so few values that names collide. */
  const hash = (text: string): string => `${text.length % 3}`.padEnd(32, '0');

  it('[RC5] is made of what it says and of how often that was said before, and of no time', () => {
    const told: string[] = [];
    const digest = (text: string): string => `${told.push(text)}`.padStart(16, '0');
    nameRows(rows('u go@1 | u go@2 | u [Workspace: /w] go | a go | a*c1 go | t#c1 go'), digest);
    expect(told.slice(1, 3)).toEqual([told[0], told[0]]);
    expect(new Set(told).size).toBe(4);
    expect(nameRows(rows('u go@1 | a ok@2 | u go@3'), () => 'abcdef0123456789ffff')).toEqual([
      'xabcdef0123456789.1',
      'xabcdef0123456789.2',
      'xabcdef0123456789.3',
    ]);
  });

  it('[RC5] is deterministic, keeps ids that are there, and is like no other', () => {
    const id = fc.option(
      fc.constantFrom(...'0123').map((n) => `x${n.padEnd(16, '0')}.${Number(n) + 1}`),
      { nil: undefined },
    );
    const list = fc.uniqueArray(fc.record({ id, content: fc.string(), n: fc.nat() }), {
      selector: (row) => row.id ?? row.n,
      maxLength: 12,
    });
    const property = fc.property(list, (some) => {
      const raw = some.map(
        ({ id: own, content }): RawRow => (own ? { role: 'user', content, id: own } : { role: 'user', content }),
      );
      const names = nameRows(raw, hash);
      expect(nameRows(raw, hash)).toEqual(names);
      expect(new Set(names).size).toBe(raw.length);
      for (const [at, row] of raw.entries()) if (row.id !== undefined) expect(names[at]).toBe(row.id);
      expect(
        nameRows(
          raw.map((row, at) => ({ ...row, id: names[at]! })),
          hash,
        ),
      ).toEqual(names);
    });
    fc.assert(property, { seed: 7, numRuns: 500 });
  });
});

describe('a sidecar that missed an edit', () => {
  const list = (ids: string) => [...ids].map((id) => ({ id: id === '-' ? null : id }));
  const cut = (ids: string, fence: string | null, part: { inactive?: string; active?: string; seen?: number } = {}) =>
    cutAtEdit(list(ids), {
      sidecarEdit: part.seen ?? 1,
      sessionEdit: 2,
      fence,
      inactive: new Set(part.inactive ?? ''),
      active: new Set(part.active ?? ''),
    })
      .map(({ id }) => id ?? '-')
      .join('');

  it('[RC1] is cut behind the last row that the edit kept', () => {
    expect(cut('abcd', 'b')).toBe('ab');
    expect(cut('abcd', 'd')).toBe('abcd');
    expect(cut('abcd', null)).toBe('');
    expect(cut('ab-c-', 'c')).toBe('ab-c');
  });

  it('[RC1] loses what an edit took out, wherever it stands', () => {
    expect(cut('abcd', 'c', { inactive: 'b' })).toBe('ac');
  });

  it('[RC1] is cut behind what the state DB still has when the fence itself is lost', () => {
    expect(cut('abcd', 'z', { active: 'ab', inactive: 'cd' })).toBe('ab');
    expect(cut('abcd', 'z', { active: 'ac', inactive: 'b' })).toBe('ac');
    expect(cut('abcd', 'z')).toBe('');
  });

  it('[RC1] is left as it is when it has seen the edit', () => {
    const all = list('abc');
    const edit = { sidecarEdit: 2, sessionEdit: 2, fence: 'a', inactive: new Set('b'), active: new Set<string>() };
    expect(cutAtEdit(all, edit)).toBe(all);
  });
});
