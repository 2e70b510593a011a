/** Sums by buckets of time as of every position, compared with the rows that the projections had there. */
import { expect } from 'chai';
import { sql } from 'kysely';
import { agentAttributionProjection } from '../../projections/agents/attribution.ts';
import { MemoryTables } from '../../projections/apply.ts';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import { historyOf, schemaOf } from '../../projections/projection.ts';
import { auditEntriesPurged, recordsPurged } from '../../shared/events/admin/cleanup.ts';
import { agentHeartbeatReceived } from '../../shared/events/agents/heartbeat.ts';
import { agentSoulChanged } from '../../shared/events/agents/souls.ts';
import { taskCommented } from '../../shared/events/tasks/comments.ts';
import { DAY_MS, HOUR_MS } from '../../shared/time-buckets.ts';
import { sample } from '../support/kit.ts';
import { seeded } from '../support/random.ts';
import { readModels, type Told } from '../support/rows.ts';
import { runs } from '../support/runs.ts';

const BEGIN = Date.UTC(2026, 1, 26, 22, 58);
const EVENTS = runs(80, 130);
const { below, pick } = seeded(11);

const isPurge = (n: number): boolean => n % 20 === 19;

/** Mostly in order, some late by minutes or days, and now and then after weeks without any. */
function* moments(): Generator<number> {
  let now = BEGIN;
  for (let n = 0; n < EVENTS; n++) {
    now += n % 60 === 59 ? 40 * DAY_MS : below(n % 12 === 0 ? 3 * HOUR_MS : 4 * 60_000);
    yield n % 9 === 4 && !isPurge(n) ? now - below(pick([HOUR_MS, 3 * DAY_MS])) : now;
  }
}

const told: readonly Told[] = [...moments()].map((at, n): Told => {
  const name = pick(['ada', 'bob']);
  const agent = { agent_id: name === 'ada' ? 7 : 8, name };
  const meta = {
    at,
    workspace: pick([1, 1, 1, 2]),
    actor: { type: 'agent' as const, id: agent.agent_id, name: `agent:${name}` },
  };
  if (isPurge(n)) {
    // Also those of the current hour, which no retention would remove.
    const ids = Array.from({ length: 12 }, () => 1 + below(n));
    const counts = [{ type: 'comment_added', actor: 'ada', entity_type: 'task', count: 1 }];
    return [
      n % 40 === 19
        ? recordsPurged.draft({ table: 'activities', ids, counts, phrases: [] })
        : auditEntriesPurged.draft({ ids, counts: [] }),
      meta,
    ];
  }
  const comment = { task_id: 3, title: 'T', comment_id: n + 1, author: name, content: 'x' };
  return [
    pick([
      sample(agentHeartbeatReceived, { ...agent, last_activity: 'x' }),
      sample(taskCommented, comment),
      sample(agentSoulChanged, { ...agent, soul_content: 'calm' }),
    ]),
    meta,
  ];
});

const SUMS = [
  [activitiesProjection, 'activity_hours'],
  [agentAttributionProjection, 'action_counts'],
] as const;
const sorted = (rows: readonly object[]): string[] =>
  rows.map((row) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)))).sort();

describe('sums in open hours', function () {
  this.timeout(120_000);
  const models = readModels(SUMS.map(([projection]) => projection));

  it('are, as of every position, those of the events up to it', async () => {
    for (let n = 0; n < told.length; ) {
      const size = 1 + below(8);
      await models.tell(...told.slice(n, n + size));
      n += size;
    }
    const memory = new MemoryTables();
    for (const [n, event] of models.events().entries()) {
      for (const [projection, name] of SUMS) {
        memory.apply(projection, [event]);
        const table = projection.tables.find((one) => one.name === name) as object;
        const then = models.asOf(n + 1);
        // Rows that were removed since count for all callers.
        for (const reads of n % 5 === 0 ? [then, then.asOf(n + 1, undefined, false)] : [then]) {
          const from = `${reads.schema(projection)}.${name}`;
          const rows = await reads.db.selectFrom(from).selectAll().execute();
          expect(sorted(rows), `${name} at ${n + 1}`).to.deep.equal(sorted(memory.rows(table)));
        }
      }
    }
  });

  it('keep versions of few changes', async () => {
    const versions = async (schema: string, table: string) => {
      const { rows } = await sql<{ count: number }>`
        SELECT count(*)::int AS count FROM ${sql.table(`${schema}.${table}`)}`.execute(models.reads.db);
      return rows[0]?.count ?? 0;
    };
    for (const [projection, name] of SUMS) {
      const kept = await versions(historyOf(schemaOf(projection)), name);
      expect(kept, name).to.be.within(1, EVENTS / 2);
    }
  });
});
