/** Schemas of values that are to be stored: what is refused here, with the field's name, the event store would refuse. */
import { z } from 'zod';
import { type Bounds, isStorableText, storageProblem, UNSTORABLE_TEXT, VALUE_BOUNDS } from '../storable.ts';
import { jsonObject } from './common.ts';

export { UNSTORABLE_TEXT };

/** Whether a text can be stored; none can. */
export const isStorable = (text: string | undefined): boolean => text === undefined || isStorableText(text);

/** A check for schemas: within the bounds, and with characters that can be stored. */
export const storable =
  (bounds: Partial<Bounds> = {}) =>
  (value: unknown, context: z.RefinementCtx): void => {
    const problem = storageProblem(value, { ...VALUE_BOUNDS, ...bounds });
    if (problem) context.addIssue({ code: 'custom', path: [...problem.path], message: problem.reason });
  };

/** A JSON object of a client that is stored as it is. */
export const storableObject = jsonObject.superRefine(storable());

/** Any JSON value of a client that is stored as it is. */
export const storableValue = z.unknown().superRefine(storable());

/** A text of at most `max` characters that the stores can hold. */
export const text = (max: number) => z.string().max(max).refine(isStorable, UNSTORABLE_TEXT);

/** A text that is not empty; blanks around it are taken off. */
export const filledText = (max: number) =>
  z.string().trim().min(1, 'must not be empty').max(max).refine(isStorable, UNSTORABLE_TEXT);
