/** One connection of a client to the server: the same few things over either wire (ws-conn, rest-conn). */
import type { Line } from './line.ts';

/** One accepted prompt, as the model knows it. */
export interface Turn {
  /** In its text and in each piece of its answer. */
  readonly canary: string;
  readonly key: string;
  readonly runId: string;
  readonly isSlow: boolean;
  /** The text that was sent. */
  readonly text: string;
  /** The whole answer. */
  readonly answer: string;
  /** How it ends: by itself, stopped by a client, or with the process that ran it. */
  fate: 'whole' | 'stopped' | 'killed';
}

/** One session, as the model knows it. */
export interface ModelSession {
  readonly key: string;
  /** What was accepted, in order. */
  readonly turns: Turn[];
  /** It has a row: it was made over REST, or has had a prompt. */
  isStored: boolean;
  /** Deleted, or a draft that was lost. */
  isGone: boolean;
}

export interface Conn {
  readonly name: string;
  readonly kind: ClientKind;
  /** Everything it was ever attached to. */
  readonly lines: readonly Line[];
  isOpen(): boolean;
  create(): Promise<ModelSession>;
  /** Attaches; the line it already has, if it is attached. @param before what this client had of it until it dropped */
  open(session: ModelSession, before: Line | null): Promise<Line>;
  /** The open line of a session. */
  line(key: string): Line | null;
  /** `begins` is null where its sender is not told whether it runs or waits. */
  submit(key: string, text: string): Promise<{ runId: string; begins: boolean | null }>;
  interrupt(key: string): Promise<void>;
  /** @returns the word with which it was refused, or null */
  remove(key: string): Promise<string | null>;
  /** Gives the session up: closes the live one, or stops reading. */
  leave(key: string): Promise<void>;
  /** Stops reading from the network, and goes on. */
  pause(): void;
  resume(): void;
  /** Ends it without a word. */
  drop(): Promise<void>;
  /** What it should never have been sent. */
  faults(): string[];
}

export type ClientKind = 'ws' | 'rest';
