/** Which addresses are proxies of ours: as `server.trusted_proxies` lists them. */
import { BlockList, isIP } from 'node:net';

const NAMED: Readonly<Record<string, readonly [network: string, bits: number][]>> = {
  loopback: [
    ['127.0.0.0', 8],
    ['::1', 128],
  ],
  linklocal: [
    ['169.254.0.0', 16],
    ['fe80::', 10],
  ],
  uniquelocal: [
    ['10.0.0.0', 8],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16],
    ['fc00::', 7],
  ],
};

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/**
 * @param proxies addresses, ranges (10.0.0.0/8) and names, as the configuration has checked them
 * @returns whether an address is one of them
 */
export function createTrustedPeers(proxies: readonly string[]): (address: string | undefined) => boolean {
  const list = new BlockList();
  const ranges = proxies.flatMap((proxy): readonly [string, number][] => {
    const [address = '', bits] = proxy.split('/');
    return NAMED[proxy] ?? [[address, bits === undefined ? (isIP(address) === 6 ? 128 : 32) : Number(bits)]];
  });
  for (const [address, bits] of ranges) list.addSubnet(address, bits, familyOf(address));
  // An IPv4 peer of a socket that listens on both is written as IPv6; BlockList knows them as the same.
  return (address) => address !== undefined && isIP(address) !== 0 && list.check(address, familyOf(address));
}
