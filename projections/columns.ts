/** Columns for the fields of a record, derived from the schema that its events and responses share. */
import type { z } from 'zod';
import type { ColumnOf, ColumnType } from './projection.ts';

const TYPES: Readonly<Record<string, ColumnType>> = {
  string: 'text',
  enum: 'text',
  boolean: 'boolean',
  array: 'jsonb',
  object: 'jsonb',
  record: 'jsonb',
};

function columnType(schema: z.core.$ZodType): ColumnType {
  const { def } = schema._zod as { def: z.core.$ZodTypeDef & { innerType?: z.core.$ZodType; format?: string } };
  if (def.type === 'nullable' && def.innerType) return `${columnType(def.innerType)}?` as ColumnType;
  const type = def.type === 'number' ? (def.format === 'safeint' ? 'bigint' : 'double') : TYPES[def.type];
  if (!type) throw new Error(`No column type for ${def.type}: declare that column by itself.`);
  return type;
}

/** The column for one field. @throws Error for a schema without a column type */
export const columnFor = <S extends z.ZodType>(schema: S) => columnType(schema) as ColumnOf<z.output<S>>;

/**
 * A column for each field of a schema. Whole numbers are `bigint`; for those that the contract bounds, override the
 * type: `{ ...columnsFor(schema), use_count: 'int' }`.
 *
 * @throws Error for a field without a column type, such as an optional one
 */
export const columnsFor = <S extends z.ZodRawShape>(schema: z.ZodObject<S>) =>
  Object.fromEntries(Object.entries(schema.shape).map(([name, field]) => [name, columnType(field)])) as {
    readonly [K in keyof S]: ColumnOf<z.output<S[K]>>;
  };
