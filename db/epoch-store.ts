/** Epochs: one number for each server start on this home, with the process that it belongs to. */
import { eq } from 'drizzle-orm';
import type { StateDb } from './client.ts';
import { runtimeEpochs } from './schema.ts';
import type { EpochStore } from './stores.ts';

export function createEpochStore(state: StateDb): EpochStore {
  return {
    begin: ({ instanceId, process, now }) =>
      state.write(
        (db) =>
          db
            .insert(runtimeEpochs)
            .values({ instanceId, pid: process.pid, processStart: process.start, startedAt: now })
            .returning({ epoch: runtimeEpochs.epoch })
            .get().epoch,
      ),

    end: (epoch, now) =>
      state.write((db) => {
        db.update(runtimeEpochs).set({ endedAt: now }).where(eq(runtimeEpochs.epoch, epoch)).run();
      }),

    process: (epoch) =>
      state.read((db) => {
        const row = db.select().from(runtimeEpochs).where(eq(runtimeEpochs.epoch, epoch)).get();
        return row ? { pid: row.pid, start: row.processStart, ended: row.endedAt !== null } : null;
      }),
  };
}
