/** Methods on the numbered events of live sessions: what a client has missed, and how much is kept. */
import Type from 'typebox';
import { WINDOW_LIMITS } from '../../../server/live/event-window.ts';
import { JsonText } from '../frames.ts';
import { type Method, method } from '../method.ts';
import { openRequestOf } from '../views.ts';
import { type GatewayMethodParts, RuntimeId } from './parts.ts';

export function eventMethods({ live, windows, epoch }: GatewayMethodParts): Record<string, Method> {
  return {
    'session.events.since': method(
      Type.Object({ session_id: RuntimeId, last_seen: Type.Integer({ minimum: 0, default: 0 }) }),
      async ({ session_id, last_seen }) => {
        const session = live.get(session_id);
        const { events, latestSeq, truncated } = session.window.since(last_seen);
        const rest = {
          latest_seq: latestSeq,
          truncated,
          count: events.length,
          epoch,
          open_requests: [...session.live.requests.values()].map((one) => openRequestOf(session_id, one)),
        };
        // The events as they were sent, not made again.
        return new JsonText(`{"events":[${events.join(',')}],${JSON.stringify(rest).slice(1)}`);
      },
    ),

    'session.events.stats': method(Type.Object({}), async () => ({
      ...windows.stats(),
      max_per_session: WINDOW_LIMITS.events,
      max_bytes_per_session: WINDOW_LIMITS.bytes,
      max_bytes_process: WINDOW_LIMITS.processBytes,
    })),
  };
}
