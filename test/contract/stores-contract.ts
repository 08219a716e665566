/** The contract of all stores: one suite, run over every implementation of the interfaces in db/stores.ts. */
import { describe } from 'vitest';
import { admitContract } from './admit-contract.ts';
import { claimContract } from './claim-contract.ts';
import { contextsContract } from './contexts-contract.ts';
import { credentialsContract } from './credentials-contract.ts';
import { editsContract } from './edits-contract.ts';
import { healContract } from './heal-contract.ts';
import { leasesContract } from './leases-contract.ts';
import { listContract } from './list-contract.ts';
import { searchContract } from './search-contract.ts';
import { sessionsContract } from './sessions-contract.ts';
import { settingsContract } from './settings-contract.ts';
import type { OpenStores } from './stores-bench.ts';

/**
 * @param name of the implementation, for the titles
 * @param open makes empty stores; `close` frees what they hold
 */
export function storesContract(name: string, open: OpenStores): void {
  describe(`stores: ${name}`, () => {
    describe('admit', () => admitContract(open));
    describe('claim', () => claimContract(open));
    describe('edits', () => editsContract(open));
    describe('contexts', () => contextsContract(open));
    describe('healing', () => healContract(open));
    describe('leases', () => leasesContract(open));
    describe('sessions', () => sessionsContract(open));
    describe('list', () => listContract(open));
    describe('search', () => searchContract(open));
    describe('credentials', () => credentialsContract(open));
    describe('settings', () => settingsContract(open));
  });
}
