/**
 * The credential of this server: one token from the environment, and the cookie that a browser gets for it (SE2).
 * A cookie is signed with a key made from the token, so that another token ends all of them; nothing is stored.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

export interface Credentials {
  /** Whether requests must bear one at all. */
  readonly required: boolean;
  isToken(token: string): boolean;
  /** A cookie value. @param now epoch seconds */
  issueCookie(now: number): string;
  isCookie(value: string, now: number): boolean;
}

/** Seconds that a login lasts. */
export const COOKIE_LIFE_S = 30 * 24 * 3600;

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** @param token as configured; null when the server is open to its own machine */
export function createCredentials(token: string | null): Credentials {
  const key = token === null ? null : digest(`turnkeep cookie ${token}`);
  const sign = (issued: string): string =>
    createHmac('sha256', key ?? '')
      .update(issued)
      .digest('base64url');
  return {
    required: token !== null,
    isToken: (given) => token !== null && timingSafeEqual(digest(given), digest(token)),
    issueCookie(now) {
      const issued = String(Math.floor(now));
      return `${issued}.${sign(issued)}`;
    },
    isCookie(value, now) {
      const [issued = '', signature = ''] = value.split('.');
      if (key === null || !/^\d{1,12}$/.test(issued)) return false;
      if (!timingSafeEqual(digest(signature), digest(sign(issued)))) return false;
      return Number(issued) <= now + 60 && now < Number(issued) + COOKIE_LIFE_S;
    },
  };
}
