/** Given, when, then: drafts become events; events become the state of a decider or the rows of a projection. */

import { expect } from 'chai';
import { z } from 'zod';
import type { Decider } from '../../commands/decider.ts';
import type { Room } from '../../commands/limits.ts';
import { type AnyStoredRow, MemoryTables } from '../../projections/apply.ts';
import type { Projection, Row, Table } from '../../projections/projection.ts';
import { AppError } from '../../shared/errors.ts';
import { agentRegistered } from '../../shared/events/agents/registration.ts';
import type { DomainEvent, EventDraft } from '../../shared/events/define.ts';
import type { FrameNames } from '../../shared/events/monitoring/frames.ts';

export type Draft = EventDraft<string, object>;

type Registered = Parameters<typeof agentRegistered.draft>[0];

/** Takes any number of records. */
export const anyRoom: Room = (_, create) => create();

/** Null, false, 0 or an empty list, whichever the schema takes first; of an object, this for each of its fields. */
function emptyOf(schema: z.ZodType): unknown {
  if (schema instanceof z.ZodObject) return withEmpty(schema, {});
  if (schema instanceof z.ZodRecord) return {};
  return [null, false, 0, []].find((value) => schema.safeParse(value).success);
}

const withEmpty = (schema: z.ZodObject, fields: object): object => ({
  ...Object.fromEntries(
    Object.entries(schema.shape)
      .filter(([, one]) => !one.safeParse(undefined).success)
      .map(([name, one]) => [name, emptyOf(one)]),
  ),
  ...fields,
});

/** An event with the fields that matter to a test; those that may be empty are, see `emptyOf`. */
export const sample = <Type extends string, Data extends object>(
  definition: { readonly schema: z.ZodType<Data>; draft(data: Data): EventDraft<Type, Data> },
  fields: Partial<Data>,
): EventDraft<Type, Data> =>
  definition.draft(definition.schema.parse(withEmpty(definition.schema as unknown as z.ZodObject, fields)));

/** An agent like any other, made by an operator. */
export const registeredAgent = (data: Pick<Registered, 'agent_id' | 'name'> & Partial<Registered>) =>
  sample(agentRegistered, { role: 'tester', status: 'offline', source: 'manual', via: 'operator', ...data });

/** Unix milliseconds of the n-th event, counted from 1: a second passes with each. */
export const timeOf = (n: number): number => 1_700_000_000_000 + n * 1_000;

/** Events as a projection gets them: number and position count from 1. `meta` replaces fields of every event. */
export const eventsOf = (drafts: readonly Draft[], meta: Partial<DomainEvent['meta']> = {}): DomainEvent[] =>
  drafts.map(({ type, data }, index) => ({
    id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    type,
    data: data as DomainEvent['data'],
    meta: {
      version: 1,
      number: index + 1,
      at: timeOf(index + 1),
      tenant: 1,
      workspace: 1,
      actor: { type: 'user', id: 1, name: 'admin' },
      ip: null,
      userAgent: null,
      requestId: null,
      correlationId: 'c',
      causationId: null,
      ...meta,
    },
    stream: 's',
    revision: index,
    position: index + 1,
  }));

/** The state that a decider has after these events. */
export const stateAfter = <State>(decider: Decider<State>, ...drafts: readonly Draft[]): State =>
  eventsOf(drafts).reduce(
    (state, event) => decider.evolve(state, { ...event, at: event.meta.at, by: event.meta.actor }),
    decider.initial,
  );

export interface Given<State> {
  /** The state after the events. */
  readonly state: State;
  when<Args extends readonly unknown[]>(
    decide: (state: State, ...args: Args) => unknown,
    ...args: NoInfer<Args>
  ): {
    /** Expects exactly these events; none without arguments. */
    then(...events: readonly Draft[]): void;
    /** @param expected status of the HTTP response, or the error's code */
    thenRefuses(expected: number | string): void;
  };
}

/**
 * Tests of decisions: `given(...events).when(decide, ...arguments).then(...events)`, or `.thenRefuses(status)`. Nothing is
 * decided before `then` or `thenRefuses` is called. @param before precedes the events of each test
 */
export const givenFor =
  <State>(decider: Decider<State>, ...before: readonly Draft[]) =>
  (...events: readonly Draft[]): Given<State> => {
    const state = stateAfter(decider, ...before, ...events);
    return {
      state,
      when: (decide, ...args) => ({
        // biome-ignore lint/suspicious/noThenProperty: nobody awaits it.
        then: (...drafts) => expect(decide(state, ...args)).to.deep.equal(drafts),
        thenRefuses: (expected) => {
          const { status, extras } = refusalOf(() => decide(state, ...args));
          expect(typeof expected === 'number' ? status : extras.code).to.equal(expected);
        },
      }),
    };
  };

// biome-ignore lint/suspicious/noExplicitAny: any table; its columns are inferred where it is used.
type AnyTable = Table<any>;

/** The rows of every table after these events; applying the events once more must change nothing. */
export function rowsAfter<T extends AnyTable>(
  projection: Projection<T>,
  events: readonly DomainEvent[],
): { [K in T as K['name']]: readonly Row<K>[] } {
  for (const event of events) {
    for (const { table, key } of projection.project(event))
      expect(Object.keys(key), `the key of a row of ${table.name}`).to.have.members(table.key);
  }
  const tables = new MemoryTables();
  const rows = () =>
    Object.fromEntries(
      projection.tables.map((table): [string, readonly AnyStoredRow[]] => [table.name, tables.rows(table)]),
    );
  tables.apply(projection, events);
  const once = rows();
  tables.apply(projection, events);
  expect(rows(), 'the same events again change nothing').to.deep.equal(once);
  return once as unknown as { [K in T as K['name']]: readonly Row<K>[] };
}

/** How a command ended: `done`, or the code of its refusal, else its status. */
export const outcomeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error) => {
      if (error instanceof AppError) return String(error.extras.code ?? error.status);
      throw error;
    },
  );

/** The message with which the work fails. */
export const failureOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => expect.fail('it did not fail'),
    (error: Error) => error.message,
  );

/** The refusal of a command. */
export const refusalFrom = (work: Promise<unknown>): Promise<AppError> =>
  work.then(
    () => expect.fail('it was not refused'),
    (error) => {
      if (error instanceof AppError) return error;
      throw error;
    },
  );

/** The message of the error with which work fails; `done` if it succeeds. */
export const outcomeText = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: Error) => error.message,
  );

/** Shows every user by the username, and every project by its id. */
export const NAMES: FrameNames = {
  people: { of: async () => (name) => name },
  projects: { at: async () => async (id) => ({ name: `Project ${id}`, prefix: `P${id}` }) },
};

/** The refusal of a decision. @throws Error when it was none */
export function refusalOf(decide: () => unknown): AppError {
  try {
    decide();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('the decision was not refused');
}
