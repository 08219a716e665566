/** A wire that a test can cut: relays TCP to a target that may change, so that a page keeps its address while servers come and go. */
import net from 'node:net';
import { onTestFinished } from 'vitest';

export interface TcpRelay {
  /** Address of the relay, without a slash at its end. */
  url: string;
  /** Cuts every connection and refuses new ones. */
  cut(): void;
  /** Lets connections through again, to `url` when given. */
  mend(url?: string): void;
}

/** @param url where to relay to, for example `http://127.0.0.1:8787` */
export async function createTcpRelay(url: string): Promise<TcpRelay> {
  let target = new URL(url);
  let isCut = false;
  const sockets = new Set<net.Socket>();
  const server = net.createServer((near) => {
    if (isCut) {
      near.destroy();
      return;
    }
    const far = net.connect(Number(target.port), target.hostname);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.on('error', () => other.destroy());
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const cut = (): void => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    cut();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    cut,
    mend(next) {
      if (next !== undefined) target = new URL(next);
      isCut = false;
    },
  };
}
