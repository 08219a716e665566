/** An agent that asks and reads no answer: what it asks for is not heaped up here. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createAcpBench } from '../support/acp-bench.ts';
import { runTurn } from '../support/turns.ts';
import { until } from '../support/until.ts';

it('x', async () => {
  const bench = await createAcpBench();
  await writeFile(path.join(bench.workspace, 'large.txt'), 'x'.repeat(4_000_000));
  const agent = bench.command(process.execPath, '-e', `// ${bench.home}
    const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
    const methods = {
      initialize: (id) => send({ id, result: { protocolVersion: 1 } }),
      'session/new': (id) => send({ id, result: { sessionId: 's' } }),
      'session/prompt': (id) => {
        process.stdin.pause();
        for (let n = 0; n < 200; n += 1) send({ id: n, method: 'fs/read_text_file', params: { sessionId: 's', path: 'large.txt' } });
        send({ method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'asked' } } } });
      },
    };
    let buffered = '';
    process.stdin.on('data', (bytes) => {
      buffered += bytes;
      for (;;) { const at = buffered.indexOf('\\n'); if (at < 0) return; const line = buffered.slice(0, at); buffered = buffered.slice(at + 1); const m = JSON.parse(line); methods[m.method]?.(m.id); }
    });`);
  const stop = new AbortController();
  const before = process.memoryUsage().rss;
  const ran = runTurn(agent, { workspace: bench.workspace }, stop.signal, () => {});
  await new Promise((r) => setTimeout(r, 5000));
  console.log('MB', (process.memoryUsage().rss - before) / 1e6);
  stop.abort();
  console.log((await ran).end);
  await bench.close();
}, 60000);
