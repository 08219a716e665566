/**
 * The part of the delivery contract that is about readers who do not take what they are given: they alone pay for it,
 * and not with an event.
 */
import { describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { type Connection, createStage, flood, untilEnd, untilShown } from './delivery-scene.ts';
import { countOf, expectExactly, expectWhole } from './delivery-truth.ts';

export function slowReaderContract(connection: Connection): void {
  describe(`${connection.name}, slow`, () => {
    /** A turn with two readers, one of which takes nothing any more: the buffers between are full. */
    async function flooded(config: string) {
      const slow = await createStage({ config });
      const scene = await slow.scene();
      const healthy = await connection.attach(scene);
      const stuck = await connection.attach(scene);
      const { runId } = await scene.submit();
      const turn = await scene.turn();
      await until('the turn has begun for both', () => healthy.shown().length === 1 && stuck.shown().length === 1);
      stuck.pause();
      await flood(slow, turn, 1, (said) => countOf(healthy.shown()) === said + 1);
      return { scene, slow, runId, turn, healthy, stuck };
    }

    /** The healthy one has it all, and the other, which was closed early, goes on where it was. */
    async function expectClosedAlone({ scene, runId, healthy, stuck }: Awaited<ReturnType<typeof flooded>>) {
      const truth = await scene.truth();
      const shown = stuck.shown();
      expect(countOf(shown)).toBeLessThan(truth.length);
      if (connection.spans === 'session') expect(healthy.closed()).toBeNull();
      expectExactly(truth, healthy.shown());
      const back = await connection.resume(scene, stuck.place());
      if (back.told) {
        // More than a window keeps was lost in the buffers of the connection.
        expectWhole(await untilShown(scene, back), back);
      } else {
        await untilEnd(back, runId);
        expectExactly(truth, [...shown, ...back.shown()]);
      }
    }

    it('[SU1] a stuck reader holds up nobody, is closed alone past its bound, and goes on where it was', async () => {
      const all = await flooded('live: {backlog_events: 16, backlog_bytes: 100000000, send_deadline_s: 600}');
      const { turn, healthy, stuck, runId } = all;
      for (let index = 0; index < 40; index += 1) {
        turn.say({ type: 'tool.start', payload: { tool_id: `t${index}`, name: 'look', args: {}, preview: '' } });
      }
      const tools = () => healthy.shown().filter(({ type }) => type === 'tool.start');
      await until('the healthy one has all', () => tools().length === 40);
      stuck.resume();
      const how = await until('the stuck one is closed', () => stuck.closed());
      // A stream cannot say why; a socket can, to a peer that takes something again.
      expect(how).toBe(how === 'ended' ? 'ended' : 1011);
      turn.complete();
      await untilEnd(healthy, runId);
      await expectClosedAlone(all);
    });

    it('[SU1] a reader whose socket takes nothing within the deadline is closed, however little waits', async () => {
      const all = await flooded('live: {backlog_bytes: 100000000, send_deadline_s: 1}');
      const { slow, turn, healthy, stuck, runId } = all;
      await until('the stuck one is closed while the turn runs', () => slow.full() === 0);
      turn.complete();
      await untilEnd(healthy, runId);
      stuck.resume();
      await until('the stuck one hears of it', () => stuck.closed());
      await expectClosedAlone(all);
    });

    it('[SU1] for a reader that lags deltas are merged, and nothing else is left out', async () => {
      const config = 'live: {backlog_events: 1000, backlog_bytes: 100000000, send_deadline_s: 600}';
      const { scene, turn, healthy, stuck, runId } = await flooded(config);
      const before = healthy.shown().length;
      for (let index = 0; index < 20; index += 1) {
        turn.say({ type: 'tool.start', payload: { tool_id: `t${index}`, name: 'look', args: {}, preview: '' } });
        turn.text(`a${index} `);
        turn.text(`b${index} `);
        turn.say({ type: 'reasoning.delta', payload: { text: `c${index}` } });
        turn.say({ type: 'reasoning.delta', payload: { text: `d${index}` } });
      }
      await until('the healthy one has it', () => healthy.shown().length === before + 100);
      stuck.resume();
      turn.complete();
      await untilEnd(stuck, runId);
      await untilEnd(healthy, runId);
      const truth = await scene.truth();
      expectExactly(truth, healthy.shown());
      expectExactly(truth, stuck.shown());
      const merged = stuck.shown().filter(({ count }) => count > 1);
      expect(merged.filter(({ type }) => type === 'reasoning.delta')).toHaveLength(20);
      expect(merged.filter(({ type }) => type === 'message.delta')).toHaveLength(20);
    });
  });
}
