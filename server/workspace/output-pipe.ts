/**
 * The pipe that a command writes to. The one that Node makes for a child is a socket, which no program can open by its name
 * (`> /dev/stderr`); so a FIFO is made, opened at both ends, and its name taken away again.
 */
import { execFile } from 'node:child_process';
import { closeSync, constants, open } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';

export interface OutputPipe {
  output: Readable;
  /** Descriptor for the command. */
  input: number;
  /** The command has it now, or never will: without this the output would not end. Again it does nothing. */
  closeInput(): void;
}

const run = promisify(execFile);
const openFile = promisify(open);

/**
 * @param place a path that is free; nothing stands there afterwards
 * @returns null where none can be made, by the machine or by the file system: Node's own has to do then
 * @throws the system's error
 */
export async function openOutputPipe(place: string): Promise<OutputPipe | null> {
  const isMade = await run('mkfifo', ['-m', '600', place]).then(
    () => true,
    () => false,
  );
  if (!isMade) return null;
  try {
    // The reader first, and not waiting for a writer: each end waits for the other otherwise.
    const reader = await openFile(place, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const input = await openFile(place, constants.O_WRONLY);
      let isOpen = true;
      const closeInput = (): void => {
        if (isOpen) closeSync(input);
        isOpen = false;
      };
      return { output: new Socket({ fd: reader, writable: false }), input, closeInput };
    } catch (error) {
      closeSync(reader);
      throw error;
    }
  } finally {
    await rm(place, { force: true });
  }
}
