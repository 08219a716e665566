/** Random numbers that can be had again: every random test prints its seed. */

/** The seed of this run: TURNKEEP_TEST_SEED, or a new one. */
export function testSeed(): number {
  const given = process.env.TURNKEEP_TEST_SEED;
  return given ? Number(given) : Math.floor(Math.random() * 2 ** 31);
}

/** Numbers in [0, 1) from a seed (mulberry32, public domain). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
