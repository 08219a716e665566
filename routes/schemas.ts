/** The shapes that several routes share, as the interface document states them. */
import Type, { type TSchema } from 'typebox';
import { RUN_ID_PATTERN, SESSION_ID_PATTERN } from '../server/core/ids.ts';
import { CATALOGUE } from '../server/errors.ts';

export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const ErrorBody = Type.Object(
  {
    error: Type.String({ description: 'One sentence for a person.' }),
    code: Type.String({ description: 'A stable word for a program.', examples: Object.keys(CATALOGUE) }),
  },
  { additionalProperties: true, description: 'A refusal.' },
);

export const SessionId = Type.String({ pattern: SESSION_ID_PATTERN });
export const SessionParams = Type.Object({ id: SessionId });
export const PromptParams = Type.Object({ id: SessionId, admission_id: Type.String({ pattern: RUN_ID_PATTERN }) });

export const Usage = Type.Object({
  input_tokens: Type.Integer(),
  output_tokens: Type.Integer(),
  cached_tokens: Type.Optional(Type.Integer()),
  reasoning_tokens: Type.Optional(Type.Integer()),
  cost_usd: Type.Optional(Type.Number()),
  context_used: Type.Optional(Type.Integer()),
  context_length: Type.Optional(Type.Integer()),
  context_estimated: Type.Optional(Type.Boolean({ description: 'context_used is an estimate: nobody counted.' })),
});

export const Session = Type.Object({
  session_id: Type.String(),
  title: Nullable(Type.String()),
  source: Type.String(),
  model: Nullable(Type.String()),
  workspace: Nullable(Type.String()),
  project_id: Nullable(Type.String()),
  created_at: Type.Number({ description: 'Epoch seconds.' }),
  updated_at: Type.Number(),
  last_message_at: Nullable(Type.Number()),
  last_activity_at: Type.Number({ description: 'What the list is ordered by, behind the pinned.' }),
  message_count: Type.Integer(),
  pinned: Type.Boolean(),
  archived: Type.Boolean(),
  draft: Type.String(),
  revision: Type.Integer(),
  status: Type.Enum(['idle', 'queued', 'running', 'waiting', 'unknown']),
  run: Nullable(Type.Object({ run_id: Type.String(), admission_id: Type.String(), started_at: Type.Number() })),
  queue_length: Type.Integer(),
  usage: Usage,
  flags: Type.Array(Type.String()),
  paused: Type.Optional(Type.Object({ reason: Type.String() })),
});

export const TurnError = Type.Object(
  { code: Type.String(), message: Type.String(), retryable: Type.Boolean() },
  { additionalProperties: true },
);

export const Message = Type.Object(
  {
    id: Type.String(),
    role: Type.Enum(['user', 'assistant', 'tool', 'system']),
    content: Type.String(),
    timestamp: Type.Number(),
    status: Type.Optional(Type.Enum(['complete', 'partial', 'interrupted', 'error'])),
    error: Type.Optional(TurnError),
  },
  { additionalProperties: true },
);

export const Admission = Type.Object({
  admission_id: Type.String(),
  request_id: Type.String(),
  session_id: Type.String(),
  run_id: Type.String(),
  sequence: Type.Integer(),
  status: Type.Enum(['queued', 'started', 'terminal', 'unknown']),
  outcome: Nullable(Type.Enum(['completed', 'interrupted', 'failed', 'cancelled', 'rejected'])),
  position: Nullable(Type.Integer()),
  generation: Nullable(Type.Integer()),
  created_at: Type.Number(),
  text: Type.String(),
  attachments: Type.Optional(Type.Array(Type.String())),
  error: Type.Optional(TurnError),
});

/** 1 to 100,000, as everywhere. */
export const Limit = (value: number) => Type.Integer({ minimum: 1, maximum: 100_000, default: value });

/** What an Idempotency-Key may be: 1 to 255 visible ASCII characters. */
export const RequestKey = Type.String({ pattern: '^[\\x21-\\x7e]{1,255}$' });

/** A stream of events, for the documentation of a route: each frame as in the HTML standard, its data one JSON object. */
export const EventStream = {
  description: 'Server-sent events.',
  content: { 'text/event-stream': { schema: Type.String() } },
};

/** Refusals for the documentation of a route. */
export const refusals = (...statuses: number[]): Record<number, typeof ErrorBody> =>
  Object.fromEntries(statuses.map((status) => [status, ErrorBody]));
