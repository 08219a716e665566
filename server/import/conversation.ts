/** A conversation that can be imported, whatever it stands in. */
import type { SourceFile } from '../../db/files/import-files.ts';
import type { Tail } from '../../db/files/sidecar-text.ts';
import type { SourceSession } from '../../db/import-source.ts';
import type { Project } from '../../db/stores.ts';
import type { RawRow } from '../core/reconcile/row.ts';
import type { SourceHeader } from './session-fields.ts';
import type { ImportedRow } from './transcript.ts';

/** What is in a conversation. */
export interface Loaded {
  header: SourceHeader | null;
  rows: ImportedRow[];
  /** The fields behind the transcript in its sidecar. */
  tail: Tail;
  /** What its model is given where no sidecar says; null where that is the transcript. */
  context: RawRow[] | null;
  /** What it went on from behind compressions; null for a conversation of one session. */
  before: Before | null;
}

/** Sessions that the conversation went through before this one: its rows begin with theirs. */
export interface Before {
  /** From the one before it back to the first. */
  parts: { id: string; header: SourceHeader | null; summary: SourceSession | null }[];
  /** Rows that its own stores have, where those are not all that is shown; else null. */
  own: readonly ImportedRow[] | null;
}

/** A conversation there. */
export interface Conversation {
  /** Its id there. */
  id: string;
  /** Whether it is to have the same id here. */
  keepsId: boolean;
  /** Another text whenever its stores are others than before. */
  seen: string;
  summary: SourceSession | null;
  /** Epoch seconds, for the order. */
  createdAt: number;
  /** Whether prompts of it wait there. */
  waits: boolean;
  /** A string says why it cannot be read; null that it is none. */
  load(): Promise<Loaded | string | null>;
  /** @param before ids of sessions that it went on from */
  attachments(before: readonly string[]): Promise<SourceFile[]>;
  journals(): Promise<{ runId: string; file: SourceFile }[]>;
}

export interface Source {
  /** Tells this home from every other. */
  home: string;
  /** What a person calls it. */
  label: string;
  conversations: Conversation[];
  projects: ReadonlyMap<string, Project>;
  /** Folders below which a row may name files. */
  roots: string[];
  /** Places in it that are homes of their own. */
  profiles: string[];
  close(): Promise<void>;
}
