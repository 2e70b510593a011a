/** Fields of records: each is declared once, by its schema, and picked from there. */
import { z } from 'zod';

/** Names of the fields of a schema. */
export const fieldNames = <S extends z.ZodRawShape>(schema: z.ZodObject<S>) =>
  Object.keys(schema.shape) as (keyof S & string)[];

const fieldsOf = (shape: z.ZodRawShape) => Object.entries(shape) as [string, z.ZodType][];

/** The fields that have a value. An omitted field is undefined. */
export const sent = <F extends object>(fields: F): Partial<F> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<F>;

type Nulls<S extends z.ZodRawShape> = { [K in keyof S as null extends z.output<S[K]> ? K : never]: null };

/** Null for each field that may be null. */
export const nullsOf = <S extends z.ZodRawShape>(schema: z.ZodObject<S>): Nulls<S> =>
  Object.fromEntries(
    fieldsOf(schema.shape)
      .filter(([, field]) => field.isNullable())
      .map(([name]) => [name, null]),
  ) as Nulls<S>;

type Changes<S extends z.ZodRawShape> = {
  [K in keyof S]: z.ZodOptional<
    S[K] extends z.ZodDefault<infer T> ? (null extends z.output<T> ? z.ZodNullable<T> : T) : S[K]
  >;
};

/** The fields of a new record as fields of a change: all are optional, and those that are null by default may be null. */
export const changesOf = <S extends z.ZodRawShape>(fields: S): Changes<S> =>
  Object.fromEntries(
    fieldsOf(fields).map(([name, field]) => {
      if (!(field instanceof z.ZodDefault)) return [name, field.optional()];
      const inner = field.unwrap() as z.ZodType;
      const nullable = field.def.defaultValue === null && !inner.isNullable();
      return [name, (nullable ? inner.nullable() : inner).optional()];
    }),
  ) as Changes<S>;
