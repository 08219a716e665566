/** The credentials of the memory stores. */
import type { CredentialStore } from '../../db/stores.ts';
import { atomic, type MemoryState } from './memory-state.ts';

export function createMemoryCredentials(state: MemoryState): CredentialStore {
  const stands = (one: { expires_at: number | null }, now: number): boolean =>
    one.expires_at === null || one.expires_at > now;
  const without = <T>(rows: T[], gone: (row: T) => boolean): boolean => {
    const at = rows.findIndex(gone);
    if (at >= 0) rows.splice(at, 1);
    return at >= 0;
  };
  return {
    kept: (now) =>
      atomic(() => ({
        password: state.password,
        hasTokens: state.tokens.some((one) => stands(one, now)),
        guarded: state.guarded,
      })),
    setPassword: (kept) =>
      atomic(() => {
        state.password = kept;
        state.logins = [];
        state.guarded = kept !== null || (state.guarded && state.tokens.length > 0);
      }),
    addLogin: (login) =>
      atomic(() => {
        const all = [...state.logins.filter((one) => stands(one, login.created_at)), login];
        const newest = all
          .filter((one) => one.basis === login.basis)
          .sort((a, b) => b.created_at - a.created_at || (a.login_id < b.login_id ? 1 : -1))
          .slice(0, 50);
        state.logins = all.filter((one) => one.basis !== login.basis || newest.includes(one));
      }),
    login: (hash, now) =>
      atomic(() => state.logins.find((one) => one.secret_hash === hash && stands(one, now)) ?? null),
    loginById: (id, now) => atomic(() => state.logins.find((one) => one.login_id === id && stands(one, now)) ?? null),
    logins: (now) =>
      atomic(() => state.logins.filter((one) => stands(one, now)).toSorted((a, b) => b.seen_at - a.seen_at)),
    seenLogin: (id, now) =>
      atomic(() => {
        const login = state.logins.find((one) => one.login_id === id);
        if (login) login.seen_at = now;
      }),
    endLogin: (id) => atomic(() => without(state.logins, (one) => one.login_id === id)),
    addToken: (token) =>
      atomic(() => {
        state.tokens.push(token);
        state.guarded = true;
      }),
    token: (hash, now) =>
      atomic(() => state.tokens.find((one) => one.secret_hash === hash && stands(one, now)) ?? null),
    tokenById: (id, now) => atomic(() => state.tokens.find((one) => one.token_id === id && stands(one, now)) ?? null),
    tokens: () => atomic(() => state.tokens.toSorted((a, b) => a.created_at - b.created_at)),
    usedToken: (id, now) =>
      atomic(() => {
        const token = state.tokens.find((one) => one.token_id === id);
        if (token) token.used_at = now;
      }),
    removeToken: (id) =>
      atomic(() => {
        state.logins = state.logins.filter((one) => one.basis !== `token:${id}`);
        return without(state.tokens, (one) => one.token_id === id);
      }),
  };
}
