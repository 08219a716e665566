/**
 * A process that saves one sidecar again and again, each time longer, and names each save that has returned: to be
 * killed in the middle of one. Started by test/contract/files.test.ts with the home as its argument.
 */
import { createPaths } from '../../db/files/paths.ts';
import { createSidecarStore, toSidecarRow } from '../../db/files/sidecar-store.ts';

const [home = '', sessionId = ''] = process.argv.slice(2);
const store = createSidecarStore(createPaths(home));
const rows = Array.from({ length: 400 }, (_, n) =>
  toSidecarRow({ id: `m${n}`, role: 'user', content: 'word '.repeat(500), timestamp: n }),
);
const header = {
  session_id: sessionId,
  active_stream_id: null,
  pending_user_message: null,
  pending_attachments: [],
  pending_started_at: null,
  pending_user_source: null,
  message_count: 0,
};
for (let save = 1; save <= rows.length; save += 1) {
  await store.save(sessionId, { header: { ...header, edit_number: save }, rows: rows.slice(0, save), tail: {} });
  process.stdout.write(`${save}\n`);
}
