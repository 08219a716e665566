/** `turnkeep password`: sets the password of a home, or takes it away (SE6). */
import { parseArgs } from 'node:util';
import { ConfigError, resolveHome } from '../config.ts';
import { type Command, CommandError } from './command.ts';
import { type HomeCredentialsParts, withCredentials } from './home-credentials.ts';
import { readSecretLine, type SecretInput } from './secret-line.ts';

const USAGE = `Usage: turnkeep password [options]

Sets the password that the page asks for, also while a server runs. Everybody who is logged in is logged out.

  --home DIR   the home (TURNKEEP_HOME, else ~/.turnkeep)
  --remove     take the password away
  --help       print this

It is asked for and not shown; a program may pipe it in as one line. It is kept as a scrypt digest in state.db. A running
server obeys at once, and ends open streams of old logins within ten seconds.

A server that never had a password or a token is open to everybody at its machine. From the first one on it is closed, also
when the last token is revoked; --remove opens it again, unless there are tokens or TURNKEEP_TOKEN.
`;

const SHORTEST = 8;
const LONGEST = 1024;

export interface PasswordCommandParts extends HomeCredentialsParts {
  input: SecretInput['input'];
}

export const createPasswordCommand = ({ input, ...parts }: PasswordCommandParts): Command => ({
  usage: USAGE,
  async run(args, terminal, env) {
    const options = readOptions(args);
    const home = homeOf(options, env);
    if (options.remove) {
      const { required } = await withCredentials(home, parts, async (credentials) => {
        await credentials.setPassword(null);
        return credentials.offered();
      });
      terminal.out('The password is gone, and everybody is logged out.\n');
      if (!required) terminal.err('Without TURNKEEP_TOKEN the server is now open to everybody at its machine.\n');
      return 0;
    }
    const from = { input, say: terminal.err };
    const password = await readSecretLine(from, 'New password: ');
    if (password === null || password === '') throw new CommandError('no password was given. Nothing was changed.');
    if (password.length < SHORTEST)
      throw new CommandError(`a password has at least ${SHORTEST} characters. Nothing was changed.`);
    if (password.length > LONGEST)
      throw new CommandError(`a password has at most ${LONGEST} characters. Nothing was changed.`);
    if (input.isTTY && (await readSecretLine(from, 'Once more: ')) !== password) {
      throw new CommandError('the two are not the same. Nothing was changed.');
    }
    await withCredentials(home, parts, (credentials) => credentials.setPassword(password));
    terminal.out('The password is set, and everybody is logged out.\n');
    return 0;
  },
});

function readOptions(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: { home: { type: 'string' }, remove: { type: 'boolean' } } }).values;
  } catch (error) {
    throw new CommandError(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  }
}

/** The home of a command. @throws CommandError */
export function homeOf(options: { home?: string }, env: NodeJS.ProcessEnv): string {
  try {
    return resolveHome(options, env);
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError(error.message);
    throw error;
  }
}
