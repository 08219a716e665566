/** Temporary homes: made for one test, removed after it. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';

/** An empty folder that is removed when the test has finished. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'turnkeep-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
