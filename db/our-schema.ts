/** What makes a database one of ours: the mark that it bears, and the migrations that this installation ships. */
import { fileURLToPath } from 'node:url';
import { readMigrationFiles } from 'drizzle-orm/migrator';

/** "TKEP": tells our state DB from those of other programs. */
export const APPLICATION_ID = 0x544b4550;

/** Beside the code in the source tree, above it in what is built. */
const FOLDERS = ['./migrations', '../../db/migrations'];

export type Migrations = ReturnType<typeof readMigrationFiles>;

/** All migrations in their order; null when the installation has lost them. */
export function readMigrations(): Migrations | null {
  for (const folder of FOLDERS) {
    try {
      return readMigrationFiles({ migrationsFolder: fileURLToPath(new URL(folder, import.meta.url)) });
    } catch {
      // Not in this folder.
    }
  }
  return null;
}
