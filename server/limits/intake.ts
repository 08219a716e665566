/**
 * What new work must pass before anything of it is stored (LI): the rate of its credential, room on the disk, and whether
 * the server has more to do than it can. What was accepted goes on, and reading and deleting pass no gate.
 */
import { AppError } from '../errors.ts';
import type { Load } from './load.ts';
import type { PromptRate } from './prompt-rate.ts';

/** A prompt that somebody wants to submit. */
export interface NewPrompt {
  /** Of the credential. */
  key: string;
  sessionId: string;
  requestId: string | null;
}

export interface Intake {
  /** Something new, asked for over a connection that stands: requests are shed before. @throws AppError overloaded */
  work(): void;
  /** A repeat of an accepted prompt passes: nothing new is stored for it. @throws AppError too_many_prompts, disk_nearly_full */
  prompt(asked: NewPrompt): Promise<void>;
  /** Something else that takes room: a file, a copy, a document. @throws AppError disk_nearly_full */
  room(): Promise<void>;
}

export interface IntakeParts {
  rate: PromptRate;
  load: Pick<Load, 'isTooHigh'>;
  /** Bytes that must be free; 0 asks for none. */
  minFreeBytes: number;
  freeBytes(): Promise<number>;
  /** Whether there is an accepted prompt with this key. */
  isRepeat(sessionId: string, requestId: string): Promise<boolean>;
  /** Epoch seconds. */
  now(): number;
  /** Milliseconds that only grow. */
  monotonic(): number;
}

/** How long an answer of the disk counts: a prompt should not wait for it, and a disk does not fill up in that time. */
const FRESH_MS = 1_000;

/** Who is in without a credential is at this machine, and nobody can be told from anybody there. */
const OPEN = 'open';

export function createIntake(parts: IntakeParts): Intake {
  let asked: { at: number; free: Promise<number> } | null = null;

  /** Where the disk cannot be asked, the write itself says what is wrong. */
  const free = (): Promise<number> => {
    const at = parts.monotonic();
    if (asked === null || at - asked.at > FRESH_MS) asked = { at, free: parts.freeBytes().catch(() => Infinity) };
    return asked.free;
  };

  const room = async (): Promise<void> => {
    if (parts.minFreeBytes > 0 && (await free()) < parts.minFreeBytes) throw new AppError('disk_nearly_full');
  };

  return {
    work() {
      if (parts.load.isTooHigh()) throw new AppError('overloaded');
    },
    async prompt({ key, sessionId, requestId }) {
      if (requestId !== null && (await parts.isRepeat(sessionId, requestId))) return;
      await room();
      const wait = key === OPEN ? 0 : parts.rate.take(key, parts.now());
      if (wait > 0) throw new AppError('too_many_prompts', undefined, { retry_after: wait });
    },
    room,
  };
}
