/** How a refusal looks on the wire: one shape for every route, the HTTP parser, the 404 and the body limit (HT1). */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyReply, FastifyRequest, FastifySchemaValidationError } from 'fastify';
import { AppError, CATALOGUE, type ErrorCode, storageRefusal } from '../server/errors.ts';

/** Errors of the framework by their code. */
const FRAMEWORK: Record<string, ErrorCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'not_json',
  FST_ERR_CTP_BODY_TOO_LARGE: 'too_large',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'bad_request',
  FST_ERR_CTP_INVALID_JSON_BODY: 'bad_json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'bad_json',
  FST_ERR_BAD_URL: 'bad_request',
  // Longer than any id.
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
  // A path out of the page's folder, or no path at all.
  FST_STATIC_FORBIDDEN_PATH: 'not_found',
  FST_ERR_ASYNC_CONSTRAINT: 'bad_request',
};

/** The refusal that an error is to its caller; null for a bug. */
export function toRefusal(error: unknown): AppError | null {
  if (error instanceof AppError) return error;
  const storage = storageRefusal(error);
  if (storage) return storage;
  const known = error as Partial<FastifyError> & { statusCode?: number };
  if (known.validation) return new AppError('bad_request', validationMessage(known as FastifyError));
  const code = known.code === undefined ? undefined : FRAMEWORK[known.code];
  if (code) return new AppError(code);
  if (error instanceof SyntaxError && known.statusCode === 400) return new AppError('bad_json');
  return null;
}

function validationMessage(error: FastifyError): string {
  const [problem, ...more] = error.validation ?? [];
  const where = { body: 'body', querystring: 'query', params: 'address', headers: 'headers' }[
    error.validationContext ?? 'body'
  ];
  const field = problem?.instancePath.slice(1).replaceAll('/', '.') ?? '';
  const params = problem?.params as { additionalProperty?: string } | undefined;
  if (params?.additionalProperty) return `The ${where} has an unknown field "${params.additionalProperty}".`;
  // Where there is a choice each of its alternatives has a problem; together they say what may stand there.
  const choice = more.some(({ keyword }) => keyword === 'anyOf') ? more : [];
  const same = choice.filter(
    ({ keyword, instancePath }) => keyword !== 'anyOf' && instancePath === problem?.instancePath,
  );
  const whats = problem ? [...new Set([problem, ...same].map(whatOf))] : [error.message];
  const what = whats.map((text, index) => (index === 0 ? text : text.replace(/^must /, ''))).join(' or ');
  return `The ${where} is malformed: ${field ? `"${field}" ` : ''}${what}.`;
}

/** One problem in words: `must be one of "0", "1", "only"`. */
function whatOf({ message = 'is not what may stand there', params }: FastifySchemaValidationError): string {
  if ('allowedValue' in params) return `must be ${JSON.stringify(params.allowedValue)}`;
  if (!Array.isArray(params.allowedValues)) return message;
  return `must be one of ${params.allowedValues.map((value) => JSON.stringify(value)).join(', ')}`;
}

/** Answers with a refusal. */
export function refuse(reply: FastifyReply, refusal: AppError): FastifyReply {
  const { status, retryAfter } = refusal.entry;
  const wait = typeof refusal.details.retry_after === 'number' ? refusal.details.retry_after : retryAfter;
  if (wait !== undefined) reply.header('retry-after', String(wait));
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  return reply.code(status).send({ error: refusal.message, code: refusal.code, ...refusal.details });
}

/** The error handler of the server: a refusal as it is, anything else as a bug that only the log explains. */
export function handleError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  onRefused: (code: ErrorCode) => void = () => {},
): FastifyReply | undefined {
  // A client that left in the middle of its request is no error of anybody.
  if (request.raw.destroyed && !request.raw.complete) return undefined;
  const refusal = toRefusal(error);
  if (refusal) {
    onRefused(refusal.code);
    if (refusal.entry.status >= 500) request.log.warn({ err: error, code: refusal.code }, 'refused');
    return refuse(reply, refusal);
  }
  onRefused('internal');
  request.log.error({ err: error }, 'a request failed');
  return refuse(reply, new AppError('internal'));
}

/** How long a client that was refused by the parser may take to read the answer, in milliseconds. */
const LINGER_MS = 1_000;

/** Errors of the HTTP parser, before there is a request. */
export function handleClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  // More of what has been refused: its connection ends by itself.
  if (error.code !== 'ECONNRESET' && socket.writableEnded) return;
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const code: ErrorCode =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? 'headers_too_large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? 'too_slow'
        : 'bad_request';
  const { status, message } = CATALOGUE[code];
  const body = JSON.stringify({ error: message, code });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
  // Node never ends a connection that it has given to us. At once would be too soon: what is still on its way here
  // would reset the connection under the answer.
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}
