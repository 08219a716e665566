/** Plays the model with a seed: each operation once, some more, in an order of its own. */
import { seededRandom } from '../../support/random.ts';
import type { ClientKind } from './conn.ts';
import { checkEnd, checkRelease, checkStep } from './invariants.ts';
import { createModel } from './model.ts';
import { operations } from './operations.ts';
import { startWorld } from './world.ts';

/** Seeds that have failed once, and what it was. */
export const KEPT_SEEDS: readonly Play[] = [
  // Given back while its client was still being told where it stood, on a busy machine: resume answered 4001.
  { seed: 931068, clients: 'gateway' },
];

/** How the three clients speak with the server. */
export const CLIENTS = {
  gateway: ['ws', 'ws', 'ws'],
  mixed: ['ws', 'rest', 'ws'],
  rest: ['rest', 'ws', 'rest'],
} as const satisfies Record<string, readonly ClientKind[]>;

export interface Play {
  seed: number;
  clients: keyof typeof CLIENTS;
}

/** What happens more than once. */
const MORE = ['prompt', 'prompt', 'prompt slow', 'switch', 'switch', 'create', 'delete live', 'reconnect'] as const;
const MORE_STEPS = 6;

/** @returns how often each operation had its effect. @throws with the seed and the steps so far */
async function play({ seed, clients }: Play): Promise<ReadonlyMap<string, number>> {
  const random = seededRandom(seed);
  const world = await startWorld();
  const model = createModel(world, seed, CLIENTS[clients], random);
  const steps: string[] = [];
  try {
    for (const slot of model.slots) await model.create(slot);
    const plan = [...Object.keys(operations), ...Array.from({ length: MORE_STEPS }, () => model.pick(MORE))];
    for (const name of shuffled(plan, random)) {
      const slot = model.pick(model.slots);
      steps.push(`${name} ${slot.name}`);
      await operations[name]!(model, slot);
      await checkStep(model);
    }
    steps.push('end');
    await checkEnd(model);
    await checkRelease(model);
    return model.done;
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    const told = `seed ${seed}, ${clients} clients; steps: ${steps.join(', ')}\n${what}\n${world.logs()}`;
    throw new Error(told, { cause: error });
  } finally {
    await world.stop();
  }
}

/** Plays several at once, each with a server of its own; what was done over all of them. */
export async function playAll(plays: readonly Play[]): Promise<ReadonlyMap<string, number>> {
  const played = await Promise.allSettled(plays.map(play));
  const failed = played.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []));
  if (failed.length > 0)
    throw new Error(failed.map(({ message }) => message).join('\n\n'), { cause: failed[0]!.cause });
  const done = new Map<string, number>();
  for (const one of played) {
    if (one.status === 'rejected') continue;
    for (const [name, count] of one.value) done.set(name, (done.get(name) ?? 0) + count);
  }
  return done;
}

function shuffled<T>(all: readonly T[], random: () => number): T[] {
  const left = [...all];
  return all.map(() => left.splice(Math.floor(random() * left.length), 1)[0]!);
}
