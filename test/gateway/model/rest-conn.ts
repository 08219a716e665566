/** A client without the gateway: requests of REST, and a stream for each session that it has opened. */
import type { Conn } from './conn.ts';
import { openStream, type StreamLine } from './stream-line.ts';
import type { World } from './world.ts';

export function connectRest(world: World, name: string): Conn {
  const lines: StreamLine[] = [];
  let open = true;
  const line = (key: string): StreamLine | null => lines.find((one) => one.key === key && one.isOpen()) ?? null;

  /** @throws when the answer has another status */
  async function ask(wanted: number, method: string, address: string, body?: unknown) {
    const { status, json, text } = await world.server().call(method, `/api/sessions${address}`, body);
    if (status !== wanted) throw new Error(`${method} ${address}: ${status} ${text}`);
    return json;
  }

  const conn: Conn = {
    name,
    kind: 'rest',
    lines,
    isOpen: () => open,
    line,

    async create() {
      const { session } = await ask(201, 'POST', '', {});
      const made = { key: session.session_id, turns: [], isStored: true, isGone: false };
      await conn.open(made, null);
      return made;
    },

    async open(session, before) {
      const known = line(session.key);
      if (known) return known;
      const left = before as StreamLine | null;
      if (left) await left.again();
      const one = left ?? (await openStream(world, name, session));
      lines.push(one);
      return one;
    },

    async submit(key, text) {
      const { run_id } = await ask(202, 'POST', `/${key}/prompts`, { text });
      return { runId: run_id, begins: null };
    },

    async interrupt(key) {
      await ask(200, 'POST', `/${key}/interrupt`, { clear_queue: true });
    },

    async remove(key) {
      const { status, json, text } = await world.server().call('DELETE', `/api/sessions/${key}`);
      if (status === 204) return null;
      if (status !== 409) throw new Error(`DELETE ${key}: ${status} ${text}`);
      return json.code;
    },

    async leave(key) {
      line(key)?.drop();
    },

    pause() {
      for (const one of lines) one.pause();
    },

    resume() {
      for (const one of lines) one.resume();
    },

    async drop() {
      open = false;
      for (const one of lines) one.drop();
    },

    faults: () => [],
  };
  return conn;
}
