// For `npm run db:generate`, which writes the next migration from the difference between schema and migrations.

import { defineConfig } from 'drizzle-kit';

export default defineConfig({ dialect: 'sqlite', schema: './db/schema.ts', out: './db/migrations' });
