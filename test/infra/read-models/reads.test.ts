/** Reads of read models: each statement waits for those whose tables it was built with. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type CompiledQuery, sql } from 'kysely';
import type { AnyDatabase } from '../../../infra/database/database.ts';
import { createReads } from '../../../infra/read-models/reads.ts';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { projections } from '../../../projections/index.ts';
import { schemaOf } from '../../../projections/projection.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { tableOf, tables } from '../../../queries/reads.ts';
import type { ReadAt } from '../../../shared/ports/read-models.ts';
import { failureOf } from '../../support/kit.ts';
import { gate } from '../../support/memory-world.ts';

const [AGENTS, TASKS] = [schemaOf(agentsProjection), schemaOf(tasksProjection)];

function open() {
  const waits: { readonly schemas: readonly string[]; readonly at: ReadAt }[] = [];
  const statements: string[] = [];
  const state = { position: 7, losses: 0, later: Promise.resolve(), onRun: () => {} };
  const positions = {
    shown: () => state.position,
    reachSchemas(schemas: readonly string[], at: ReadAt) {
      waits.push({ schemas, at });
      return state.later.then(() => state.position);
    },
  };
  const db = {
    async executeQuery({ sql: text }: CompiledQuery) {
      statements.push(text);
      state.onRun();
      return { rows: [{ id: 1 }] };
    },
  } as unknown as AnyDatabase;
  /** What is missing before a statement about the past, and after it. */
  const missing: [object[], object[]] = [[], []];
  const database = {
    db,
    together: async () => [[], missing[0], [{ id: 1 }], missing[1]],
    atOneMoment: async () => [],
    get losses() {
      return state.losses;
    },
  };
  return {
    reads: createReads({ database, projections, positions }),
    waits,
    statements,
    state,
    missing,
  };
}

describe('read model reads', () => {
  it('wait for the read models of a statement’s tables before they take a connection', async () => {
    const { reads, waits, statements, state } = open();
    const shown = gate();
    state.later = shown.wait();
    const found = tables(reads, agentsProjection).selectFrom('agents').select('id').execute();
    await new Promise(setImmediate);
    expect([waits.map(({ schemas }) => schemas), statements]).to.deep.equal([[[AGENTS]], []]);
    shown.open();
    expect(await found).to.deep.equal([{ id: 1 }]);
    expect(statements).to.have.length(1);
  });

  it('find the tables of a statement anywhere in it, and never from its text', async () => {
    const { reads, waits } = open();
    const named = sql`'"agents_v1"."agents"'`;
    await sql`SELECT ${named} FROM (SELECT 1 WHERE EXISTS (SELECT FROM ${tableOf(reads, tasksProjection, 'task_counts')})) x
      JOIN ${tableOf(reads, agentsProjection, 'agents')} a ON true`.execute(reads.db);
    await tables(reads, tasksProjection)
      .with('own', (one) => one.selectFrom('tasks').selectAll())
      .selectFrom('own')
      .select(sql<string>`(SELECT name FROM ${tableOf(reads, agentsProjection, 'agents')})`.as('name'))
      .execute();
    await sql`SELECT ${AGENTS}, pg_database_size(current_database())`.execute(reads.db);
    expect(waits.map(({ schemas }) => [...schemas].toSorted())).to.deep.equal([
      [AGENTS, TASKS],
      [AGENTS, TASKS],
    ]);
  });

  it('take place at the head or at a given position, and report the position', async () => {
    const { reads, waits, state } = open();
    const before = performance.now();
    const read = (at = reads) => tables(at, agentsProjection).selectFrom('agents').select('id').execute();
    await read();
    expect(waits[0]?.at.since).to.be.at.least(before);
    const at = { position: 3 };
    const there = reads.at(at);
    expect(there.position).to.equal(undefined);
    await read(there);
    expect(waits[1]?.at).to.equal(at);
    state.position = 5;
    await read(there);
    expect(there.position, 'the least of its statements').to.equal(5);
    expect(reads.position).to.equal(7);
  });

  it('are repeated if the database has lost rows meanwhile', async () => {
    const { reads, waits, statements, state } = open();
    state.onRun = () => {
      if (state.losses < 2) state.losses++;
    };
    await tables(reads, agentsProjection).selectFrom('agents').select('id').execute();
    expect([waits.length, statements.length]).to.deep.equal([3, 3]);
  });

  it('have no transactions: a statement of one would wait with a connection', async () => {
    const { reads, statements } = open();
    const transaction = reads.db
      .transaction()
      .execute((trx) => trx.selectFrom(`${AGENTS}.agents`).selectAll().execute());
    expect(await failureOf(transaction)).to.equal(
      'only single statements can be run here: no transactions, no streamed results',
    );
    expect(statements).to.deep.equal([]);
  });
});

describe('reads of the past', () => {
  it('are rejected if versions that they need were removed before or meanwhile', async () => {
    const { reads, missing } = open();
    const read = () => tables(reads.asOf(5), agentsProjection).selectFrom('agents').select('id').execute();
    expect(await read()).to.deep.equal([{ id: 1 }]);
    for (const when of [0, 1]) {
      missing[when] = [{ schema: AGENTS, from: 6 }];
      expect(await failureOf(read())).to.match(
        /^as_of: the past of agents goes back to position 6 only, and position 5 is before that/,
      );
      missing[when] = [];
    }
  });
});

describe('queries', () => {
  it('access tables only through reads, so that no read skips the wait', () => {
    const found: string[] = [];
    for (const entry of readdirSync('queries', { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !entry.name.endsWith('.ts')) continue;
      const path = `${entry.parentPath}/${entry.name}`;
      const text = readFileSync(path, 'utf8');
      if (path !== 'queries/reads.ts' && /\.schema\(|schemaOf|sql\.table\(`|withSchema|_v\d+["'.`]/.test(text))
        found.push(path);
    }
    expect(found).to.deep.equal([]);
  });
});
