/**
 * A golden file of every event shape ever written: `test/golden/events/<Type>.v<version>.json`, with an example and
 * what it means today (activity, audit entry, notification, frames).
 *
 * Files are never changed, only added: UPDATE_GOLDEN=1 writes those that are missing. When the meaning of an old
 * event changes on purpose, raise the version of the projections it concerns and rewrite its `means` by hand.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { z } from 'zod';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent, EventDefinition } from '../../shared/events/define.ts';
import { metadataSchema } from '../../shared/events/metadata.ts';
import { activityOf } from '../../shared/events/monitoring/activities.ts';
import { auditOf } from '../../shared/events/monitoring/audit.ts';
import { framesOf } from '../../shared/events/monitoring/frames.ts';
import { notificationOf } from '../../shared/events/monitoring/notifications.ts';
import { upcast } from '../../shared/events/upcasters.ts';

// Compiled tests run from dist/; the golden files stay with the sources.
const folder = fileURLToPath(new URL('../../../test/golden/events/', import.meta.url));

type JsonSchema = Record<string, unknown> & { readonly properties?: Record<string, JsonSchema> };

/** An example of a JSON schema: one of everything, nullable things present. */
function example(schema: JsonSchema, name: string): unknown {
  const choices = (schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined;
  if (choices) return example(choices.find((choice) => choice.type !== 'null') ?? { type: 'null' }, name);
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if ('const' in schema) return schema.const;
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== 'null') : schema.type;
  switch (type) {
    case 'object':
      if (!schema.properties) return { key: 'value' };
      return Object.fromEntries(Object.entries(schema.properties).map(([key, one]) => [key, example(one, key)]));
    case 'array':
      return [example((schema.items as JsonSchema | undefined) ?? { type: 'string' }, name)];
    case 'integer':
    case 'number':
      return 7;
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'string':
      return schema.format === 'uuid' ? '00000000-0000-4000-8000-000000000007' : name;
    default:
      return { key: 'value' };
  }
}

function eventOf(definition: EventDefinition, data: Readonly<Record<string, unknown>>): DomainEvent {
  return {
    id: '00000000-0000-4000-8000-000000000001',
    type: definition.type,
    data,
    meta: {
      version: definition.version,
      number: 42,
      at: 1_750_000_000_123,
      tenant: 1,
      workspace: 1,
      actor: { type: 'user', id: 3, name: 'ada' },
      ip: '192.0.2.7',
      userAgent: 'golden/1',
      requestId: 'request',
      correlationId: 'request',
      causationId: 'request',
    },
    stream: 'golden',
    revision: 0,
    position: 99,
  };
}

const meaningOf = (definition: EventDefinition, event: DomainEvent) =>
  JSON.parse(
    JSON.stringify({
      activity: activityOf(definition, event) ?? null,
      audit: auditOf(definition, event) ?? null,
      notification: notificationOf(definition, event) ?? null,
      frames: framesOf(definition, event).map(({ type, data, role }) => ({ type, role, data })),
    }),
  );

/** Names in older versions of events stay as they are where their actor is no user; for users, see `upcasters.test.ts`. */
const ACTED = { actor: { type: 'api', id: 0, name: 'api' } } as const;

describe('golden events', () => {
  for (const definition of catalogue.values()) {
    it(`${definition.type}: every version has its file`, () => {
      for (let version = 1; version <= definition.version; version++) {
        const file = `${folder}${definition.type}.v${version}.json`;
        if (!existsSync(file) && process.env.UPDATE_GOLDEN === '1' && version === definition.version) {
          const data = example(
            z.toJSONSchema(definition.schema, { unrepresentable: 'any' }) as JsonSchema,
            definition.type,
          );
          const parsed = definition.schema.parse(data);
          const text = {
            type: definition.type,
            version,
            data: parsed,
            means: meaningOf(definition, eventOf(definition, parsed)),
          };
          writeFileSync(file, `${JSON.stringify(text, null, 2)}\n`);
        }
        expect(existsSync(file), `${file} is missing: run the tests once with UPDATE_GOLDEN=1`).to.equal(true);
      }
    });
  }

  for (const file of existsSync(folder) ? readdirSync(folder) : []) {
    it(`${file}: can be read, and produces the same output`, () => {
      const golden = JSON.parse(readFileSync(folder + file, 'utf8'));
      const definition = catalogue.get(golden.type);
      if (!definition) throw new Error(`${golden.type} has left the catalogue; events of it may be in a log`);
      const data = definition.schema.parse(upcast(definition, golden.data, ACTED, golden.version));
      if (golden.version === definition.version) expect(data).to.deep.equal(golden.data);
      expect(meaningOf(definition, eventOf(definition, data))).to.deep.equal(golden.means);
    });
  }

  it('metadata of every shape reads as it was written', () => {
    const shapes = JSON.parse(readFileSync(`${folder}../metadata.json`, 'utf8')) as Readonly<Record<string, unknown>>;
    for (const [name, meta] of Object.entries(shapes)) expect(metadataSchema.parse(meta), name).to.deep.equal(meta);
    const all = new Set(Object.values(shapes).flatMap((meta) => Object.keys(meta as object)));
    expect([...all], 'fields').to.have.members(Object.keys(metadataSchema.shape));
  });

  it('audit data for admins is hidden from others, including addresses and names as typed', () => {
    for (const file of readdirSync(folder)) {
      const { type, means } = JSON.parse(readFileSync(folder + file, 'utf8'));
      const open = means.frames.filter((frame: { role?: string }) => frame.role !== 'admin');
      expect(JSON.stringify([means.activity, means.notification, open]), type).not.to.contain('192.0.2.7');
      for (const frame of open) expect(frame.type, type).not.to.match(/^(audit|security)\./);
      if (
        /^(SignInFailed|AccessRequested|AccessDenied|AgentAccessDenied|TenantAccessDenied|RateLimitHit)$/.test(type)
      ) {
        expect([means.activity, means.notification, open], type).to.deep.equal([null, null, []]);
      }
    }
  });

  it('personal fields may be null, as they are after an erasure', () => {
    for (const definition of catalogue.values()) {
      for (const field of definition.personal?.fields ?? []) {
        const data = example(
          z.toJSONSchema(definition.schema, { unrepresentable: 'any' }) as JsonSchema,
          definition.type,
        );
        expect(
          () => definition.schema.parse({ ...(data as object), [field]: null }),
          `${definition.type}.${field}`,
        ).not.to.throw();
      }
    }
  });
});
