/** How far a backup or a restore is: one line on a terminal, drawn over and over, and gone when there is something to say. */

export interface Progress {
  /** @param total bytes, or null when nobody knows yet */
  begin(what: string, total: number | null): void;
  add(bytes: number): void;
  /** Takes the line away. */
  clear(): void;
}

const CLEAR = '\r\x1b[K';
const MB = 1_048_576;

/** @param draw null where no person is looking */
export function createProgress(draw: ((text: string) => void) | null): Progress {
  let what = '';
  let total: number | null = null;
  let done = 0;
  let shown = '';
  const show = (): void => {
    const share =
      total === null ? `${Math.floor(done / MB)} MB` : `${total === 0 ? 100 : Math.floor((done / total) * 100)}%`;
    const text = `${what} ${share}`;
    if (text === shown) return;
    shown = text;
    draw?.(`${CLEAR}${text}`);
  };
  return {
    begin(name, bytes) {
      [what, total, done] = [name, bytes, 0];
      show();
    },
    add(bytes) {
      done += bytes;
      show();
    },
    clear() {
      if (shown !== '') draw?.(CLEAR);
      shown = '';
    },
  };
}

/** A size as a person reads it. */
export function inWords(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  const at = Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10) - 1);
  return `${(bytes / 1024 ** (at + 1)).toFixed(1)} ${units[at]}`;
}

/** A count with its word. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
