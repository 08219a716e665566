/** What runs commands in a test: real processes, notes in a home of the test. */
import { randomBytes } from 'node:crypto';
import { createPaths } from '../../db/files/paths.ts';
import { createRunningCommands } from '../../db/files/running-commands.ts';
import { identityOf, isAlive, ownIdentity } from '../../server/lease/process-identity.ts';
import { type Commands, type CommandsParts, createCommands, findShell } from '../../server/workspace/commands.ts';

export const newMark = (): string => randomBytes(16).toString('hex');

export async function commandsIn(home: string, change: Partial<CommandsParts> = {}): Promise<Commands> {
  return createCommands({
    env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
    shell: await findShell(),
    notes: createRunningCommands(createPaths(home)),
    server: ownIdentity(),
    identityOf,
    isAlive,
    graceMs: 200,
    newMark,
    onLeft: (mark) => {
      throw new Error(`processes of ${mark} are left`);
    },
    ...change,
  });
}
