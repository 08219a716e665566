/** A server with made-up conversations, answered by the fake provider: what the screenshots show. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { createApp } from '../../server/app.ts';
import { loadConfig } from '../../server/config.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { call } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { ARABIC, BREAD, type MadeUp, MIGRATION, OTHERS, QUERY } from './content.ts';

export interface Stage {
  url: string;
  /** Ids of sessions by their title. */
  ids: Map<string, string>;
  /** A second server, without any model. */
  bareUrl: string;
  close(): Promise<void>;
}

async function startServer(home: string, config: string): Promise<{ url: string; close(): Promise<void> }> {
  await mkdir(home, { recursive: true });
  await writeFile(path.join(home, 'config.yaml'), config);
  const app = await createApp(loadConfig({ home, port: '0' }, { HOME: home }), pino({ level: 'silent' }), {
    discovery: [],
    wordDelayMs: 0,
  });
  const url = `http://127.0.0.1:${await app.listen()}`;
  return {
    url,
    close: async () => {
      app.hurry();
      await app.close();
    },
  };
}

/** Builds the stage; `close` takes everything away. */
export async function buildStage(): Promise<Stage> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'turnkeep-stage-'));
  const provider = await startFakeProvider({ models: ['aurora-large', 'aurora-mini'], strict: false });
  const config = [
    'model:',
    '  provider: custom',
    `  base_url: ${provider.baseUrl}`,
    '  default: aurora-large',
    '  context_length: 128000',
    '',
  ].join('\n');
  const server = await startServer(path.join(folder, 'home'), config);
  const bare = await startServer(path.join(folder, 'bare'), '');
  const shop = path.join(folder, 'shop');
  await mkdir(shop);
  await writeFile(path.join(shop, 'orders.sql'), 'SELECT o.id, o.total, c.email FROM orders o …\n');
  const ids = new Map<string, string>();

  async function play({ title, prompt, answers, pinned = false }: MadeUp): Promise<string> {
    for (const steps of answers) provider.next(...steps);
    const made = await call(`${server.url}/api/sessions`, 'POST', { title, workspace: shop });
    const id: string = made.json.session.session_id;
    ids.set(title, id);
    if (pinned) await call(`${server.url}/api/sessions/${id}`, 'PATCH', { pinned });
    await call(`${server.url}/api/sessions/${id}/prompts`, 'POST', { text: prompt });
    return id;
  }
  const status = async (id: string): Promise<string> =>
    (await call(`${server.url}/api/sessions/${id}`, 'GET')).json.session.status;

  // One after the other: the answers are scripted in this order.
  for (const one of [...OTHERS, ARABIC, BREAD, QUERY]) {
    const id = await play(one);
    await until(`"${one.title}" is answered`, async () => (await status(id)) === 'idle');
  }
  const asking = await play(MIGRATION);
  await until('the agent asks', async () => (await status(asking)) === 'waiting');
  return {
    url: server.url,
    bareUrl: bare.url,
    ids,
    async close() {
      await Promise.all([server.close(), bare.close()]);
      await provider.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
