/**
 * Who may ask: the token of the environment, the password, API tokens, and the logins that browsers got with one of
 * these (SE2, SE6). Owns what each secret stands for; the state DB has their digests.
 *
 * A secret of ours is 32 random bytes, so its plain digest gives nothing away; a password is scrypt (passwords.ts).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { ApiToken, CredentialStore, Login } from '../../db/stores.ts';
import type { Scope } from '../core/terms.ts';
import { keyOf } from './attempts.ts';
import type { Passwords } from './passwords.ts';

/** Who a request comes from. */
export interface Identity {
  /**
   * `open` where no credential exists, `env` for TURNKEEP_TOKEN, `login:<id>`, `token:<id>`, `proxy:<name>` for whom an
   * authenticating proxy has let through.
   */
  key: string;
  scope: Scope;
  /** Whose share of streams and prompts it uses: all logins that were got with one token use the token's. */
  share: string;
}

export type PasswordCheck = Identity | 'wrong' | 'busy';

export interface Credentials {
  /** What there is to log in with. */
  offered(): Promise<{ required: boolean; password: boolean; token: boolean }>;
  /** Whether a token, right or wrong, is one that somebody may have thought of, and not of our making. */
  isGuessable(token: string): boolean;
  /** Who bears a token; null for one that is none. */
  ofToken(token: string): Promise<Identity | null>;
  /** Whose cookie it is; null for one that is none, or none any more. */
  ofCookie(value: string): Promise<Identity | null>;
  /** Who is in when no credential is given: everybody, where there is none. */
  ofNobody(): Promise<Identity | null>;
  checkPassword(password: string): Promise<PasswordCheck>;
  /** Sets the password, or takes it away. Ends all logins. @returns who has the new one */
  setPassword(password: string | null): Promise<Identity | null>;
  /** Whether what an identity stood on still stands. */
  stands(key: string): Promise<boolean>;
  /** Logs a browser in; returns the value of its cookie, which is told once and kept nowhere. */
  logIn(identity: Identity, browser: { address: string; agent: string }): Promise<string>;
  knowsAddress(address: string): Promise<boolean>;
  logins(): Promise<Login[]>;
  endLogin(loginId: string): Promise<boolean>;
  tokens(): Promise<ApiToken[]>;
  /** Makes a token; `secret` is told once. @param days until it expires; null for never */
  createToken(wish: { name: string; scope: Scope; days: number | null }): Promise<{ token: ApiToken; secret: string }>;
  removeToken(tokenId: string): Promise<boolean>;
}

export interface CredentialsParts {
  store: CredentialStore;
  passwords: Passwords;
  /** TURNKEEP_TOKEN. */
  envToken: string | null;
  /** Whether nobody may be in without a credential even while there is none. */
  closed: boolean;
  /** Epoch seconds. */
  now(): number;
  /** Fresh random bytes. */
  newSecret(bytes: number): Buffer;
  /** Work that nobody waits for, for what is nice to know only. */
  background(what: string, work: () => Promise<void>): void;
}

/** Seconds that a login lasts. */
export const LOGIN_LIFE_S = 30 * 24 * 3600;

/** What our tokens begin with, so that one that has leaked into a text is told from other words. */
const TOKEN_PREFIX = 'tk_';
/** How exactly it is known when a credential was used last, in seconds. */
const SEEN_EVERY_S = 300;
const DAY_S = 24 * 3600;

const bytesOf = (text: string): Buffer => createHash('sha256').update(text).digest();
const digestOf = (text: string): string => bytesOf(text).toString('hex');

export function createCredentials(parts: CredentialsParts): Credentials {
  const { store, passwords, envToken, now, newSecret } = parts;
  const envDigest = envToken === null ? null : bytesOf(envToken);
  const envBasis = envToken === null ? null : `env:${digestOf(`basis ${envToken}`).slice(0, 16)}`;

  const offered = async () => {
    const { password, hasTokens, guarded } = await store.kept(now());
    const token = envToken !== null || hasTokens;
    return { required: token || guarded || parts.closed, password: password !== null, token };
  };

  /** Names a password without telling it: what was checked against it stands as long as it is the one. */
  const passwordBasis = (kept: string): string => `password:${digestOf(kept).slice(0, 16)}`;

  /**
   * Whether a login still stands on what it was got with. Asked at each use: what it was got with may have ended while it
   * was made, or simply by its time.
   */
  const hasGround = async ({ basis }: Login): Promise<boolean> => {
    const [kind, id = ''] = basis.split(':');
    if (kind === 'env') return basis === envBasis;
    if (kind === 'token') return (await store.tokenById(id, now())) !== null;
    const { password } = await store.kept(now());
    return password !== null && basis === passwordBasis(password);
  };

  const ofLogin = async (login: Login | null): Promise<Identity | null> => {
    if (login === null || !(await hasGround(login))) return null;
    const key = `login:${login.login_id}`;
    return { key, scope: login.scope, share: login.basis.startsWith('token:') ? login.basis : key };
  };

  const basisOf = ({ key }: Identity): string => (key === 'env' ? envBasis! : key);

  const alone = (key: string, scope: Scope): Identity => ({ key, scope, share: key });

  return {
    offered,

    isGuessable: (token) => envToken !== null && !token.startsWith(TOKEN_PREFIX),

    async ofToken(token) {
      const digest = bytesOf(token);
      if (envDigest !== null && timingSafeEqual(digest, envDigest)) return alone('env', 'admin');
      if (!token.startsWith(TOKEN_PREFIX)) return null;
      const found = await store.token(digest.toString('hex'), now());
      if (found === null) return null;
      if (now() - (found.used_at ?? 0) > SEEN_EVERY_S) {
        parts.background('noting the use of a token', () => store.usedToken(found.token_id, now()));
      }
      return alone(`token:${found.token_id}`, found.scope);
    },

    async ofCookie(value) {
      if (!/^[\w-]{43}$/.test(value)) return null;
      const login = await store.login(digestOf(value), now());
      const identity = await ofLogin(login);
      if (login !== null && identity !== null && now() - login.seen_at > SEEN_EVERY_S) {
        parts.background('noting the use of a login', () => store.seenLogin(login.login_id, now()));
      }
      return identity;
    },

    ofNobody: async () => ((await offered()).required ? null : alone('open', 'admin')),

    async checkPassword(password) {
      const { password: kept } = await store.kept(now());
      if (kept === null) return 'wrong';
      const checked = await passwords.check(password, kept);
      if (checked === 'busy') return 'busy';
      return checked ? alone(passwordBasis(kept), 'admin') : 'wrong';
    },

    async setPassword(password) {
      const kept = password === null ? null : await passwords.hash(password);
      await store.setPassword(kept);
      return kept === null ? null : alone(passwordBasis(kept), 'admin');
    },

    async stands(key) {
      const [kind, id = ''] = key.split(':');
      switch (kind) {
        case 'login':
          return (await ofLogin(await store.loginById(id, now()))) !== null;
        case 'token':
          return (await store.tokenById(id, now())) !== null;
        case 'open':
          return !(await offered()).required;
        default:
          return true;
      }
    },

    async logIn(identity, { address, agent }) {
      const secret = newSecret(32).toString('base64url');
      await store.addLogin({
        login_id: newSecret(8).toString('hex'),
        secret_hash: digestOf(secret),
        basis: basisOf(identity),
        scope: identity.scope,
        address,
        agent: agent.slice(0, 200).toWellFormed(),
        created_at: now(),
        seen_at: now(),
        expires_at: now() + LOGIN_LIFE_S,
      });
      return secret;
    },

    async knowsAddress(address) {
      const known = (await store.logins(now())).map((login) => keyOf(login.address));
      return known.includes(keyOf(address));
    },
    async logins() {
      const all = await store.logins(now());
      const stand = await Promise.all(all.map(hasGround));
      return all.filter((_, at) => stand[at]);
    },
    endLogin: (loginId) => store.endLogin(loginId),
    tokens: () => store.tokens(),

    async createToken({ name, scope, days }) {
      const secret = TOKEN_PREFIX + newSecret(32).toString('base64url');
      const token: ApiToken = {
        token_id: newSecret(6).toString('hex'),
        name,
        secret_hash: digestOf(secret),
        scope,
        created_at: now(),
        used_at: null,
        expires_at: days === null ? null : now() + days * DAY_S,
      };
      await store.addToken(token);
      return { token, secret };
    },

    removeToken: (tokenId) => store.removeToken(tokenId),
  };
}
