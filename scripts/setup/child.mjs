// Runs one child process to its end for the set-up, and takes it along when the set-up itself is stopped: a `kill` of
// npm ends its shell but not us, and an `npm ci` that nobody waits for must not go on behind a person's back.

import { spawn } from 'node:child_process';

const ORPHAN_CHECK_MS = 500;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Runs a command with its whole output on our stderr.
 *
 * @param command the program
 * @param args its arguments
 * @param options `cwd` and `env` as for `spawn`
 * @returns the exit code, or 128 and more when a signal ended it; 127 when it could not be started
 */
export function run(command, args, options = {}) {
  return new Promise((settle) => {
    // A process group of its own, so that its compilers end with it; the signals of the terminal are passed on below.
    const child = spawn(command, args, { ...options, stdio: ['ignore', 2, 2], detached: true });
    const parent = process.ppid;
    const stop = () => {
      try {
        process.kill(-child.pid, 'SIGTERM');
      } catch (error) {
        if (error.code !== 'ESRCH') throw error;
      }
    };
    const watch = setInterval(() => {
      if (process.ppid !== parent) stop();
    }, ORPHAN_CHECK_MS);
    for (const signal of SIGNALS) process.on(signal, stop);
    const end = (code) => {
      clearInterval(watch);
      for (const signal of SIGNALS) process.removeListener(signal, stop);
      settle(code);
    };
    child.once('error', () => end(127));
    child.once('close', (code, signal) => end(signal ? 128 : (code ?? 1)));
  });
}
