/** Pieces that many requests and answers share. */
import { z } from 'zod';
import '../messages.ts';

export const errorSchema = z
  .object({
    error: z.string().describe('what went wrong and what to change'),
    details: z.array(z.string()).optional().describe('`<dotted.path>: <reason>` per finding'),
    code: z.string().optional().describe('for programs, where one is documented'),
    hint: z.string().optional(),
  })
  .meta({ id: 'Error' });

/** Unix seconds, UTC. */
export const unixSeconds = z.int().describe('Unix seconds, UTC');

const isSafe = (value: string) => /^\d+$/.test(value) && Number.isSafeInteger(Number(value)) && Number(value) > 0;

/** A record's id in a path: a positive safe integer. */
export const idText = z
  .string()
  .refine(isSafe, 'must be a positive whole number')
  .transform(Number)
  .meta({ override: { type: 'integer', minimum: 1 } });
export const idParams = z.object({ id: idText });

/** An id in a body: a number, or the same as text, as some clients send it. */
export const idValue = z
  .union([z.int().positive(), z.string().refine(isSafe, 'must be a positive whole number').transform(Number)])
  .meta({ override: { type: 'integer', minimum: 1 } });

export const idBody = z.object({ id: idValue });

/** The answer of calls that have nothing else to say. */
export const successAnswer = z.object({ success: z.literal(true) });

/**
 * `limit`: what is no whole number counts as the default, the rest is clamped to 1..cap (contract decision 3).
 */
export const limitParam = (fallback: number, cap = 200) =>
  z
    .string()
    .optional()
    .transform((value) =>
      value !== undefined && /^-?\d+$/.test(value) ? Math.min(Math.max(Number(value), 1), cap) : fallback,
    )
    .meta({ override: { type: 'integer', minimum: 1, maximum: cap, default: fallback } });

/** `offset`: what is no whole number counts as 0; never negative, never above a safe integer. */
export const offsetParam = z
  .string()
  .optional()
  .transform((value) =>
    value !== undefined && /^-?\d+$/.test(value) ? Math.min(Math.max(Number(value), 0), 1_000_000_000) : 0,
  )
  .meta({ override: { type: 'integer', minimum: 0, default: 0 } });

/** An optional moment in a query, Unix seconds; anything else is refused. */
export const secondsParam = z
  .string()
  .refine((value) => /^\d{1,12}$/.test(value), 'must be Unix seconds')
  .transform(Number)
  .optional()
  .meta({ override: { type: 'integer', minimum: 0, maximum: 999_999_999_999 } });

/** A filter text; empty means no filter. */
export const filterParam = z
  .string()
  .max(500)
  .optional()
  .transform((value) => (value === undefined || value.trim() === '' ? undefined : value))
  .meta({ override: { type: 'string', maxLength: 500 } });

// Text that PostgreSQL cannot store (NUL, half of a surrogate pair) or that would deceive a reader of the audit trail.
const UNPRINTABLE = /[\p{Cc}\p{Surrogate}\u2028\u2029]/u;
/** One line of printable text. */
export const lineOfText = (min: number, max: number) =>
  z
    .string()
    .min(min, min === 1 ? 'must not be empty' : `must have at least ${min} characters`)
    .max(max, `must have at most ${max} characters`)
    .refine((value) => !UNPRINTABLE.test(value), 'must not hold control characters or broken Unicode');

/** Several lines: notes. */
export const linesOfText = (max: number) =>
  z
    .string()
    .max(max, `must have at most ${max} characters`)
    .refine((value) => !/[\0\p{Surrogate}]/u.test(value), 'must not hold NUL or broken Unicode');

/** Refuses what `fault` finds a reason against. */
export const without =
  (fault: (value: string) => string | undefined) =>
  (value: string, context: z.RefinementCtx): void => {
    const message = fault(value);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  };

/** Free JSON object of a client. */
export const jsonObject = z.record(z.string(), z.unknown());

/** The error answers that nearly every route has. */
export const ERRORS = {
  400: { description: 'Invalid input', schema: errorSchema },
  401: { description: 'Not authenticated', schema: errorSchema },
  403: { description: 'Authenticated but not permitted', schema: errorSchema },
  404: { description: 'Record not found', schema: errorSchema },
  409: { description: 'Conflict', schema: errorSchema },
  413: { description: 'Too large', schema: errorSchema },
  415: { description: 'The charset or the encoding of the body is not known here', schema: errorSchema },
  422: { description: 'Refused by the text screening', schema: errorSchema },
  429: { description: 'Rate limited', schema: errorSchema },
  500: { description: 'Internal server error', schema: errorSchema },
  503: { description: 'A store is away or a read model is behind', schema: errorSchema },
} as const;
