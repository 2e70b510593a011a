/** Read models filled by events through the real projections, for tests of queries. */
import { applyBatch } from '../../infra/read-models/batch.ts';
import { BatchWriter } from '../../infra/read-models/batch-writer.ts';
import { createReads } from '../../infra/read-models/reads.ts';
import { RowCaches } from '../../infra/read-models/row-cache.ts';
import { type Projection, schemaOf } from '../../projections/projection.ts';
import type { Reads } from '../../queries/reads.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { fixture } from './fixture.ts';
import { type Draft, eventsOf, registeredAgent, timeOf } from './kit.ts';
import { databaseWithTables } from './world.ts';

/** Reads of tables that need no wait. */
const liveReads = (db: Reads['db']): Reads => {
  const reads: Reads = {
    db,
    schema: schemaOf,
    position: undefined,
    isExact: true,
    at: () => reads,
    response: () => reads,
    asOf: () => {
      throw new Error('these reads have no past');
    },
  };
  return reads;
};

/** Positions of read models that are never behind. */
const CURRENT = { reachSchemas: async () => Number.MAX_SAFE_INTEGER, shown: () => Number.MAX_SAFE_INTEGER };

/** One event and what its metadata has besides what `eventsOf` gives all. */
export type Told = Draft | readonly [Draft, Partial<DomainEvent['meta']>];

/** An agent that is idle and has nothing, unless `more` says otherwise. */
export const agentRegisteredAs = (agentId: number, name: string, more: object = {}) =>
  registeredAgent({ agent_id: agentId, name, role: 'coder', status: 'idle', ...more });

/** Unix seconds of the n-th applied event, counted from 1. */
export const secondsOf = (n: number): number => timeOf(n) / 1_000;

export interface ReadModels {
  readonly reads: Reads;
  /** Reads as of the n-th applied event, counted from 1. */
  asOf(n: number): Reads;
  /** Adds what happened next. */
  tell(...told: readonly Told[]): Promise<void>;
  /** All applied events. */
  events(): readonly DomainEvent[];
  /** For rows that no event makes yet. */
  query(text: string, values?: readonly unknown[]): Promise<void>;
  close(): Promise<void>;
}

export async function openReadModels(projections: readonly Projection[]): Promise<ReadModels> {
  const { database, close } = await databaseWithTables(projections);
  // As a projector does when it starts.
  await database.pool.query('UPDATE service.checkpoints SET history_from = position, history_to = position');
  const writer = new BatchWriter(database.db);
  const earlier: Told[] = [];
  const all: DomainEvent[] = [];
  const rows = new RowCaches();
  return {
    reads: liveReads(database.db),
    asOf: (n) => createReads({ database, projections, positions: CURRENT }).asOf(n),
    async tell(...told) {
      const from = earlier.length;
      earlier.push(...told);
      const drafts = earlier.map((one): Draft => (Array.isArray(one) ? one[0] : (one as Draft)));
      const events = eventsOf(drafts).flatMap((event, at) => {
        const one = earlier[at];
        return at < from ? [] : [{ ...event, meta: { ...event.meta, ...(Array.isArray(one) && one[1]) } }];
      });
      all.push(...events);
      for (const projection of projections) {
        const mine = events.filter(({ type }) => projection.handles.has(type));
        const move = { schema: schemaOf(projection), generation: 1, from, to: earlier.length, at: 1, notify: false };
        await applyBatch(writer, projection, mine, move, rows.of(move.schema));
      }
    },
    events: () => all,
    async query(text, values = []) {
      await database.pool.query(text, [...values]);
    },
    close,
  };
}

/** Read models of a suite, filled by these events before its tests. */
export const readModels = (projections: readonly Projection[], told: () => readonly Told[] = () => []): ReadModels =>
  fixture(async () => {
    const models = await openReadModels(projections);
    await models.tell(...told());
    return models;
  });
