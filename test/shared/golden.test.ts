/** The golden samples of all events (`test/support/golden.ts`), and the mechanism with a made-up event. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { z } from 'zod';
import { catalogue } from '../../shared/events/catalogue.ts';
import { defineEvent, type EventDefinition } from '../../shared/events/define.ts';
import { metadataSchema } from '../../shared/events/metadata.ts';
import type { Upcasters } from '../../shared/events/upcasters.ts';
import { checkSamples, goldenEvents, groups, readSamples, sampleOf, updateSamples } from '../support/golden.ts';

const golden = fileURLToPath(new URL('../../../test/golden/', import.meta.url));

describe('golden events', () => {
  before(() => {
    if (process.env.UPDATE_GOLDEN === '1') for (const group of groups) updateSamples(group);
  });

  for (const { name, definitions } of groups) {
    it(`${name}: every version can be read, and produces the same output`, () => {
      const samples = readSamples(name);
      for (const definition of definitions) checkSamples(definition, samples[definition.type]);
    });
  }

  it('are those of the catalogue, because a log may contain events of every type', () => {
    const types = groups.flatMap(({ definitions }) => definitions.map(({ type }) => type));
    expect(types).to.have.members([...catalogue.keys()]);
    expect([...new Set(goldenEvents().map(({ type }) => type))]).to.have.members(types);
    expect(readdirSync(join(golden, 'events'))).to.have.members(groups.map(({ name }) => `${name}.json`));
  });

  it('have no two equal numbers in an event, so that swapped fields show', () => {
    const leaves = (value: unknown): unknown[] =>
      typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : [value];
    for (const { type, golden: sample } of goldenEvents()) {
      const values = leaves(sample.data).filter((one) => typeof one === 'number');
      expect(new Set(values).size, `${type}: ${values}`).to.equal(values.length);
    }
  });

  it('metadata of every shape reads as it was written', () => {
    const shapes = JSON.parse(readFileSync(`${golden}metadata.json`, 'utf8')) as Readonly<Record<string, unknown>>;
    for (const [name, meta] of Object.entries(shapes)) expect(metadataSchema.parse(meta), name).to.deep.equal(meta);
    const all = new Set(Object.values(shapes).flatMap((meta) => Object.keys(meta as object)));
    expect([...all], 'fields').to.have.members(Object.keys(metadataSchema.shape));
  });

  it('audit data for admins is hidden from others, including addresses and names as typed', () => {
    for (const { type, golden: sample } of goldenEvents()) {
      const { activity, notification, frames = [] } = sample.means;
      const open = frames.filter(({ role }) => role !== 'admin');
      expect(JSON.stringify([activity, notification, open]), type).not.to.contain('192.0.2.7');
      for (const frame of open) expect(frame.type, type).not.to.match(/^(audit|security)\./);
      if (/^(SignInFailed|AccessRequested|AccessDenied|AgentAccessDenied|TenantAccessDenied|RateLimitHit)$/.test(type))
        expect([activity, notification, open], type).to.deep.equal([undefined, undefined, []]);
    }
  });

  it('personal fields may be null, as they are after an erasure', () => {
    for (const definition of catalogue.values()) {
      for (const field of definition.personal?.fields ?? []) {
        const erased = () => definition.schema.parse({ ...sampleOf(definition), [field]: null });
        expect(erased, `${definition.type}.${field}`).not.to.throw();
      }
    }
  });
});

describe('a new version of an event', () => {
  const folder = mkdtempSync(join(tmpdir(), 'golden-'));
  after(() => rmSync(folder, { recursive: true }));
  const moved = (version: number, fields: z.ZodRawShape, said: string) =>
    defineEvent({
      type: 'LampMoved',
      version,
      doc: 'test',
      schema: z.object({ lamp_id: z.int(), ...fields }) as unknown as EventDefinition['schema'],
      activity: ({ data }) => ({
        type: 'lamp_moved',
        entity_type: 'lamp',
        entity_id: data.lamp_id as number,
        description: `Moved lamp ${data.lamp_id} to ${data[said]}`,
      }),
    }) as unknown as EventDefinition;
  const first = moved(1, { place: z.string() }, 'place');
  const second = moved(2, { track: z.string(), side: z.enum(['left', 'right']) }, 'track');
  const steps: Upcasters = { LampMoved: { 1: ({ place, ...data }) => ({ ...data, track: place, side: 'right' }) } };
  const group = (definition: EventDefinition) => ({ name: 'lamps', definitions: [definition] });
  const samples = () => readSamples('lamps', folder).LampMoved;

  it('needs an upcaster and a sample of its own; the sample of the former version stays and reads as before', () => {
    updateSamples(group(first), folder, {}, true);
    const original = samples();
    checkSamples(first, original);
    expect(() => checkSamples(second, original)).to.throw('no upcaster for LampMoved from version 1 to 2');
    expect(() => checkSamples(second, original, steps)).to.throw('sample of LampMoved version 2 is missing');
    updateSamples(group(second), folder, steps, true);
    expect(samples()?.[1]).to.deep.equal(original?.[1]);
    expect(samples()?.[2]?.data).to.deep.equal({ lamp_id: 101, track: 'track', side: 'left' });
    checkSamples(second, samples(), steps);
  });

  it('is refused when it gives an event of the former version another meaning, or none', () => {
    const other: Upcasters = { LampMoved: { 1: (data) => ({ ...data, track: 'T', side: 'right' }) } };
    expect(() => checkSamples(second, samples(), other)).to.throw(/LampMoved version 1/);
    expect(() => checkSamples(second, samples(), { LampMoved: { 1: (data) => data } })).to.throw(z.ZodError);
  });

  it('is needed once the version was released: a changed schema does not rewrite a sample', () => {
    const changed = moved(2, { track: z.string(), angle: z.int() }, 'track');
    expect(() => updateSamples(group(changed), folder, steps, true)).to.throw(z.ZodError);
    expect(samples()?.[2]?.data).to.include({ side: 'left' });
    expect(() => checkSamples(changed, samples(), steps)).to.throw(z.ZodError);
  });
});
