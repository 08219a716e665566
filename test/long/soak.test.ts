/**
 * The soak: random load of several sessions and clients on two servers, one of which is killed with -9 every minute,
 * while the other runs through. Three minutes, or as many as TURNKEEP_SOAK_MINUTES says (`npm run test:soak`: thirty; five
 * of them in CI).
 */
import { expect, it } from 'vitest';
import { writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { type Measured, openPlace, type Place, pause } from '../support/soak-place.ts';
import { liveThrough } from '../support/soak-session.ts';

const MINUTES = Number(process.env.TURNKEEP_SOAK_MINUTES ?? 3);
const SESSIONS = 4;
const MEASURE_EVERY_MS = Math.min(10_000, MINUTES * 2_000);
const KILL_EVERY_MS = Math.min(60_000, MINUTES * 15_000);
const MB = 1_048_576;

const CONFIG = 'live: {orphan_reap_grace_s: 0.5}\n';

const middleOf = (numbers: number[]): number => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

/** The middle of what was measured after the warm-up, and at the end: the second and the last third. */
function compared(measured: readonly Measured[]): { warm: Measured; end: Measured } {
  const third = Math.floor(measured.length / 3);
  const of = (from: number, to: number): Measured => {
    const piece = measured.slice(from, to);
    return {
      memory: middleOf(piece.map(({ memory }) => memory)),
      descriptors: middleOf(piece.map(({ descriptors }) => descriptors)),
      disk: middleOf(piece.map(({ disk }) => disk)),
    };
  };
  return { warm: of(third, 2 * third), end: of(2 * third, measured.length) };
}

const inWords = ({ memory, descriptors, disk }: Measured): string =>
  `memory ${(memory / MB).toFixed(0)} MB, ${descriptors} descriptors, disk ${(disk / MB).toFixed(1)} MB`;

it(`[AD1][AD2][EV1][EV2][EV3][RE1][LI5] ${MINUTES} minutes of everything: nothing accepted is lost or run twice, nothing grows`, {
  timeout: MINUTES * 60_000 + 600_000,
}, async () => {
  const seed = testSeed();
  console.info(`seed ${seed}`);
  const random = seededRandom(seed);
  const provider = await startFakeProvider();
  const end = performance.now() + MINUTES * 60_000;
  const isOver = () => performance.now() > end;

  /** The sessions of a server, each new one in the place of one that has been lived through. */
  async function load(place: Place, word: string): Promise<{ sessions: number; prompts: number }> {
    let sessions = 0;
    let prompts = 0;
    const lives = Array.from({ length: SESSIONS }, async () => {
      while (!isOver()) {
        sessions += 1;
        const had = await liveThrough({ place, provider, random, name: `${word}${sessions}` });
        prompts += had;
      }
    });
    await Promise.all(lives);
    return { sessions, prompts };
  }

  async function every(ms: number, work: () => Promise<unknown>): Promise<void> {
    for (let next = performance.now() + ms; next < end; next += ms) {
      await pause(Math.max(0, next - performance.now()));
      await work();
    }
  }

  async function soak(word: string, isKilled: boolean): Promise<void> {
    const home = await temporaryFolder();
    await writeProviderHome(home, provider.baseUrl, CONFIG);
    const place = await openPlace(home);
    const measured: Measured[] = [];
    const measure = async () => measured.push(await place.measure());
    const [{ sessions, prompts }] = await Promise.all([
      load(place, word),
      // What is killed is measured as old as it gets; each of its starts is another process.
      isKilled
        ? every(KILL_EVERY_MS, async () => {
            await measure();
            await place.restart();
          })
        : every(MEASURE_EVERY_MS, measure),
    ]);
    const { warm, end: last } = compared(measured);
    console.info(
      `${word}: ${sessions} sessions, ${prompts} prompts, ${place.kills} kills, patience ${JSON.stringify(place.patience)}; ` +
        `${inWords(warm)} → ${inWords(last)}`,
    );
    expect(place.kills > 0).toBe(isKilled);
    expect(last.memory).toBeLessThan(warm.memory * 1.25 + 30 * MB);
    expect(last.descriptors).toBeLessThan(warm.descriptors + 20);
    expect(last.disk).toBeLessThan(warm.disk * 1.25 + 8 * MB);
  }

  await Promise.all([soak('killed', true), soak('steady', false)]);
  expect(provider.violations).toEqual([]);
  await provider.close();
});
