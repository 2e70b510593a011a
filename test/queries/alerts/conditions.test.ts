/** Conditions in the database give the same answers as the plain evaluation in memory. */
import { expect } from 'chai';
import fc from 'fast-check';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { leasesProjection } from '../../../projections/agents/leases.ts';
import { activitiesProjection } from '../../../projections/monitoring/activities.ts';
import { type Projection, schemaOf } from '../../../projections/projection.ts';
import { sessionsProjection } from '../../../projections/sessions.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { conditionMet, matchingRecords, unchangedSince } from '../../../queries/alerts/conditions.ts';
import {
  ACTIVITY_WINDOW,
  type Condition,
  ENTITY_TYPES,
  type EntityType,
  FIELDS,
  fieldOf,
  OPERATORS,
  problemOf,
  reportsOnce,
  type Seen,
  spanOf,
} from '../../../shared/contract/alerts/conditions.ts';
import { allTasks } from '../../../shared/identity.ts';
import { evaluate } from '../../support/alerts.ts';
import { readModels } from '../../support/rows.ts';
import { runs } from '../../support/runs.ts';

const NOW = 1_700_000_000;
const WORKSPACE = 5;

type Record_ = Readonly<Record<string, string | number | boolean | null>>;

/** Few values, so that many conditions meet some of them: texts, numbers in texts, cases, blanks. */
const TEXTS = [
  '',
  'idle',
  'Idle',
  'offline',
  'error',
  '7',
  '-2.5',
  '%',
  'a=b',
  'ädler',
  '12345678901234567890',
  'A\u0308DLER',
  'İ',
  'i\u0307',
  '(i)*',
];
const text = fc.constantFrom(...TEXTS);
const time = fc.constantFrom(NOW - 7_200, NOW - 3_600, NOW - 3_599, NOW - 600, NOW - 60, NOW);
const integer = fc.constantFrom(0, 7, 1_500, 2 ** 40);
const orNull = <T>(some: fc.Arbitrary<T>) => fc.option(some, { nil: null });

const RECORDS: Readonly<Record<EntityType, fc.Arbitrary<Record_>>> = {
  agent: fc.record({
    status: text,
    role: text,
    name: text,
    last_seen: orNull(time),
    last_activity: orNull(text),
    created_at: time,
    updated_at: time,
  }),
  task: fc.record({
    status: text,
    priority: text,
    assigned_to: orNull(text),
    title: text,
    outcome: orNull(text),
    project_id: integer,
    due_date: orNull(time),
    completed_at: orNull(time),
    created_at: time,
    updated_at: time,
  }),
  session: fc.record({
    session_id: text,
    agent_name: orNull(text),
    project_slug: text,
    model: orNull(text),
    input_tokens: integer,
    output_tokens: integer,
    estimated_cost: fc.constantFrom(0, 0.1, 7, 1e-9, 2.5),
    created_at: time,
    updated_at: time,
    terminated: fc.boolean(),
  }),
  activity: fc.record({
    type: text,
    actor: text,
    entity_type: text,
    entity_id: integer,
    description: text,
    created_at: time,
  }),
};

/** A table with its name and the columns that are written to it. */
function stored(projection: Projection, name: string) {
  const table = projection.tables.find((one) => one.name === name);
  if (!table) throw new Error(`no table ${name}`);
  return { table: `${schemaOf(projection)}.${name}`, columns: [...Object.keys(table.columns), 'position'].join(', ') };
}

const TABLES = {
  agent: stored(agentsProjection, 'agents'),
  task: stored(tasksProjection, 'tasks'),
  session: stored(sessionsProjection, 'cli_sessions'),
  activity: stored(activitiesProjection, 'activities'),
};

/** What the tables have besides what conditions look at. */
const REST: Readonly<Record<EntityType, string>> = {
  agent: `'tenant_id', 1, 'alive_at', 0, 'source', 'manual', 'hidden', 0`,
  task: `'priority_rank', 0, 'project_ticket_no', 1, 'created_by', 'x', 'retry_count', 0, 'tags', '[]'::jsonb,
    'metadata', '{}'::jsonb, 'dispatch_attempts', 0`,
  session: `'user_messages', 0, 'assistant_messages', 0, 'tool_uses', 0, 'settings', '{}'::jsonb`,
  activity: `'data', '{}'::jsonb`,
};

const VALUES = fc.oneof(
  text.filter((value) => value !== ''),
  fc.constantFrom('0', '1', '2', '3', '10', '59', '60', '1e3', '-2', String(NOW - 600), String(NOW - 600.5)),
);

const conditions: fc.Arbitrary<Condition> = fc
  .constantFrom(...ENTITY_TYPES)
  .chain((entity_type) =>
    fc.record({
      entity_type: fc.constant(entity_type),
      condition_field: fc
        .tuple(fc.constantFrom(...Object.keys(FIELDS[entity_type])), fc.option(text, { nil: undefined }))
        .map(([field, wanted]) => (wanted === undefined ? field : `${field}=${wanted}`)),
      condition_operator: fc.constantFrom(...OPERATORS),
      condition_value: VALUES,
    }),
  )
  .filter((condition) => problemOf(condition) === undefined);

const seenOf =
  (condition: Condition) =>
  (record: Record_): Seen => ({
    value: (record[fieldOf(condition).field] ?? null) as Seen['value'],
    live: record.status !== 'offline' || condition.entity_type !== 'agent' ? record.terminated !== true : false,
    at: condition.entity_type === 'activity' ? Number(record.created_at) : 0,
  });

describe('queries: alert rule conditions', function () {
  this.timeout(60_000);
  const models = readModels([
    leasesProjection,
    agentsProjection,
    tasksProjection,
    sessionsProjection,
    activitiesProjection,
  ]);

  /** Puts records in place of those that are there; another workspace has one that matches nearly everything. */
  async function store(entity: EntityType, records: readonly Record_[]): Promise<void> {
    const { table, columns } = TABLES[entity];
    const rows = records.map(({ updated_at, ...record }, at) => ({
      ...record,
      ...(updated_at !== undefined &&
        (entity === 'session' ? { reported_at: updated_at, updated_at: 1 } : { updated_at })),
      ...(entity === 'session' && { session_id: record.session_id === '' ? '' : String(record.session_id) }),
      ...{ workspace_id: WORKSPACE, id: at + 1, position: at + 1 },
    }));
    await models.query(`DELETE FROM ${table}`);
    await models.query(
      `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM jsonb_populate_recordset(NULL::${table},
         (SELECT coalesce(jsonb_agg(jsonb_build_object(${REST[entity]}) || one), '[]') FROM jsonb_array_elements($1::jsonb) one))`,
      [JSON.stringify(rows)],
    );
  }

  it('match as in memory, for every entity, field, operator and value', async () => {
    await fc.assert(
      fc.asyncProperty(
        conditions.chain((condition) =>
          fc.tuple(
            fc.constant(condition),
            fc.uniqueArray(RECORDS[condition.entity_type], {
              maxLength: 4,
              // The key of sessions.
              selector: (record) => record.session_id ?? Symbol('any'),
            }),
            fc.constantFrom(0, 1, 3),
          ),
        ),
        async ([condition, records, reportedTo]) => {
          await store(condition.entity_type, records);
          const seen = records.map(seenOf(condition));
          // Positions are 1, 2, 3.
          const first = reportsOnce(condition) ? reportedTo : 0;
          const expected = evaluate(condition, seen.slice(first), NOW);
          const asked = { workspace: WORKSPACE, condition, now: NOW, reportedTo };
          const found = await conditionMet(models.reads, asked);
          expect(found, JSON.stringify({ condition, records })).to.equal(expected);
          // Nothing of it is seen from another workspace.
          const none = await conditionMet(models.reads, { ...asked, workspace: WORKSPACE + 1 });
          expect(none).to.equal(evaluate(condition, [], NOW));
          // The same records are named, by id, without those that are quiet.
          const since = condition.entity_type === 'activity' ? NOW - ACTIVITY_WINDOW : Number.NEGATIVE_INFINITY;
          const matching = seen.flatMap((one, at) => {
            const span = spanOf(condition, one);
            return at >= first && one.at > since && span && span.after < NOW && NOW < span.before ? at + 1 : [];
          });
          const quiet = matching.slice(0, 1);
          for (const ids of [[], quiet]) {
            const named = await matchingRecords(models.reads, { ...asked, quiet: ids }, allTasks(WORKSPACE), 2);
            const expectedIds = matching.filter((id) => !ids.includes(id));
            expect(named.records.map(({ id }) => id)).to.deep.equal(expectedIds);
            expect(named).to.deep.include({ total: expectedIds.length, more: 0, ids: expectedIds.slice(0, 2) });
            const newest = condition.entity_type === 'activity' ? (expectedIds.at(-1) ?? null) : null;
            expect(named.reported_to).to.equal(newest);
          }
        },
      ),
      { numRuns: runs(100, 400) },
    );
  });

  it('on the age of last_seen include the agent that went silent and was set offline', async () => {
    const silent = { status: 'offline', role: 'coder', name: 'ann', last_seen: NOW - 7_200, last_activity: null };
    await store('agent', [{ ...silent, created_at: NOW - 7_200, updated_at: NOW }]);
    const condition: Condition = {
      entity_type: 'agent',
      condition_field: 'last_seen',
      condition_operator: 'age_minutes_above',
      condition_value: '60',
    };
    const asked = { workspace: WORKSPACE, condition, now: NOW, reportedTo: 0 };
    expect(await conditionMet(models.reads, asked)).to.equal(true);
    const later = { ...asked, condition: { ...condition, condition_value: '120' } };
    expect(await conditionMet(models.reads, later)).to.equal(false);
  });

  it('handle records unchanged since a position as in memory', async () => {
    await fc.assert(
      fc.asyncProperty(
        conditions
          .filter(
            ({ entity_type, condition_operator }) =>
              entity_type !== 'activity' && condition_operator !== 'age_minutes_above',
          )
          .chain((condition) =>
            fc.tuple(
              fc.constant(condition),
              fc.uniqueArray(RECORDS[condition.entity_type], {
                maxLength: 4,
                selector: (record) => record.session_id ?? Symbol('any'),
              }),
            ),
          ),
        fc.integer({ min: 0, max: 4 }),
        async ([condition, records], position) => {
          await store(condition.entity_type, records);
          const { matching } = await unchangedSince(models.reads, WORKSPACE, condition, position, 100);
          const seen = records.slice(0, position).map(seenOf(condition));
          expect(matching).to.equal(seen.filter((one) => spanOf(condition, one)).length);
        },
      ),
      { numRuns: runs(30, 100) },
    );
  });
});
