/**
 * A commit that reported failure may have happened all the same. What such a write was to tell is not forgotten and not
 * told twice: the row is looked at until the storage answers, and whoever sees first that it happened tells it.
 */
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import { GaveUp, type Persist } from './persist.ts';

export interface Doubts {
  /**
   * Runs a write that tells something of these admissions.
   * @param look tells of one of them what its row says, once the storage answers; called if the write reported trouble
   * @throws what the write threw
   */
  during<T>(
    admissionIds: readonly string[],
    write: () => Promise<T>,
    look: (admissionId: string) => Promise<void>,
  ): Promise<T>;
  /** Whether nobody has told yet what became of a write that reported trouble. Asking takes it over. */
  take(admissionId: string): boolean;
}

export interface DoubtsParts {
  persist: Persist;
  log: { error(fields: object, message: string): void };
}

export function createDoubts({ persist, log }: DoubtsParts): Doubts {
  const open = new Set<string>();
  return {
    async during(admissionIds, write, look) {
      try {
        return await write();
      } catch (error) {
        if (storageTroubleKind(error) === null) throw error;
        for (const admissionId of admissionIds) {
          open.add(admissionId);
          persist('look whether it happened', () => look(admissionId)).catch((err) => {
            // A server that stops tells everybody who waits that it does.
            if (!(err instanceof GaveUp)) log.error({ err, admission_id: admissionId }, 'a doubt could not be cleared');
          });
        }
        throw error;
      }
    },
    take: (admissionId) => open.delete(admissionId),
  };
}
