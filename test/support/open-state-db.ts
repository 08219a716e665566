/**
 * A process that opens a state DB when it is told to on stdin, and says how that went: one of several that start on the
 * same file at once. Started by test/contract/state-db.test.ts with the file as its argument.
 */
import { openStateDb } from '../../db/client.ts';
import { stateDbOptions } from './state-db.ts';

process.stdout.write('ready\n');
process.stdin.once('data', async () => {
  try {
    const state = await openStateDb(stateDbOptions(process.argv[2] ?? '', { patienceMs: 10_000 }));
    state.close();
    process.stdout.write('opened\n');
  } catch (error) {
    process.stdout.write(`${String(error)}\n`);
  }
  process.exit();
});
