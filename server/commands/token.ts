/** `turnkeep token create|list|revoke`: tokens for programs (SE6). */
import { parseArgs } from 'node:util';
import type { ApiToken } from '../../db/stores.ts';
import type { Scope } from '../core/terms.ts';
import { type Command, CommandError } from './command.ts';
import { type HomeCredentialsParts, withCredentials } from './home-credentials.ts';
import { homeOf } from './password.ts';

const USAGE = `Usage: turnkeep token create <name> [--scope read|prompt|admin] [--days N] [options]
       turnkeep token list [options]
       turnkeep token revoke <id> [options]

Tokens for curl and other programs, which send "Authorization: Bearer <token>". All of it works beside a running server.

  --scope S    read: see everything. prompt: also converse, edit and delete (the default). admin: also the settings,
               the password and tokens
  --days N     it expires after so many days (never)
  --home DIR   the home (TURNKEEP_HOME, else ~/.turnkeep)
  --json       say the result as JSON
  --help       print this

A token is shown once, when it is made; kept is only a digest of it. With the first one every request must bear a
credential.
`;

const SCOPES: readonly string[] = ['read', 'prompt', 'admin'] satisfies Scope[];

export const createTokenCommand = (parts: HomeCredentialsParts): Command => ({
  usage: USAGE,
  async run(args, terminal, env) {
    const { options, what, subject } = readArguments(args);
    const home = homeOf(options, env);
    switch (what) {
      case 'create': {
        const wish = { name: subject!, scope: readScope(options.scope), days: readDays(options.days) };
        const { token, secret } = await withCredentials(home, parts, (credentials) => credentials.createToken(wish));
        if (options.json) terminal.out(`${JSON.stringify({ ...viewOf(token), secret })}\n`);
        else {
          terminal.out(`${secret}\n`);
          terminal.err(`Token ${token.token_id} (${token.scope}). It is shown this once.\n`);
        }
        return 0;
      }
      case 'list': {
        const tokens = await withCredentials(home, parts, (credentials) => credentials.tokens());
        if (options.json) terminal.out(`${JSON.stringify(tokens.map(viewOf))}\n`);
        else terminal.out(tokens.length === 0 ? 'There are no tokens.\n' : tokens.map(lineOf).join(''));
        return 0;
      }
      case 'revoke': {
        const gone = await withCredentials(home, parts, (credentials) => credentials.removeToken(subject!));
        if (!gone) throw new CommandError(`there is no token ${subject}. "turnkeep token list" shows them.`);
        terminal.out(`Token ${subject} is revoked.\n`);
        return 0;
      }
    }
  },
});

function readArguments(args: readonly string[]) {
  try {
    const { values: options, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        home: { type: 'string' },
        scope: { type: 'string' },
        days: { type: 'string' },
        json: { type: 'boolean' },
      },
    });
    const [what, subject, ...rest] = positionals;
    if (what !== 'create' && what !== 'list' && what !== 'revoke') throw new Error('say create, list or revoke.');
    if ((what === 'list') !== (subject === undefined) || rest.length > 0) {
      throw new Error(
        what === 'list' ? 'list takes nothing else.' : `${what} takes one ${what === 'create' ? 'name' : 'id'}.`,
      );
    }
    if (what === 'create' && (subject === '' || subject!.length > 100))
      throw new Error('a name has 1 to 100 characters.');
    return { options, what, subject } as const;
  } catch (error) {
    throw new CommandError(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  }
}

function readScope(text = 'prompt'): Scope {
  if (SCOPES.includes(text)) return text as Scope;
  throw new CommandError(`--scope must be one of ${SCOPES.join(', ')}, not "${text}".`);
}

function readDays(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= 3650) return Number(text);
  throw new CommandError(`--days must be a number from 1 to 3650, not "${text}".`);
}

const viewOf = ({ secret_hash: _hash, ...token }: ApiToken) => token;

const day = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 10);

function lineOf({ token_id, name, scope, created_at, used_at, expires_at }: ApiToken): string {
  const used = used_at === null ? 'never used' : `used ${day(used_at)}`;
  const expires = expires_at === null ? '' : `, expires ${day(expires_at)}`;
  return `${token_id}  ${scope.padEnd(6)}  ${name}  (made ${day(created_at)}, ${used}${expires})\n`;
}
