/** What may be stored, and that whatever an event says, what it means can be written. */
import { expect } from 'chai';
import fc from 'fast-check';
import { MemoryTables } from '../../projections/apply.ts';
import { projections } from '../../projections/index.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { EventDefinition } from '../../shared/events/define.ts';
import { activityOf } from '../../shared/events/monitoring/activities.ts';
import { auditOf } from '../../shared/events/monitoring/audit.ts';
import { framesOf } from '../../shared/events/monitoring/frames.ts';
import { notificationOf } from '../../shared/events/monitoring/notifications.ts';
import { upcast } from '../../shared/events/upcasters.ts';
import { frontOf, storageProblem, VALUE_BOUNDS } from '../../shared/storable.ts';
import { ACTED, goldenEvents } from '../support/golden.ts';
import { eventsOf } from '../support/kit.ts';

const nested = (levels: number, leaf: unknown = []) =>
  JSON.parse(`${'{"a":'.repeat(levels - 1)}${JSON.stringify(leaf)}${'}'.repeat(levels - 1)}`);

describe('storable values', () => {
  it('count as many characters as their JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false, maxDepth: 6 }), (value) => {
        // Numbers with an exponent count as written out; NUL and half characters are no text for PostgreSQL.
        fc.pre(!/\de[+-]|\\u0000|\\ud[89a-f]/.test(JSON.stringify(value)));
        const { length } = JSON.stringify(value);
        expect(storageProblem(value, { depth: 10, characters: length })).to.equal(undefined);
        expect(storageProblem(value, { depth: 10, characters: length - 1 })).to.include({ kind: 'size' });
      }),
    );
  });

  it('count numbers as PostgreSQL writes them', () => {
    for (const [number, characters] of [
      [1e300, 301],
      [-1.5e-300, 304],
      [1e21, 22],
      [123, 3],
    ] as const) {
      expect(storageProblem([number], { depth: 1, characters: characters + 2 }), String(number)).to.equal(undefined);
      expect(storageProblem([number], { depth: 1, characters: characters - 2 }), String(number)).to.include({
        kind: 'size',
      });
    }
  });

  it('have a limited depth', () => {
    const { depth } = VALUE_BOUNDS;
    expect(storageProblem(nested(depth), VALUE_BOUNDS)).to.equal(undefined);
    for (const levels of [depth + 1, 5_000, 200_000]) {
      expect(storageProblem(nested(levels), VALUE_BOUNDS)).to.deep.equal({
        kind: 'depth',
        path: ['a', 'a', 'a', 'a', 'a', 'a', '…'],
        reason: 'must not be nested more than 64 levels deep',
      });
    }
  });

  it('contain only texts and keys that PostgreSQL can store', () => {
    for (const bad of ['\0', 'x\ud83d', '\ude00x']) {
      const problem = { kind: 'characters', path: ['list', '1'] };
      expect(storageProblem({ list: ['', bad] }, VALUE_BOUNDS)).to.deep.include(problem);
      expect(storageProblem({ list: ['', { [bad]: 1 }] }, VALUE_BOUNDS)).to.deep.include(problem);
      expect(storageProblem({ list: ['', bad] }, { ...VALUE_BOUNDS, anyText: true })).to.equal(undefined);
    }
    expect(storageProblem({ '😀': '😀' }, VALUE_BOUNDS)).to.equal(undefined);
  });

  it('are reported with a readable path if invalid', () => {
    const problem = storageProblem({ ['😀'.repeat(1_000)]: '\0' }, VALUE_BOUNDS);
    expect(problem?.path[0]).to.match(/^(😀){30}…$/u);
  });

  it('stay storable when truncated', () => {
    expect(frontOf('ab😀', 3)).to.equal('ab');
    expect(frontOf('ab😀', 4)).to.equal('ab😀');
    expect(frontOf('ab', 3)).to.equal('ab');
  });
});

describe('data derived from an event', () => {
  const ALL = { depth: 100, characters: 50_000_000 };

  /** `value` with every text replaced where the schema allows it: a cut anywhere hits the middle of a character. */
  function flooded(definition: EventDefinition, data: Readonly<Record<string, unknown>>, front: string) {
    const flood = `${front}${'😀'.repeat(2_000)}`;
    const replaced = (value: unknown): unknown => {
      if (typeof value === 'string') return flood;
      if (Array.isArray(value)) return value.map(replaced);
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, replaced(one)]));
    };
    let result = data;
    for (const [key, value] of Object.entries(data)) {
      const next = { ...result, [key]: replaced(value) };
      if (definition.schema.safeParse(next).success) result = next;
    }
    return result;
  }

  for (const { type, version, golden } of goldenEvents()) {
    it(`${type} version ${version}: can be stored, whatever texts it contains`, () => {
      const definition = catalogue.get(type) as EventDefinition;
      const data = upcast(definition, golden.data, ACTED, version);
      for (const front of ['', 'x']) {
        const events = eventsOf([{ type, data: flooded(definition, data, front) }]);
        for (const event of events) {
          const means = [activityOf, auditOf, notificationOf, framesOf].map((of) => of(definition, event));
          expect(storageProblem(means, ALL)).to.equal(undefined);
          for (const projection of projections) {
            const tables = new MemoryTables();
            tables.apply(projection, events);
            const rows = projection.tables.map((table) => tables.rows(table));
            expect(storageProblem(rows, ALL), projection.name).to.equal(undefined);
          }
        }
      }
    });
  }
});
