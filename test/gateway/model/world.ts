/**
 * What the model moves: a server process, a provider that says the canary of each prompt, the state DB as it is stored,
 * and a gateway connection that attaches to nothing and so must hear of no session (GW5).
 */
import path from 'node:path';
import type Database from 'better-sqlite3';
import { type ChildServer, startChildServer, writeProviderHome } from '../../support/child-server.ts';
import { type FakeProvider, startFakeProvider } from '../../support/fake-provider.ts';
import { connectGateway, type GatewayClient, type GatewayEvent } from '../../support/gateway.ts';
import { temporaryFolder } from '../../support/home.ts';
import { readStateDb } from '../../support/state-db.ts';

/** Short, so that what everybody has left is given back inside the test. */
const GRACE_S = 1;

interface ActiveRow {
  id: string;
  session_key: string;
  status: string;
}

export interface World {
  readonly home: string;
  readonly provider: FakeProvider;
  /** The server that runs now. */
  server(): ChildServer;
  /** The connection that attaches to nothing. */
  bystander(): GatewayClient;
  /** Lines of `session.active_list`. */
  active(): Promise<ActiveRow[]>;
  /** Rows of the state DB. */
  rows<Row>(sql: string, ...values: unknown[]): Row[];
  /** Kills the server with -9. */
  kill(): Promise<void>;
  /** Starts it again. */
  start(): Promise<void>;
  /** A turn was shown to have ended: what it said must be stored by now (EV3). */
  sawEnd(event: GatewayEvent): void;
  /** What was wrong at the moment at which it was seen. */
  readonly faults: string[];
  /** Wrote on stderr, the last lines. */
  logs(): string;
  stop(): Promise<void>;
}

export async function startWorld(): Promise<World> {
  const provider = await startFakeProvider();
  const home = path.join(await temporaryFolder(), 'home');
  await writeProviderHome(home, provider.baseUrl, `live:\n  orphan_reap_grace_s: ${GRACE_S}\n`);
  const faults: string[] = [];
  let server: ChildServer;
  let bystander: GatewayClient;

  async function start(): Promise<void> {
    server = await startChildServer({ home });
    bystander = await connectGateway(server.url, {
      name: 'bystander',
      onEvent({ type, session_id }) {
        if (session_id !== '') faults.push(`GW5: the bystander was sent ${type} of ${session_id}`);
      },
    });
  }
  await start();

  const rows = <Row>(sql: string, ...values: unknown[]): Row[] =>
    readStateDb(home, (db: Database.Database) => db.prepare(sql).all(...values)) as Row[];

  return {
    home,
    provider,
    server: () => server,
    bystander: () => bystander,
    active: async () => (await bystander.call('session.active_list')).sessions,
    rows,
    kill: () => server.kill(),
    start,
    sawEnd({ run_id, payload }) {
      if (payload.outcome !== 'completed') return;
      const replies = rows(
        "SELECT 1 FROM messages WHERE run_id = ? AND role = 'assistant' AND content = ?",
        run_id,
        payload.text,
      );
      if (replies.length === 0) faults.push(`EV3: the end of ${run_id} was shown before its answer was stored`);
    },
    faults,
    logs: () => server.stderr().split('\n').slice(-25).join('\n'),
    async stop() {
      await bystander.drop();
      await server.kill();
      await provider.close();
    },
  };
}
