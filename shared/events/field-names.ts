/**
 * Names of fields in event data. They are those of the interface, in snake_case; the types listed here had them in
 * camelCase before. Such events are recognised by type and version, and their fields by the schema, so that data from
 * clients keeps its keys.
 */
import { z } from 'zod';
import type { EventDefinition } from './define.ts';

/** The last version of each type that was written in camelCase. */
const LAST_IN_CAMEL_CASE: Readonly<Record<string, number>> = {
  AlertRuleCreated: 1,
  AlertRuleDeleted: 1,
  AlertRuleTriggered: 1,
  AlertRuleUpdated: 1,
  WorkflowCreated: 1,
  WorkflowDeleted: 1,
  WorkflowUpdated: 1,
  WorkflowUsed: 1,
};

const camelCase = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());

/** A field, or a dotted path, as data of this version names it. */
export const formerPath = (type: string, version: unknown, path: string): string =>
  typeof version === 'number' && version <= (LAST_IN_CAMEL_CASE[type] ?? 0) ? camelCase(path) : path;

type Rename = (value: unknown) => unknown;

const asItIs: Rename = (value) => value;

/** Renames the fields that a schema knows, at every depth. */
function renameOf(schema: z.core.$ZodType): Rename {
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) return renameOf(schema.unwrap());
  if (schema instanceof z.ZodArray) {
    const rename = renameOf(schema.element);
    return (value) => (Array.isArray(value) ? value.map(rename) : value);
  }
  if (!(schema instanceof z.ZodObject)) return asItIs;
  const fields = new Map(
    Object.entries(schema.shape as z.core.$ZodShape).flatMap(([name, inner]) => {
      const field = { name, rename: renameOf(inner) };
      return [
        [name, field],
        [camelCase(name), field],
      ];
    }),
  );
  return (value) => {
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => {
        const { name = key, rename = asItIs } = fields.get(key) ?? {};
        return [name, rename(inner)];
      }),
    );
  };
}

const renames = new WeakMap<z.core.$ZodType, Rename>();

/** The step from the last version in camelCase to the next one; undefined: this version needs another one. */
export function renamed(
  { type, schema }: Pick<EventDefinition, 'type' | 'schema'>,
  version: number,
): ((data: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>) | undefined {
  if (version !== LAST_IN_CAMEL_CASE[type]) return undefined;
  const rename = renames.get(schema) ?? renameOf(schema);
  renames.set(schema, rename);
  return rename as ReturnType<typeof renamed>;
}
