/** Reading a secret: typed at a terminal without being shown, or the first line of what is piped in. */
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';

export interface SecretInput {
  input: NodeJS.ReadStream;
  /** Where the question goes. */
  say(text: string): void;
}

/** One line; null when there is none. @param question shown only to a person */
export async function readSecretLine({ input, say }: SecretInput, question: string): Promise<string | null> {
  const isPerson = input.isTTY === true;
  if (isPerson) say(question);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: nowhere, terminal: isPerson });
  try {
    const line = new Promise<string | null>((resolve) => {
      lines.once('line', resolve);
      lines.once('close', () => resolve(null));
      lines.once('SIGINT', () => lines.close());
    });
    return await line;
  } finally {
    lines.close();
    if (isPerson) say('\n');
  }
}
