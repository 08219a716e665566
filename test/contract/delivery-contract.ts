/**
 * The one contract of delivery: whatever way events come to a reader, it is shown each event that it is owed once, in
 * order, through every way to come, to leave and to come back. What is true is read from the journals.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { seededRandom, testSeed } from '../support/random.ts';
import { until } from '../support/until.ts';
import { createWire } from '../support/wire.ts';
import {
  type Connection,
  createStage,
  type Reader,
  type Scene,
  type Stage,
  untilEnd,
  untilShown,
} from './delivery-scene.ts';
import { countOf, expectExactly, expectTold, expectWhole, type Shown, toldOf } from './delivery-truth.ts';

const ticks = async (count: number): Promise<void> => {
  for (let tick = 0; tick < count; tick += 1) await new Promise((resolve) => setImmediate(resolve));
};

const PIECES = ['alpha ', 'beta — ß ', '日本 ', '🙂 ', 'omega'];

/** The current prompt from its acceptance to its end, with some text. */
async function play(scene: Scene, pieces: readonly string[] = PIECES): Promise<{ runId: string }> {
  const run = await scene.submit();
  const turn = await scene.turn();
  turn.say({ type: 'message.start', payload: {} });
  for (const piece of pieces) turn.text(piece);
  turn.complete();
  await scene.over();
  return run;
}

export function deliveryContract(connection: Connection): void {
  describe(connection.name, () => {
    let stage: Stage;
    beforeAll(async () => {
      let close = async (): Promise<void> => {};
      stage = await createStage({
        heartbeatS: 0.2,
        release: (release) => {
          close = release;
        },
      });
      return () => close();
    });

    it('[EV1][SU3] whoever comes before, during or after a turn is shown all of it, each event once', async () => {
      const scene = await stage.scene();
      const readers = [await connection.attach(scene)];
      await scene.submit();
      const turn = await scene.turn();
      turn.say({ type: 'message.start', payload: {} });
      for (const [index, piece] of PIECES.entries()) {
        readers.push(await connection.attach(scene));
        turn.text(piece);
        // Now and then somebody comes when it is certain that the last piece is out.
        const [first] = readers;
        if (index % 2 === 0) await until('a piece is shown', () => first!.shown().at(-1)?.payload.text === piece);
      }
      turn.complete();
      await scene.over();
      readers.push(await connection.attach(scene));
      if (connection.spans === 'session') {
        // One more turn: what would come twice or late comes before it.
        scene.next();
        await play(scene, ['again']);
      }
      for (const reader of readers) expectWhole(await untilShown(scene, reader), reader);
    });

    it('[EV1][EV5] whoever comes back at any event gets exactly what follows it, in mid-turn and later', async () => {
      const scene = await stage.scene();
      const first = await connection.attach(scene);
      const places = [first.place()];
      await scene.submit();
      const turn = await scene.turn();
      const back: { reader: Reader; at: number }[] = [];
      const comeBack = async (at: number) =>
        back.push({ reader: await connection.resume(scene, places[at]!), at: places[at] === '' ? 0 : at });
      const steps = [() => {}, ...PIECES.map((piece) => () => turn.text(piece)), () => turn.complete()];
      for (const [index, step] of steps.entries()) {
        step();
        await until('the next event is shown', () => first.shown().length === index + 1);
        places.push(first.place());
        await comeBack(index);
        await comeBack(index + 1);
      }
      await scene.over();
      for (let at = 0; at < places.length; at += 1) await comeBack(at);
      // One more turn: what would come twice or late comes before it.
      if (connection.spans === 'session') {
        scene.next();
        await play(scene, ['again']);
        for (let at = 0; at < places.length; at += 1) await comeBack(at);
      }
      const truth = await untilShown(scene, first);
      expectExactly(truth, first.shown());
      for (const { reader, at } of back) {
        await until('it has what follows', () => at + countOf(reader.shown()) >= truth.length);
        expect(reader.reset).toBeNull();
        expectExactly(truth, reader.shown(), at);
        const bytes = connection.sameBytes ? truth : first.shown();
        expect(reader.shown().map((event) => event.bytes)).toEqual(bytes.slice(at).map((event) => event.bytes));
      }
    });

    it('[EV1] a connection that is reset at every event costs no event and repeats none', async () => {
      const scene = await stage.scene();
      const wire = await createWire(scene.server.url);
      let reader = await connection.attach(scene, wire.url);
      await scene.submit();
      const turn = await scene.turn();
      const shown: Shown[] = [];
      for (let event = 1; event <= 12; event += 1) {
        await until(`event ${event} is shown`, () => countOf(shown) + countOf(reader.shown()) >= event);
        wire.reset();
        // What is said in the moment of the cut may be on the wire, in a buffer, or not yet written.
        turn.text(`${event} `);
        shown.push(...reader.shown());
        reader = await connection.resume(scene, reader.place(), wire.url);
        expect(reader.reset).toBeNull();
      }
      turn.complete();
      await until('the end is shown', () => reader.shown().at(-1)?.type === 'message.complete');
      expectExactly(await scene.truth(), [...shown, ...reader.shown()]);
    });

    it('[EV1] a reader that takes one byte at a time is shown all, whatever is cut in two', async () => {
      const scene = await stage.scene();
      const wire = await createWire(scene.server.url, { bytewise: true });
      const early = await connection.attach(scene, wire.url);
      await scene.submit();
      const turn = await scene.turn();
      for (const piece of PIECES) turn.text(piece);
      const late = await connection.attach(scene, wire.url);
      turn.complete();
      await scene.over();
      for (const reader of [early, late]) expectWhole(await untilShown(scene, reader), reader);
      const again = await connection.resume(scene, early.place(), wire.url);
      expect(again.shown()).toEqual([]);
    });

    it('[EV1][SU3] the seam holds in the first moment of a turn and in its last', async () => {
      const seed = testSeed();
      console.log(`seam of ${connection.name}: TURNKEEP_TEST_SEED=${seed}`);
      const random = seededRandom(seed);
      const scene = await stage.scene();
      const readers: { reader: Reader; runId: string; at: number | null }[] = [];
      // Places that a reader had on the way, each with the number of events that it had been shown.
      const stays = connection.spans === 'session' ? await connection.attach(scene) : null;
      const places: { place: string; at: number }[] = [];
      const note = () => stays && places.push({ place: stays.place(), at: countOf(stays.shown()) });
      for (let round = 0; round < 16; round += 1) {
        scene.next();
        /** Comes within so many ticks: for the first time, or back to some place on the way. */
        const come = async (most: number) => {
          const back = round % 4 > 1 ? places[Math.floor(random() * places.length)] : undefined;
          await ticks(Math.floor(random() * most));
          const reader = await (back ? connection.resume(scene, back.place) : connection.attach(scene));
          return { reader, at: back?.at ?? null };
        };
        const isEarly = round % 2 === 0;
        const early = isEarly ? come(100) : null;
        const { runId } = await scene.submit();
        const turn = await scene.turn();
        const late = isEarly ? null : come(30);
        // Something is said in every tick, so that nobody comes in a quiet moment.
        for (let piece = 0; piece < 30; piece += 1) {
          turn.text(`${round}.${piece} `);
          await ticks(1);
        }
        note();
        turn.complete();
        readers.push({ ...(await (early ?? late)!), runId });
        await scene.over();
      }
      for (const { reader, runId, at } of readers) {
        if (connection.spans === 'run') {
          await until('its stream has ended', () => reader.closed());
          expectExactly(await scene.truth(runId), reader.shown());
        } else if (at === null || reader.told) {
          expectWhole(await untilShown(scene, reader), reader);
        } else {
          const truth = await scene.truth();
          await until('it has what follows', () => at + countOf(reader.shown()) >= truth.length);
          expectExactly(truth, reader.shown(), at);
        }
      }
    });

    it('[EV2] each prompt ends once for each reader that stays, cancelled ones too', async () => {
      const scene = await stage.scene();
      const open = () => Promise.all([connection.attach(scene), connection.attach(scene), connection.attach(scene)]);
      let readers = connection.spans === 'session' ? await open() : [];
      const sets: Reader[][] = [];
      const ends: string[] = [];
      /** Has a prompt accepted, with readers of its own where a reader is there for one run. */
      const accept = async (): Promise<string> => {
        scene.next();
        if (connection.spans === 'run') readers = await open();
        sets.push(readers);
        return (await scene.submit()).admissionId;
      };
      ends.push(await accept());
      (await scene.turn()).complete();
      await scene.over();
      const running = await accept();
      const turn = await scene.turn();
      const cancelled = await accept();
      await scene.server.call('DELETE', `/api/sessions/${scene.sessionId}/prompts/${cancelled}`);
      turn.text('the running one');
      turn.complete();
      ends.push(cancelled, running);
      const last = await accept();
      ends.push(last);
      (await scene.turn()).complete();
      await scene.over();
      for (const [index, admission] of [ends[0], running, cancelled, last].entries()) {
        for (const reader of sets[index]!) {
          await until('the prompt has ended', () => reader.completions().includes(admission!));
          if (connection.spans === 'run') expect(reader.completions()).toEqual([admission]);
        }
      }
      if (connection.spans === 'session') for (const reader of readers) expect(reader.completions()).toEqual(ends);
    });

    it('[EV1][EV2] what an agent says after its turn was stopped is shown to nobody', async () => {
      const scene = await stage.scene();
      const readers = [await connection.attach(scene)];
      await scene.submit();
      const turn = await scene.turn();
      turn.text('in time ');
      readers.push(await connection.attach(scene));
      await until('its text is shown', () => readers[0]!.raw().includes('in time'));
      await scene.server.call('POST', `/api/sessions/${scene.sessionId}/interrupt`, {});
      turn.text('LATE');
      await scene.over();
      turn.text('LATE');
      readers.push(await connection.attach(scene));
      for (const reader of readers) expectWhole(await untilShown(scene, reader), reader);
      const [end] = (await scene.truth()).slice(-1);
      expect(end).toMatchObject({ type: 'message.complete', payload: { outcome: 'interrupted' } });
      scene.next();
      if (connection.spans === 'run') readers.push(await connection.attach(scene));
      await scene.submit();
      turn.text('LATE');
      turn.complete();
      const { runId } = await play(scene, ['next']);
      await untilEnd(readers.at(-1)!, runId);
      for (const reader of readers) expect(reader.raw()).not.toContain('LATE');
      expect(JSON.stringify(await scene.server.messages(scene.sessionId))).not.toContain('LATE');
    });

    it('[SU1] a reader that waits has a sign of life', async () => {
      const scene = await stage.scene();
      const reader = await connection.attach(scene);
      await until('two heartbeats have come', () => reader.heartbeats() >= 2);
      await scene.submit();
      (await scene.turn()).complete();
      await scene.over();
      expectWhole(await untilShown(scene, reader), reader);
    });

    const { unusable, visit } = connection;

    it.runIf(unusable)(
      '[SU2][GW3] a place that cannot be honoured is said to be, and where things stand is told',
      async () => {
        const [scene, elsewhere] = [await stage.scene(), await stage.scene()];
        const reader = await connection.attach(scene);
        const other = await connection.attach(elsewhere);
        await play(scene);
        await play(elsewhere);
        await untilShown(scene, reader);
        await untilShown(elsewhere, other);
        const bad = await unusable!(scene, reader.place(), other.place());
        const readers: Reader[] = [];
        for (const [what, [place, reset]] of Object.entries(bad)) {
          const back = await connection.resume(scene, place);
          expect([what, back.reset, back.told !== null]).toEqual([what, reset, true]);
          readers.push(back);
        }
        scene.next();
        await play(scene, ['next']);
        for (const back of readers) {
          expectWhole(await untilShown(scene, back), back);
          expect(back.shown()[0]?.type).toBe('run.start');
        }
      },
    );

    it.runIf(visit)(
      '[EV1][GW4][GW5] a hundred switches while two sessions stream cost nothing and show nothing twice',
      async () => {
        const [one, two, idle] = [await stage.scene(), await stage.scene(), await stage.scene()];
        const visitor = await visit!();
        await one.submit();
        await two.submit();
        const [first, second] = [await one.turn(), await two.turn()];
        const order = [one, two, one, idle, two];
        for (let round = 0; round < 100; round += 1) {
          first.text(`one ${round} `);
          await visitor.show(order[round % order.length]!);
          second.text(`two ${round} `);
        }
        for (const [scene, turn] of [
          [one, first],
          [two, second],
        ] as const) {
          turn.complete();
          await scene.over();
          await visitor.show(scene);
          const truth = await scene.truth();
          const [told] = visitor.told(scene);
          await until('it has the rest', () => toldOf(truth, told!) + countOf(visitor.shown(scene)) >= truth.length);
        }
        for (const scene of [one, two, idle]) {
          const truth = await scene.truth();
          const [told, ...later] = visitor.told(scene);
          expectExactly(truth, visitor.shown(scene), toldOf(truth, told!));
          for (const each of [told!, ...later]) expectTold(truth, each);
        }
      },
    );
  });
}
