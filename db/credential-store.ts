/** The password, logins and API tokens. Of each secret only a digest is here (SE6). */
import { and, asc, desc, eq, gt, isNull, lte, notInArray, or } from 'drizzle-orm';
import type { Scope } from '../server/core/terms.ts';
import type { Db, StateDb } from './client.ts';
import { readMeta, removeMeta, writeMeta } from './meta.ts';
import { apiTokens, logins } from './schema.ts';
import { given, statement, statements } from './statement.ts';
import type { ApiToken, CredentialStore, Login } from './stores.ts';

const PASSWORD = 'password';
const GUARDED = 'guarded';
/** Whoever has a credential can log in as often as they like. */
const LOGINS_OF_ONE = 50;

const toLogin = (row: typeof logins.$inferSelect): Login => ({
  login_id: row.loginId,
  secret_hash: row.secretHash,
  basis: row.basis,
  scope: row.scope as Scope,
  address: row.address,
  agent: row.agent,
  created_at: row.createdAt,
  seen_at: row.seenAt,
  expires_at: row.expiresAt,
});

const toToken = (row: typeof apiTokens.$inferSelect): ApiToken => ({
  token_id: row.tokenId,
  name: row.name,
  secret_hash: row.secretHash,
  scope: row.scope as Scope,
  created_at: row.createdAt,
  used_at: row.usedAt,
  expires_at: row.expiresAt,
});

/** Asked for at every request, each of them. */
const LOGIN_OF = statements((db, by: 'secretHash' | 'loginId') =>
  db
    .select()
    .from(logins)
    .where(and(eq(logins[by], given('value')), gt(logins.expiresAt, given('now'))))
    .prepare(),
);
const stands = or(isNull(apiTokens.expiresAt), gt(apiTokens.expiresAt, given('now')));
const TOKEN_OF = statements((db, by: 'secretHash' | 'tokenId') =>
  db
    .select()
    .from(apiTokens)
    .where(and(eq(apiTokens[by], given('value')), stands))
    .prepare(),
);
const ANY_STANDING = statement((db) =>
  db.select({ id: apiTokens.tokenId }).from(apiTokens).where(stands).limit(1).prepare(),
);

const guard = (db: Db): void => writeMeta(db, GUARDED, 'yes');

export function createCredentialStore(state: StateDb): CredentialStore {
  const loginOf = (by: 'secretHash' | 'loginId', value: string, now: number) =>
    state.read((db) => {
      const row = LOGIN_OF(db, by).get({ value, now });
      return row ? toLogin(row) : null;
    });

  const tokenOf = (by: 'secretHash' | 'tokenId', value: string, now: number) =>
    state.read((db) => {
      const row = TOKEN_OF(db, by).get({ value, now });
      return row ? toToken(row) : null;
    });

  return {
    kept: (now) =>
      state.read((db) => ({
        password: readMeta(db, PASSWORD),
        hasTokens: ANY_STANDING(db).get({ now }) !== undefined,
        guarded: readMeta(db, GUARDED) !== null,
      })),

    setPassword: (value) =>
      state.write((db) => {
        db.delete(logins).run();
        if (value === null) {
          removeMeta(db, PASSWORD);
          const hasTokens = db.select({ id: apiTokens.tokenId }).from(apiTokens).limit(1).get() !== undefined;
          if (!hasTokens) removeMeta(db, GUARDED);
        } else {
          writeMeta(db, PASSWORD, value);
          guard(db);
        }
      }),

    addLogin: (login) =>
      state.write((db) => {
        db.delete(logins).where(lte(logins.expiresAt, login.created_at)).run();
        db.insert(logins)
          .values({
            loginId: login.login_id,
            secretHash: login.secret_hash,
            basis: login.basis,
            scope: login.scope,
            address: login.address,
            agent: login.agent,
            createdAt: login.created_at,
            seenAt: login.seen_at,
            expiresAt: login.expires_at,
          })
          .run();
        const ofBasis = eq(logins.basis, login.basis);
        const newest = db.select({ id: logins.loginId }).from(logins).where(ofBasis);
        const stay = newest.orderBy(desc(logins.createdAt), desc(logins.loginId)).limit(LOGINS_OF_ONE);
        db.delete(logins)
          .where(and(ofBasis, notInArray(logins.loginId, stay)))
          .run();
      }),

    login: (secretHash, now) => loginOf('secretHash', secretHash, now),
    loginById: (loginId, now) => loginOf('loginId', loginId, now),

    logins: (now) =>
      state.read((db) =>
        db.select().from(logins).where(gt(logins.expiresAt, now)).orderBy(desc(logins.seenAt)).all().map(toLogin),
      ),

    seenLogin: (loginId, now) =>
      state.write((db) => void db.update(logins).set({ seenAt: now }).where(eq(logins.loginId, loginId)).run()),

    endLogin: (loginId) => state.write((db) => db.delete(logins).where(eq(logins.loginId, loginId)).run().changes > 0),

    addToken: (token) =>
      state.write((db) => {
        db.insert(apiTokens)
          .values({
            tokenId: token.token_id,
            name: token.name,
            secretHash: token.secret_hash,
            scope: token.scope,
            createdAt: token.created_at,
            usedAt: token.used_at,
            expiresAt: token.expires_at,
          })
          .run();
        guard(db);
      }),

    token: (secretHash, now) => tokenOf('secretHash', secretHash, now),
    tokenById: (tokenId, now) => tokenOf('tokenId', tokenId, now),

    tokens: () => state.read((db) => db.select().from(apiTokens).orderBy(asc(apiTokens.createdAt)).all().map(toToken)),

    usedToken: (tokenId, now) =>
      state.write((db) => void db.update(apiTokens).set({ usedAt: now }).where(eq(apiTokens.tokenId, tokenId)).run()),

    removeToken: (tokenId) =>
      state.write((db) => {
        db.delete(logins)
          .where(eq(logins.basis, `token:${tokenId}`))
          .run();
        return db.delete(apiTokens).where(eq(apiTokens.tokenId, tokenId)).run().changes > 0;
      }),
  };
}
