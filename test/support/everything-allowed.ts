/** Approvals for tests of other things: nobody is asked. */
import type { Approvals } from '../../server/runners/approvals.ts';

export const EVERYTHING_ALLOWED: Approvals = { allow: async () => ({ ok: true }) };
