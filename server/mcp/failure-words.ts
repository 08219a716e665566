/**
 * Why an MCP server cannot be used, in words for a person and for a model. No message of the SDK or of the server is in
 * them as it stands: those may hold addresses and headers with secrets.
 */
import { SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import type { ProgramEnd } from '../workspace/programs.ts';

export function notStartedWords(code: string): string {
  if (code === 'ENOENT') return 'its command, or the folder to start it in, was not found';
  return code === 'EACCES' ? 'its command may not be run' : `its command could not be started (${code})`;
}

/** @param lastWords what it wrote to its error output; the last line of it is told */
export function endWords(end: ProgramEnd, lastWords: string): string {
  switch (end.kind) {
    case 'exit':
      return `it ended with code ${end.code}${lastLine(lastWords)}`;
    case 'signal':
      return `it was ended by ${end.signal}${lastLine(lastWords)}`;
    case 'no_output':
      return 'it closed its output';
    case 'line_too_long':
      return 'it sent a message that is too long';
  }
}

const MAX_LINE = 200;

function lastLine(text: string): string {
  const line = text.trimEnd().split('\n').at(-1)?.trim() ?? '';
  return line === '' ? '' : `: ${line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}…` : line}`;
}

/** @param limitS seconds that it had */
export function failureWords(error: unknown, limitS: number): string {
  if (error instanceof SdkHttpError) {
    const { status } = error;
    if (status === 401 || status === 403) return `it refused the credentials (HTTP ${status})`;
    return `it answered with HTTP ${status}`;
  }
  if (error instanceof SdkError) {
    switch (error.code) {
      case SdkErrorCode.RequestTimeout:
        return `it did not answer within ${limitS} s`;
      case SdkErrorCode.ConnectionClosed:
        return 'the connection was closed';
      case SdkErrorCode.InvalidResult:
      case SdkErrorCode.ClientHttpUnexpectedContent:
        return 'its answer was not understood: it may be no MCP server, or one of another revision';
      default:
        return `it could not be used (${error.code})`;
    }
  }
  const code = codeOf(error);
  return code === null ? 'its answer was not understood, or broke off' : `it cannot be reached (${code})`;
}

/** The system's word for a failure, which `fetch` hides one level down. */
function codeOf(error: unknown): string | null {
  for (const one of [error, (error as { cause?: unknown } | null)?.cause]) {
    const code = (one as { code?: unknown } | null | undefined)?.code;
    if (typeof code === 'string') return code;
  }
  return null;
}
