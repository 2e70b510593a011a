/**
 * Golden samples of events: an example of each version of each event, and what it means (activity, audit entry,
 * notification, frames). One file per group: `{ <type>: { <version>: { data, means } } }`.
 *
 * UPDATE_GOLDEN=1 writes samples that are missing, and what all of them mean. From version 1.0.0 on it never changes
 * `data`, because a log may contain it.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { z } from 'zod';
import { isEvent } from '../../shared/events/catalogue.ts';
import type { DomainEvent, EventDefinition } from '../../shared/events/define.ts';
import * as files from '../../shared/events/index.ts';
import type { Metadata } from '../../shared/events/metadata.ts';
import { activityOf } from '../../shared/events/monitoring/activities.ts';
import { auditOf } from '../../shared/events/monitoring/audit.ts';
import { framesOf } from '../../shared/events/monitoring/frames.ts';
import { notificationOf } from '../../shared/events/monitoring/notifications.ts';
import { type Upcasters, upcast, upcasters } from '../../shared/events/upcasters.ts';

type Data = Readonly<Record<string, unknown>>;

/** What an event means; without the parts that it does not have. */
export interface Meaning {
  readonly activity?: Data;
  readonly audit?: Data;
  readonly notification?: Data;
  readonly frames?: readonly { readonly type: string; readonly role?: string; readonly data: Data }[];
}
export interface Golden {
  readonly data: Data;
  readonly means: Meaning;
}
/** The samples of a group, by type and version. */
export type Samples = Readonly<Record<string, Readonly<Record<string, Golden>>>>;

/** Events of one group of endpoints. */
export interface Group {
  readonly name: string;
  readonly definitions: readonly EventDefinition[];
}

// Compiled tests run from dist/; the golden files stay with the sources.
const folder = fileURLToPath(new URL('../../../test/golden/events/', import.meta.url));

/** The groups of the catalogue: `agentsKeys` in `shared/events/index.ts` belongs to `agents`. */
export const groups: readonly Group[] = [
  ...Object.entries(files).reduce((found, [file, exported]) => {
    const name = /^[a-z]+/.exec(file)?.[0] ?? file;
    const definitions = Object.values<unknown>(exported).filter(isEvent);
    return found.set(name, [...(found.get(name) ?? []), ...definitions]);
  }, new Map<string, EventDefinition[]>()),
].map(([name, definitions]) => ({ name, definitions }));

export const readSamples = (name: string, from = folder): Samples => {
  const file = join(from, `${name}.json`);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
};

/** Every sample of the catalogue. */
export const goldenEvents = (): { readonly type: string; readonly version: number; readonly golden: Golden }[] =>
  readdirSync(folder).flatMap((file) =>
    Object.entries(readSamples(file.replace(/\.json$/, ''))).flatMap(([type, versions]) =>
      Object.entries(versions).map(([version, golden]) => ({ type, version: Number(version), golden })),
    ),
  );

// --- Samples ----------------------------------------------------------------------------------------------------------

type JsonSchema = Record<string, unknown> & { readonly properties?: Record<string, JsonSchema> };

/** Data of an event in which no two fields have the same value, so that swapped fields show; nothing is null or absent. */
export function sampleOf({ schema }: Pick<EventDefinition, 'schema'>): Data {
  // Different from all numbers in `META`.
  let next = 101;
  const drawn = new Map<string, number>();
  /** How often this was drawn. */
  const draw = (what: string) => {
    const count = drawn.get(what) ?? 0;
    drawn.set(what, count + 1);
    return count;
  };
  function number({ minimum, maximum, exclusiveMinimum }: JsonSchema): number {
    const low = (minimum as number | undefined) ?? ((exclusiveMinimum as number | undefined) ?? 0) + 1;
    const high = (maximum as number | undefined) ?? Number.POSITIVE_INFINITY;
    const value = next++;
    return value <= high ? Math.max(value, low) : low + (value % (high - low + 1));
  }
  function example(of: JsonSchema, path: string): unknown {
    const choices = (of.anyOf ?? of.oneOf) as JsonSchema[] | undefined;
    if (choices) return example(choices.find(({ type }) => type !== 'null') ?? { type: 'null' }, path);
    if (Array.isArray(of.enum)) return of.enum[draw(String(of.enum)) % of.enum.length];
    if ('const' in of) return of.const;
    const type = Array.isArray(of.type) ? of.type.find((one) => one !== 'null') : of.type;
    const inner = (key: string) => (path === '' ? key : `${path}.${key}`);
    switch (type) {
      case 'object': {
        const fields = Object.entries(of.properties ?? {});
        if (fields.length > 0) return Object.fromEntries(fields.map(([key, one]) => [key, example(one, inner(key))]));
        const values = of.additionalProperties as JsonSchema | undefined;
        return { [`${path}.key`]: typeof values === 'object' ? example(values, inner('key')) : path };
      }
      case 'array':
        // A tuple.
        if (Array.isArray(of.prefixItems))
          return of.prefixItems.map((one, at) => example(one as JsonSchema, inner(String(at))));
        return [example((of.items as JsonSchema | undefined) ?? { type: 'string' }, inner('0'))];
      case 'integer':
      case 'number':
        return number(of);
      case 'boolean':
        return draw('boolean') % 2 === 0;
      case 'null':
        return null;
      case 'string':
        return of.format === 'uuid' ? `00000000-0000-4000-8000-${String(next++).padStart(12, '0')}` : path;
      default:
        return { [`${path}.key`]: path };
    }
  }
  return schema.parse(example(z.toJSONSchema(schema, { unrepresentable: 'any' }) as JsonSchema, '')) as Data;
}

const META: Omit<Metadata, 'version'> = {
  number: 42,
  at: 1_750_000_000_123,
  tenant: 2,
  workspace: 5,
  actor: { type: 'user', id: 3, name: 'ada' },
  ip: '192.0.2.7',
  userAgent: 'golden/1',
  requestId: 'request',
  correlationId: 'correlation',
  causationId: 'causation',
};

function meaningOf(definition: EventDefinition, data: Data): Meaning {
  const { type, version } = definition;
  const id = '00000000-0000-4000-8000-000000000001';
  const event: DomainEvent = {
    id,
    type,
    data,
    meta: { version, ...META },
    stream: 'golden',
    revision: 0,
    position: 99,
  };
  const frames = framesOf(definition, event).map((frame) => ({ type: frame.type, role: frame.role, data: frame.data }));
  return JSON.parse(
    JSON.stringify({
      activity: activityOf(definition, event),
      audit: auditOf(definition, event),
      notification: notificationOf(definition, event),
      ...(frames.length > 0 && { frames }),
    }),
  );
}

// --- Checks -----------------------------------------------------------------------------------------------------------

/** Names in samples of older versions stay as they are where the actor is no user. */
export const ACTED = { actor: { type: 'api', id: 0, name: 'api' } } as const;

/** @throws Error when a version has no sample, cannot be read, or has another meaning than its sample says */
export function checkSamples(definition: EventDefinition, samples: Samples[string] = {}, steps?: Upcasters): void {
  for (let version = 1; version <= definition.version; version++) {
    const golden = samples[version];
    const name = `${definition.type} version ${version}`;
    if (!golden) throw new Error(`the sample of ${name} is missing: run the tests once with UPDATE_GOLDEN=1`);
    const data = definition.schema.parse(upcast(definition, golden.data, ACTED, version, steps));
    if (version === definition.version) expect(data, name).to.deep.equal(golden.data);
    expect(meaningOf(definition, data), name).to.deep.equal(golden.means);
  }
}

/** Whether this version of Signalbox was released, so that logs contain its events. */
const RELEASED = !JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
).version.startsWith('0.');

/** Writes the file of a group. @param frozen whether the data of samples must not change */
export function updateSamples({ name, definitions }: Group, to = folder, steps = upcasters, frozen = RELEASED): void {
  const before = readSamples(name, to);
  const after = definitions.map((definition) => {
    const known = before[definition.type] ?? {};
    const versions = Array.from({ length: definition.version }, (_, n) => n + 1).flatMap((version) => {
      const isNewest = version === definition.version;
      const data = isNewest && !(frozen && known[version]) ? sampleOf(definition) : known[version]?.data;
      if (!data) return [];
      const now = definition.schema.parse(upcast(definition, data, ACTED, version, steps));
      return [[version, { data, means: meaningOf(definition, now) }]];
    });
    return [definition.type, Object.fromEntries(versions)];
  });
  writeFileSync(join(to, `${name}.json`), `${compact({ ...(frozen && before), ...Object.fromEntries(after) })}\n`);
}

/** JSON in which what fits on a line of 120 characters stands on one. */
function compact(value: unknown, indent = '', before = 0): string {
  const line = JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ');
  if (typeof value !== 'object' || value === null || indent.length + before + line.length < 120) return line;
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const inner = `${indent}  `;
  const lines = Object.entries(value).map(([key, one]) => {
    const name = Array.isArray(value) ? '' : `${JSON.stringify(key)}: `;
    return `${inner}${name}${compact(one, inner, name.length)}`;
  });
  return `${open}\n${lines.join(',\n')}\n${indent}${close}`;
}
