/**
 * The wire between one client and a server, in the hands of a test: it gives one byte at a time, is reset at a chosen
 * moment, or falls silent without a word, as when a machine loses its network.
 */
import net from 'node:net';
import { onTestFinished } from 'vitest';

export interface Wire {
  /** Where the client connects to, with a slash at its end. */
  url: string;
  /** Ends every connection with an RST on both sides; new ones are let through. */
  reset(): void;
  /** Nothing passes any more, in no direction, and nobody is told. */
  silence(): void;
}

interface Pair {
  near: net.Socket;
  far: net.Socket;
}

/**
 * @param url of the server, `http://…`
 * @param bytewise one byte per read from either side, each sent on by itself
 */
export async function createWire(url: string, { bytewise = false }: { bytewise?: boolean } = {}): Promise<Wire> {
  const { hostname, port } = new URL(url);
  const target = { host: hostname, port: Number(port) };
  const pairs = new Set<Pair>();
  const relay = net.createServer({ allowHalfOpen: false }, (near) => {
    const far = bytewise ? net.connect({ ...target, onread: byByte(near) }) : net.connect(target);
    const pair = { near, far };
    pairs.add(pair);
    near.setNoDelay(true);
    far.setNoDelay(true);
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
    for (const socket of [near, far]) socket.on('close', () => pairs.delete(pair));
    if (!bytewise) {
      near.pipe(far);
      far.pipe(near);
      return;
    }
    near.on('data', (chunk) => {
      for (const byte of chunk) far.write(Buffer.of(byte));
    });
    near.on('end', () => far.end());
    far.on('end', () => near.end());
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const { near, far } of pairs) {
      near.destroy();
      far.destroy();
    }
    relay.close();
  });
  return {
    url: `http://127.0.0.1:${(relay.address() as net.AddressInfo).port}/`,
    reset() {
      for (const { near, far } of [...pairs]) {
        near.resetAndDestroy();
        far.resetAndDestroy();
      }
    },
    silence() {
      for (const { near, far } of pairs) {
        near.unpipe(far).pause();
        far.unpipe(near).pause();
      }
    },
  };
}

/** Reads one byte per system call. */
const byByte = (to: net.Socket): net.OnReadOpts => ({
  buffer: new Uint8Array(1),
  callback(_length, buffer) {
    to.write(Buffer.from(buffer));
    return true;
  },
});
