/** Values of the state DB that are not what they should be, though the file itself is sound: they cost no other session anything. */
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { type Kept, listed, sharedHome, start } from './damaged-homes.ts';

const home2 = sharedHome(2);

const VALUES: [what: string, sql: (home: Kept) => string][] = [
  ['flags that are no JSON', ({ ids }) => `UPDATE sessions SET flags = '["rec' WHERE id = '${ids[0]}'`],
  ['flags that are no list', ({ ids }) => `UPDATE sessions SET flags = '{"a": 1}' WHERE id = '${ids[0]}'`],
  [
    'a prompt that is no JSON',
    ({ runs }) => `UPDATE session_admissions SET payload_json = '{"te' WHERE run_id = '${runs[0]}'`,
  ],
  [
    'a prompt of another shape',
    ({ runs }) => `UPDATE session_admissions SET payload_json = '7' WHERE run_id = '${runs[0]}'`,
  ],
  [
    'an error that is no JSON',
    ({ runs }) => `UPDATE session_admissions SET error = '{"te' WHERE run_id = '${runs[0]}'`,
  ],
  [
    'a message whose extra fields are no JSON',
    ({ ids }) => `UPDATE messages SET extra = '{"te' WHERE session_id = '${ids[0]}'`,
  ],
  [
    'times that are none',
    ({ ids }) => `UPDATE sessions SET updated_at = 'x', started_at = 'y', last_message_at = 'z' WHERE id = '${ids[0]}'`,
  ],
  ['a title that is no text', ({ ids }) => `UPDATE sessions SET title = x'ff00' WHERE id = '${ids[0]}'`],
  [
    'counts that are none',
    ({ ids }) => `UPDATE sessions SET message_count = 'x', input_tokens = -3 WHERE id = '${ids[0]}'`,
  ],
];

describe('values of the state DB', () => {
  it.each(VALUES)('[RE6] %s: both sessions are listed and read, and go on', async (_what, sql) => {
    const home = await home2();
    const db = new Database(home.file('state.db'));
    db.exec(sql(home));
    db.close();
    const server = await start(home.home);
    expect([...(await listed(server, 2)).keys()].sort()).toEqual([...home.ids].sort());
    for (const id of home.ids) {
      expect(await server.messages(id)).toEqual(home.rows.get(id));
      for (const address of ['', '/prompts', '/prompts?pending=1']) {
        expect((await server.call('GET', `/api/sessions/${id}${address}`)).status, address).toBe(200);
      }
      await server.ask(id, 'and on');
      expect(await server.messages(id)).toHaveLength(6);
    }
  });
});
