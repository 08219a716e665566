/** Contract of the credential store. */
import { expect, it } from 'vitest';
import type { ApiToken, Login } from '../../db/stores.ts';
import { type OpenStores, openBench } from './stores-bench.ts';

const login = (n: number, part: Partial<Login> = {}): Login => ({
  login_id: `login-${n}`,
  secret_hash: `hash-${n}`,
  basis: 'password',
  scope: 'admin',
  address: `192.0.2.${n}`,
  agent: `Browser ${n}`,
  created_at: 1_000 + n,
  seen_at: 1_000 + n,
  expires_at: 5_000,
  ...part,
});

const token = (n: number, part: Partial<ApiToken> = {}): ApiToken => ({
  token_id: `token-${n}`,
  name: `Token ${n}`,
  secret_hash: `token-hash-${n}`,
  scope: 'read',
  created_at: 1_000 + n,
  used_at: null,
  expires_at: null,
  ...part,
});

export function credentialsContract(open: OpenStores): void {
  it('[SE6] a login is found by its digest until it expires, and ended alone', async () => {
    const { credentials } = (await openBench(open)).stores;
    await credentials.addLogin(login(1));
    await credentials.addLogin(login(2, { expires_at: 6_000 }));
    expect(await credentials.login('hash-1', 2_000)).toEqual(login(1));
    expect(await credentials.loginById('login-2', 2_000)).toEqual(login(2, { expires_at: 6_000 }));
    expect(await credentials.login('hash-9', 2_000)).toBeNull();
    await credentials.seenLogin('login-1', 2_500);
    expect((await credentials.logins(2_600)).map((one) => one.login_id)).toEqual(['login-1', 'login-2']);
    expect(await credentials.login('hash-1', 5_000)).toBeNull();
    expect((await credentials.logins(5_000)).map((one) => one.login_id)).toEqual(['login-2']);
    expect(await credentials.endLogin('login-2')).toBe(true);
    expect(await credentials.endLogin('login-2')).toBe(false);
    expect(await credentials.loginById('login-2', 2_000)).toBeNull();
    expect(await credentials.loginById('login-1', 2_000)).not.toBeNull();
  });

  it('[SE6] a new password, and none, end all logins', async () => {
    const { credentials } = (await openBench(open)).stores;
    expect(await credentials.kept(2_000)).toEqual({ password: null, hasTokens: false, guarded: false });
    await credentials.setPassword('kept-1');
    await credentials.addLogin(login(1));
    expect(await credentials.kept(2_000)).toEqual({ password: 'kept-1', hasTokens: false, guarded: true });
    await credentials.setPassword('kept-2');
    expect(await credentials.logins(2_000)).toEqual([]);
    await credentials.addLogin(login(2));
    await credentials.setPassword(null);
    expect(await credentials.kept(2_000)).toEqual({ password: null, hasTokens: false, guarded: false });
    expect(await credentials.logins(2_000)).toEqual([]);
  });

  it('[SE6] a token stands until it expires or is taken back, and what was got with it ends with it', async () => {
    const { credentials } = (await openBench(open)).stores;
    await credentials.addToken(token(1));
    await credentials.addToken(token(2, { expires_at: 3_000 }));
    expect(await credentials.kept(2_000)).toEqual({ password: null, hasTokens: true, guarded: true });
    expect(await credentials.token('token-hash-1', 9_000)).toEqual(token(1));
    expect(await credentials.token('token-hash-2', 2_999)).toEqual(token(2, { expires_at: 3_000 }));
    expect(await credentials.token('token-hash-2', 3_000)).toBeNull();
    expect(await credentials.tokenById('token-2', 3_000)).toBeNull();
    await credentials.usedToken('token-1', 2_000);
    expect((await credentials.tokens()).map((one) => [one.token_id, one.used_at])).toEqual([
      ['token-1', 2_000],
      ['token-2', null],
    ]);
    await credentials.addLogin(login(1, { basis: 'token:token-1' }));
    await credentials.addLogin(login(2, { basis: 'token:token-2' }));
    expect(await credentials.removeToken('token-1')).toBe(true);
    expect(await credentials.removeToken('token-1')).toBe(false);
    expect(await credentials.tokenById('token-1', 2_000)).toBeNull();
    expect((await credentials.logins(2_000)).map((one) => one.login_id)).toEqual(['login-2']);
  });

  it('[SE6] a home stays guarded when its last token is gone, until the guard itself is taken away', async () => {
    const { credentials } = (await openBench(open)).stores;
    await credentials.addToken(token(1));
    await credentials.setPassword(null);
    expect((await credentials.kept(2_000)).guarded).toBe(true);
    await credentials.removeToken('token-1');
    expect(await credentials.kept(2_000)).toEqual({ password: null, hasTokens: false, guarded: true });
    await credentials.setPassword(null);
    expect((await credentials.kept(2_000)).guarded).toBe(false);
  });

  it('[SE6] of one credential the fifty newest logins stay', async () => {
    const { credentials } = (await openBench(open)).stores;
    await credentials.addLogin(login(200, { basis: 'token:other', created_at: 900 }));
    for (let n = 1; n <= 52; n += 1) await credentials.addLogin(login(n));
    const ids = (await credentials.logins(2_000)).map((one) => one.login_id);
    expect(ids).toHaveLength(51);
    expect(ids).not.toContain('login-2');
    expect(ids).toEqual(expect.arrayContaining(['login-3', 'login-52', 'login-200']));
  });

  it('[SE6] a token that has expired is none to log in with', async () => {
    const { credentials } = (await openBench(open)).stores;
    await credentials.addToken(token(1, { expires_at: 3_000 }));
    expect((await credentials.kept(2_999)).hasTokens).toBe(true);
    expect(await credentials.kept(3_000)).toMatchObject({ hasTokens: false, guarded: true });
  });
}
