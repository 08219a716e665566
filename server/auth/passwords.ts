/**
 * Passwords: what is kept of one, and whether a given one is it. Kept is a PHC string of scrypt (SE6); one is computed at
 * a time, because each takes 32 MB and a tenth of a second, and a flood of guesses must not take more.
 *
 * The form is that of the PHC string format: `$scrypt$ln=15,r=8,p=1$<salt>$<hash>`, base64 without padding.
 */
import { type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

export interface Passwords {
  /** The PHC string to keep of a new password. */
  hash(password: string): Promise<string>;
  /**
   * Whether a password is the one of a PHC string; false for a string that is none. `busy` when too many are being
   * checked already: ask again later.
   */
  check(password: string, kept: string): Promise<boolean | 'busy'>;
}

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

const LOG_N = 15;
const BLOCK_SIZE = 8;
const PARALLEL = 1;
const HASH_BYTES = 32;
const SALT_BYTES = 16;
/** A kept string of another hand may ask for more work, but not for any amount. */
const MAX_LOG_N = 18;
/** Checks that may wait for the one that runs. */
const MAX_WAITING = 16;

const PHC = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{4,128})\$([A-Za-z0-9+/]{16,172})$/;

/** Passwords are the same however their letters were composed. */
const asBytesOf = (password: string): string => password.normalize('NFKC');

const bare = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '');

const work = (logN: number, r: number, p: number): ScryptOptions => ({
  N: 2 ** logN,
  r,
  p,
  maxmem: 256 * 2 ** logN * r + 1024 * 1024,
});

/** @param newSecret fresh random bytes, for salts */
export function createPasswords(newSecret: (bytes: number) => Buffer): Passwords {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  /** One after another. */
  const inTurn = <T>(job: () => Promise<T>): Promise<T> => {
    waiting += 1;
    const done = last.then(job).finally(() => {
      waiting -= 1;
    });
    last = done.catch(() => {});
    return done;
  };

  return {
    hash: (password) =>
      inTurn(async () => {
        const salt = newSecret(SALT_BYTES);
        const options = work(LOG_N, BLOCK_SIZE, PARALLEL);
        const hash = await derive(asBytesOf(password), salt, HASH_BYTES, options);
        return `$scrypt$ln=${LOG_N},r=${BLOCK_SIZE},p=${PARALLEL}$${bare(salt)}$${bare(hash)}`;
      }),

    async check(password, kept) {
      const [, ln, r, p, salt = '', hash = ''] = PHC.exec(kept) ?? [];
      if (ln === undefined || Number(ln) < 1 || Number(ln) > MAX_LOG_N || Number(r) < 1 || Number(p) < 1) return false;
      if (waiting > MAX_WAITING) return 'busy';
      return inTurn(async () => {
        const expected = Buffer.from(hash, 'base64');
        const options = work(Number(ln), Number(r), Number(p));
        const given = await derive(asBytesOf(password), Buffer.from(salt, 'base64'), expected.length, options);
        return timingSafeEqual(given, expected);
      });
    },
  };
}
