/** Reads a description of the API, independently of the code that generated it. */
import type { OpenApiDocument, Operation, Parameter } from '../../api/openapi.ts';

/** What a reference inside the document points to. */
export function follow(document: unknown, ref: string): unknown {
  let place: unknown = ref.startsWith('#/') ? document : undefined;
  for (const step of ref.slice(2).split('/')) {
    place = (place as Record<string, unknown> | undefined)?.[step.replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  return place;
}

/** The thing itself, where a reference may stand in its place. */
export function resolved<T extends object>(document: unknown, value: T | { readonly $ref: string }): T {
  return '$ref' in value && typeof value.$ref === 'string' ? (follow(document, value.$ref) as T) : (value as T);
}

export interface Described {
  /** `POST /api/agents/{id}/keys` */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
  readonly parameters: readonly Parameter[];
}

export const operationsOf = (document: OpenApiDocument): Described[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([lower, operation]) => ({
      name: `${lower.toUpperCase()} ${path}`,
      method: lower.toUpperCase(),
      path,
      operation,
      parameters: (operation.parameters ?? []).map((parameter) => resolved(document, parameter)),
    })),
  );

function isOfType(type: unknown, value: unknown): boolean {
  if (Array.isArray(type)) return type.some((one) => isOfType(one, value));
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  return type === typeof value;
}

const same = (a: unknown, b: unknown) =>
  a === b || (typeof a === 'object' && typeof b === 'object' && JSON.stringify(a) === JSON.stringify(b));

interface Rules {
  readonly $ref?: string;
  readonly type?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly unknown[];
  readonly oneOf?: readonly unknown[];
  readonly allOf?: readonly unknown[];
  readonly not?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly items?: unknown;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
}

/** Validates against the part of JSON Schema that the description uses, independently of the code that generated it. */
export function accepts(document: unknown, schema: unknown, value: unknown): boolean {
  if (typeof schema === 'boolean') return schema;
  const rules = schema as Rules;
  const holds = (one: unknown, part: unknown = value) => accepts(document, one, part);
  if (rules.$ref && !holds(follow(document, rules.$ref))) return false;
  if (rules.type && !isOfType(rules.type, value)) return false;
  if (rules.enum && !rules.enum.some((one) => same(one, value))) return false;
  if ('const' in rules && !same(rules.const, value)) return false;
  if (rules.anyOf && !rules.anyOf.some((one) => holds(one))) return false;
  if (rules.oneOf && rules.oneOf.filter((one) => holds(one)).length !== 1) return false;
  if (rules.allOf && !rules.allOf.every((one) => holds(one))) return false;
  if (rules.not && holds(rules.not)) return false;
  if (typeof value === 'number') {
    const { minimum = value, maximum = value, exclusiveMinimum = -Infinity, exclusiveMaximum = Infinity } = rules;
    return value >= minimum && value <= maximum && value > exclusiveMinimum && value < exclusiveMaximum;
  }
  if (typeof value === 'string') {
    const { minLength = 0, maxLength = Infinity, pattern = '' } = rules;
    return value.length >= minLength && value.length <= maxLength && new RegExp(pattern, 'u').test(value);
  }
  if (Array.isArray(value)) {
    const { minItems = 0, maxItems = Infinity, items = true } = rules;
    return value.length >= minItems && value.length <= maxItems && value.every((one) => holds(items, one));
  }
  if (typeof value === 'object' && value !== null) {
    const { required = [], properties = {}, additionalProperties = true } = rules;
    return (
      required.every((name) => Object.hasOwn(value, name)) &&
      Object.entries(value).every(([name, one]) =>
        holds(Object.hasOwn(properties, name) ? properties[name] : additionalProperties, one),
      )
    );
  }
  return true;
}
