/** What an agent is told about paths: names on one line, and why something cannot be had. */
import type { PathProblem } from './guard.ts';

/** Names may have line breaks; a listing has one line for each. */
export const printable = (name: string): string => name.replace(/[\x00-\x1f\x7f]/g, '\uFFFD');

/** What an agent is told about a path that it cannot have. */
export function sentence(problem: PathProblem, path: string): string {
  const name = `"${printable(path.length > 200 ? `${path.slice(0, 200)}…` : path)}"`;
  switch (problem) {
    case 'bad_path':
      return `${name} cannot be a path.`;
    case 'outside':
      return `${name} is outside the workspace; only what is inside it can be read or written.`;
    case 'no_workspace':
      return "The session's workspace folder does not exist.";
    case 'missing':
      return `${name} does not exist in the workspace.`;
    case 'not_a_file':
      return `${name} is not a regular file.`;
    case 'not_a_directory':
      return `${name} is not a folder.`;
    case 'bad_parent':
      return `${name} cannot be a file: a part of its path is there and is no folder.`;
    case 'unreadable':
      return `${name} cannot be read: no permission, or a trouble of the disk.`;
    case 'unwritable':
      return `${name} cannot be written: no permission, or a trouble of the disk.`;
    case 'no_room':
      return `${name} was not written: the disk is full. What was there is unchanged.`;
    case 'moved':
      return `${name} was not written: its folder was moved or replaced meanwhile.`;
    case 'changed':
      return `${name} was changed by somebody else just now, so nothing was written. Read it again.`;
    case 'too_large':
      return `${name} is too large to be edited here.`;
    case 'aborted':
      return 'Stopped.';
  }
}
