/**
 * The manifest of a backup: the first file of the archive, which says what the others are. What it does not name is not in
 * the backup, and what it names has this size and this sum.
 */
import { ArchiveRefused } from './archive-refused.ts';
import { isSafeName } from './archive-tar.ts';

export interface ManifestFile {
  /** Where it stands in the home. */
  path: string;
  /** Bytes. */
  size: number;
  /** Of its content, hexadecimal. */
  sha256: string;
}

export interface Manifest {
  format: typeof FORMAT;
  format_version: number;
  /** The Turnkeep that wrote it. */
  version: string;
  /** The schema of its database. */
  schema: number;
  /** The moment that it shows, ISO 8601, UTC. */
  created_at: string;
  sessions: number;
  messages: number;
  /** Prompts that waited, and that ran, at that moment. */
  waiting: number;
  running: number;
  journals: number;
  /** Whether `.env` is in it. */
  secrets: boolean;
  /** Transcripts that were damaged in the home already: they are in it as they were found. */
  damaged: string[];
  files: ManifestFile[];
}

export const FORMAT = 'turnkeep-backup';
export const FORMAT_VERSION = 1;

/** Names in the archive: the manifest, and the folder that is a home. */
export const MANIFEST_NAME = 'manifest.json';
export const HOME_PREFIX = 'home/';

/** A manifest of a million files. */
export const MAX_MANIFEST_BYTES = 256 * 1024 * 1024;

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown): value is string => typeof value === 'string';
const isListOf = (value: unknown, is: (one: unknown) => boolean): boolean => Array.isArray(value) && value.every(is);

function isFile(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return false;
  const { path, size, sha256 } = value as Partial<ManifestFile>;
  return isText(path) && isCount(size) && isText(sha256) && /^[0-9a-f]{64}$/.test(sha256);
}

/**
 * Reads a manifest.
 * @throws ArchiveRefused when it is none, of a newer form, or names what must not be unpacked
 */
export function parseManifest(bytes: Buffer): Manifest {
  let value: Partial<Manifest> | null;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ArchiveRefused('its manifest is damaged');
  }
  if (value?.format !== FORMAT) throw new ArchiveRefused('it is no backup of Turnkeep');
  if (value.format_version !== FORMAT_VERSION) {
    throw new ArchiveRefused(`it has form ${value.format_version}, and this Turnkeep knows ${FORMAT_VERSION}`, 'newer');
  }
  const { version, created_at, schema, sessions, messages, waiting, running, journals, secrets, damaged, files } =
    value;
  const isWhole =
    [version, created_at].every(isText) &&
    [schema, sessions, messages, waiting, running, journals].every(isCount) &&
    typeof secrets === 'boolean' &&
    isListOf(damaged, isText) &&
    isListOf(files, isFile);
  if (!isWhole) throw new ArchiveRefused('its manifest is damaged');
  const paths = new Set<string>();
  for (const { path } of files!) {
    if (!isSafeName(path)) throw new ArchiveRefused(`it names ${JSON.stringify(path)}, which is no place in a home`);
    if (paths.has(path)) throw new ArchiveRefused(`it names ${JSON.stringify(path)} twice`);
    paths.add(path);
  }
  return value as Manifest;
}
