import net from 'node:net';
import { it } from 'vitest';
import { startTestServer } from '../support/test-server.ts';
it('refused upgrade closes', async () => {
  const server = await startTestServer({ env: { TURNKEEP_TOKEN: 'secret-token' } });
  const port = Number(new URL(server.url).port);
  for (const p of ['/api/ws', '/health', '/%zz', '/api/ws?token=%zz', '/' + 'x'.repeat(9000), '/api/sessions/' + 'y'.repeat(400)]) {
    const t = Date.now();
    await new Promise<void>((resolve) => {
      const s = net.connect(port, '127.0.0.1', () => s.write(`GET ${p} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`));
      s.on('data', (d) => console.log(Date.now() - t, d.toString().slice(0, 60), d.toString().slice(-150)));
      s.on('end', () => console.log('end', Date.now() - t));
      s.on('close', () => { console.log('close', Date.now() - t); resolve(); });
      setTimeout(() => { console.log('still open', Date.now() - t); s.destroy(); }, 1500);
    });
  }
  const t = Date.now();
  await server.close();
  console.log('closed in', Date.now() - t);
});
