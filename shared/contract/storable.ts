/** Schemas of stored values: they refuse, with the field's name, values that the event store would refuse. */
import { z } from 'zod';
import { type Bounds, isStorableText, storageProblem, UNSTORABLE_TEXT, VALUE_BOUNDS } from '../storable.ts';
import { filterParam, jsonObject } from './common.ts';

export { UNSTORABLE_TEXT };

/** Whether a text can be stored; true for undefined. */
export const isStorable = (text: string | undefined): boolean => text === undefined || isStorableText(text);

/** A check for schemas: the value must be within the bounds and have only characters that can be stored. */
export const storable =
  (bounds: Partial<Bounds> = {}) =>
  (value: unknown, context: z.RefinementCtx): void => {
    const problem = storageProblem(value, { ...VALUE_BOUNDS, ...bounds });
    if (problem) context.addIssue({ code: 'custom', path: [...problem.path], message: problem.reason });
  };

/** A JSON object from a client that is stored unchanged. */
export const storableObject = jsonObject.superRefine(storable());

/** Any JSON value from a client that is stored unchanged. */
export const storableValue = z.unknown().superRefine(storable());

/** A text of at most `max` characters that the stores can hold. */
export const text = (max: number) => z.string().max(max).refine(isStorable, UNSTORABLE_TEXT);

/** A text that is not empty after trimming. */
export const filledText = (max: number) =>
  z.string().trim().min(1, 'must not be empty').max(max).refine(isStorable, UNSTORABLE_TEXT);

/** A name of a user or an agent, in the form in which names are stored. */
export const nameText = (max: number) => filledText(max).normalize('NFC');

/** A filter by such a name; empty means no filter. */
export const nameFilter = filterParam
  .refine(isStorable, UNSTORABLE_TEXT)
  .transform((name) => name?.normalize('NFC'))
  .meta({ override: { type: 'string', maxLength: 500 } });
