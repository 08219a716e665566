// Holds the arrows of the house in the real sources, and plants a violation of each to prove that it can fail.

import { describe, expect, it } from 'vitest';
import { cyclesOf, violationsOf } from './arrows.ts';
import { factsOf, sourcesBelow, textOf } from './source.ts';

const HOUSE = ['server', 'routes', 'db'];

/** Sources that break one rule each: where it is planted, its text, the rule that must see it. */
const PLANTED: [path: string, text: string, rule: string][] = [
  ['routes/sessions.ts', "import { createStore } from '../db/session-store.ts';", 'arrows point down'],
  ['routes/sessions.ts', "import type { Row } from '../db/files/sidecar.ts';", 'arrows point down'],
  ['routes/sessions.ts', "import { build } from '../server/app.ts';", 'arrows point down'],
  ['server/authority/admit.ts', "export { reply } from '../../routes/prompts.ts';", 'arrows point down'],
  ['server/authority/admit.ts', "import { main } from '../main.ts';", 'arrows point down'],
  ['db/session-store.ts', "import { AppError } from '../server/errors.ts';", 'arrows point down'],
  ['db/session-store.ts', "const { go } = await import('../routes/prompts.ts');", 'arrows point down'],
  ['db/files/paths.ts', "import { open } from '../client.ts';", 'arrows point down'],
  ['db/files/paths.ts', "import { AppError } from '../../server/errors.ts';", 'arrows point down'],
  ['server/core/fold.ts', "export * from '../errors.ts';", 'arrows point down'],
  ['server/core/fold.ts', "type Row = import('../../db/schema.ts').Row;", 'arrows point down'],
  ['server/recovery/repair.ts', "new URL('../../routes/worker.ts', import.meta.url);", 'arrows point down'],
  [
    'server/recovery/repair.ts',
    "import { fake } from '../../test/fake.ts';",
    'the house imports nothing outside itself but package.json',
  ],
  ['server/core/fold.ts', "import { createHash } from 'node:crypto';", 'core imports no package and no built-in'],
  ['server/core/fold.ts', "import { Type } from 'typebox';", 'core imports no package and no built-in'],
  ['server/errors.ts', "import type { FastifyReply } from 'fastify';", 'only routes know Fastify'],
  ['server/live/stream.ts', "import websocket from '@fastify/websocket';", 'only routes know Fastify'],
  ['db/client.ts', "import { fastify } from 'fastify';", 'only routes know Fastify'],
  ['server/lease/acquire.ts', "import Database from 'better-sqlite3';", 'only db imports the SQLite driver'],
  ['routes/search.ts', "import { sql } from 'drizzle-orm';", 'only db imports the SQLite driver'],
  ['db/files/sidecar.ts', "import { eq } from 'drizzle-orm/sqlite-core';", 'only db imports the SQLite driver'],
  ['db/client.ts', "import { copyFileSync } from 'node:fs';", 'only the named places touch files'],
  ['server/sessions/list.ts', "import { readFile } from 'node:fs/promises';", 'only the named places touch files'],
  ['routes/page.ts', "const fs = require('fs');", 'only the named places touch files'],
  ['server/runners/model.ts', 'const key = process.env.KEY;', 'only the configuration reads the environment'],
  ['server/app.ts', "const key = globalThis.process['env'].KEY;", 'only the configuration reads the environment'],
  ['db/client.ts', "import { env } from 'node:process';", 'only the configuration reads the environment'],
  ['routes/health.ts', 'const { env } = process;', 'only the configuration reads the environment'],
  ['server/config.ts', 'const started = Date.now();', 'only the roof reads the clock and makes ids'],
  ['db/session-store.ts', 'const store = (now = Date.now) => now();', 'only the roof reads the clock and makes ids'],
  ['routes/health.ts', 'const day = new Date();', 'only the roof reads the clock and makes ids'],
  ['db/wait.ts', 'const jitter = 5 + Math.random() * 45;', 'only the roof reads the clock and makes ids'],
  [
    'server/authority/claim.ts',
    "import { randomUUID as id } from 'node:crypto';",
    'only the roof reads the clock and makes ids',
  ],
  [
    'db/files/atomic.ts',
    "import crypto from 'node:crypto'; crypto.randomBytes(8);",
    'only the roof reads the clock and makes ids',
  ],
];

/** Sources that look alike and break nothing. */
const INNOCENT: [path: string, text: string][] = [
  ['routes/sessions.ts', "import { fastify } from 'fastify'; import { list } from '../server/sessions/list.ts';"],
  [
    'server/authority/admit.ts',
    "import type { Store } from '../../db/admission-store.ts'; import { pino } from 'pino';",
  ],
  [
    'server/recovery/repair.ts',
    "import { save } from '../../db/files/sidecar.ts'; import { fold } from '../core/fold.ts';",
  ],
  ['server/lease/identity.ts', "import { readFileSync } from 'node:fs';"],
  ['server/workspace/read.ts', "import { open } from 'node:fs/promises';"],
  ['server/config.ts', "import { readFileSync } from 'node:fs'; const env = process.env;"],
  ['server/api-document.ts', "import data from '../package.json' with { type: 'json' };"],
  ['db/client.ts', "import Database from 'better-sqlite3'; import { home } from './files/paths.ts';"],
  [
    'db/files/paths.ts',
    "import { open } from 'node:fs/promises'; import type { Row } from '../../server/core/terms.ts';",
  ],
  ['server/core/fold.ts', "import { text } from './text.ts'; const size = Buffer.byteLength('x'); // Date.now()"],
  ['server/authority/digest.ts', "import { createHash } from 'node:crypto'; const day = new Date(5).toISOString();"],
  ['server/app.ts', "import { readFileSync } from 'node:fs'; import { x } from '../routes/x.ts'; Date.now();"],
];

describe('the house', () => {
  it('[HO1] arrows point down: routes, server, db, db/files; everything may use server/core, which imports nothing', () => {
    for (const folder of HOUSE) expect(sourcesBelow(folder), folder).not.toEqual([]);
    const files = HOUSE.flatMap(sourcesBelow).map((path) => factsOf(path, textOf(path)));
    const lines = files.flatMap(violationsOf).map((v) => `${v.path}:${v.line} ${v.what}: ${v.rule}`);
    expect(lines).toEqual([]);
  });

  it.each(PLANTED)('[HO2] a planted violation of each arrow is found: %s, %s', (path, text, rule) => {
    expect(violationsOf(factsOf(path, `\n${text}`))).toEqual([expect.objectContaining({ path, line: 2, rule })]);
  });

  it.each(INNOCENT)('[HO2] nothing is found where nothing is broken: %s, %s', (path, text) => {
    expect(violationsOf(factsOf(path, text))).toEqual([]);
  });

  it('[HO3] no file is part of an import cycle, and a planted cycle is found', () => {
    const files = HOUSE.flatMap(sourcesBelow).map((path) => factsOf(path, textOf(path)));
    expect(cyclesOf(files)).toEqual([]);
    const planted = [
      factsOf('server/a.ts', "import './b/b.ts';"),
      factsOf('server/b/b.ts', "import type { C } from '../c.ts';"),
      factsOf('server/c.ts', "export * from './b/b.ts'; import './d.ts';"),
      factsOf('server/d.ts', ''),
    ];
    expect(cyclesOf(planted)).toEqual([['server/b/b.ts', 'server/c.ts', 'server/b/b.ts']]);
  });
});
