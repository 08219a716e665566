/**
 * A server process that kills itself with SIGKILL at a named crash point: the n-th time that it is reached.
 * Started by test/support/child-server.ts; arguments come as JSON in argv.
 */
import { pino } from 'pino';
import { createApp } from '../../server/app.ts';
import type { CrashPoint } from '../../server/authority/crash-points.ts';
import { loadConfig } from '../../server/config.ts';

export interface CrashServerOptions {
  home: string;
  crashAt: CrashPoint | null;
  /** At which time of reaching it; 1 is the first. */
  times: number;
}

const { home, crashAt, times } = JSON.parse(process.argv[2] ?? '{}') as CrashServerOptions;
let left = times;

const log = pino({ level: 'info' }, pino.destination({ fd: 2, sync: true }));
const config = loadConfig({ home, port: '0' }, process.env);
// The disk of a test is small, or somebody else's.
config.limits.min_free_mb = 0;
const app = await createApp(config, log, {
  discovery: [],
  knownAgents: [],
  wordDelayMs: 2,
  reached(point) {
    if (point !== crashAt) return;
    left -= 1;
    if (left === 0) process.kill(process.pid, 'SIGKILL');
  },
});
process.on('SIGTERM', () => {
  void app.close().then(() => process.exit(0));
});
const port = await app.listen();
process.stdout.write(`TURNKEEP_READY port=${port}\n`);
