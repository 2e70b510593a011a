/** Schemas that many requests and responses share. */
import { z } from 'zod';
import '../messages.ts';

export const errorSchema = z
  .object({
    error: z.string().describe('what went wrong and what to change'),
    details: z.array(z.string()).optional().describe('`<dotted.path>: <reason>` per finding'),
    code: z.string().optional().describe('for programs; only where documented'),
    hint: z.string().optional(),
  })
  .meta({ id: 'Error' });

/** Unix seconds, UTC. */
export const unixSeconds = z.int().describe('Unix seconds, UTC');

/** A field that responses about the past omit, because its value is not in the log. */
export const notInThePast = <T extends z.ZodType>(schema: T) =>
  schema
    .optional()
    .describe([schema.description, 'absent in responses about the past'].filter((text) => text).join('; '));

/** Ids are stored as bigint: the column can hold every integer that a JavaScript number represents exactly. */
export const MAX_ID = Number.MAX_SAFE_INTEGER;
const ID = { type: 'integer', minimum: 1, maximum: MAX_ID } as const;

/**
 * Digits in a path or a query, as a number within these bounds; any other value is refused. Leading zeros are accepted:
 * `007` is the positive whole number 7.
 */
export const wholeText = (min: number, max: number, error = `must be a whole number from ${min} to ${max}`) =>
  z
    .string()
    .refine((text) => /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max, error)
    .transform(Number)
    .meta({ override: { type: 'integer', minimum: min, maximum: max } });

const NO_ID = 'must be a positive whole number';

/** A record's id in a path: a positive safe integer. */
export const idText = wholeText(1, MAX_ID, NO_ID);
export const idParams = z.object({ id: idText });

/** An id in a body, as a number. */
export const idNumber = z.int().positive();

/** An id in a body: a number, or a numeric string, as some clients send it. */
export const idValue = z
  .union([z.int().positive(NO_ID), idText], {
    error: ({ input }) => (input === undefined ? 'is required' : NO_ID),
  })
  .meta({ override: ID });

export const idBody = z.object({ id: idValue });

/** The response of calls without any other data. */
export const successResponse = z.object({ success: z.literal(true) });

/** A switch in a query: on for `1`, off for any other value. */
export const onlyOne = z
  .string()
  .optional()
  .meta({ override: { type: 'string', enum: ['1'] } });

/** A whole number in a query, moved into the range if it is outside; any other value counts as the default. */
const clamped = (min: number, max: number, fallback: number) =>
  z
    .string()
    .optional()
    .transform((text) =>
      text !== undefined && /^-?\d+$/.test(text) ? Math.min(Math.max(Number(text), min), max) : fallback,
    )
    .meta({ override: { type: 'integer', minimum: min, maximum: max, default: fallback } });

/**
 * Bytes of the records of one page, as JSON. A page with more ends earlier than `limit` says, but has at least one
 * record; the next one begins at `offset` plus the number of its records.
 */
export const PAGE_BYTES = 4_000_000;
/** The same in results of MCP tools, which an agent's model reads. */
export const TOOL_PAGE_BYTES = 400_000;

export const limitParam = (fallback: number, cap = 200) => clamped(1, cap, fallback);
export const offsetParam = clamped(0, 1_000_000_000, 0);

/** The latest time that a request can name, Unix seconds. */
export const MAX_SECONDS = 999_999_999_999;

/** An optional time in a query, Unix seconds; any other value is refused. */
export const secondsParam = wholeText(0, MAX_SECONDS, 'must be Unix seconds').optional();

/** A filter; empty means no filter. */
export const filterParam = z
  .string()
  .max(500)
  .optional()
  .transform((value) => (value === undefined || value.trim() === '' ? undefined : value))
  .meta({ override: { type: 'string', maxLength: 500 } });

// Characters that PostgreSQL cannot store (NUL, lone surrogates) or that would mislead readers of the audit trail.
const UNPRINTABLE = /[\p{Cc}\p{Surrogate}\u2028\u2029]/u;
/** One line of printable text. */
export const lineOfText = (min: number, max: number) =>
  z
    .string()
    .min(min, min === 1 ? 'must not be empty' : `must have at least ${min} characters`)
    .max(max, `must have at most ${max} characters`)
    .refine((value) => !UNPRINTABLE.test(value), 'must not contain control characters or invalid Unicode');

/** Text of several lines, such as notes. */
export const linesOfText = (max: number) =>
  z
    .string()
    .max(max, `must have at most ${max} characters`)
    .refine((value) => !/[\0\p{Surrogate}]/u.test(value), 'must not contain U+0000 or invalid Unicode');

/** A check for schemas: refuses a value with the reason that `fault` returns, if any. */
export const without =
  (fault: (value: string) => string | undefined) =>
  (value: string, context: z.RefinementCtx): void => {
    const message = fault(value);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  };

/** An arbitrary JSON object from a client. */
export const jsonObject = z.record(z.string(), z.unknown());

/** The error responses of nearly every route. */
export const ERRORS = {
  400: { description: 'Invalid input', schema: errorSchema },
  401: { description: 'Not authenticated', schema: errorSchema },
  403: { description: 'Authenticated but not permitted', schema: errorSchema },
  404: { description: 'Record not found', schema: errorSchema },
  409: { description: 'Conflict', schema: errorSchema },
  413: { description: 'Too large', schema: errorSchema },
  415: { description: 'The charset or the encoding of the body is not supported', schema: errorSchema },
  422: { description: 'Refused by text screening', schema: errorSchema },
  429: { description: 'Rate limited', schema: errorSchema },
  500: { description: 'Internal server error', schema: errorSchema },
  503: { description: 'A store is unavailable or a read model is behind', schema: errorSchema },
} as const;
