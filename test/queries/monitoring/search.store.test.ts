/** How searches find things in 100,000 rows, and that without the index they find the same. */
import { expect } from 'chai';
import { type CompiledQuery, Kysely, PostgresDialect, sql } from 'kysely';
import { ensureTables } from '../../../infra/read-models/projector.ts';
import { addIndexes, addKey, createBareTables, unindexedTexts } from '../../../infra/read-models/tables.ts';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { chatProjection } from '../../../projections/chat.ts';
import { activitiesProjection } from '../../../projections/monitoring/activities.ts';
import { searchProjection } from '../../../projections/monitoring/search.ts';
import { schemaOf } from '../../../projections/projection.ts';
import { searchRecords } from '../../../queries/monitoring/search.ts';
import type { DisplayNames } from '../../../queries/names.ts';
import type { Reads } from '../../../queries/reads.ts';
import { searchQuery } from '../../../shared/contract/monitoring/search.ts';
import { allTasks } from '../../../shared/identity.ts';
import { fixture } from '../../support/fixture.ts';
import { testDatabase } from '../../support/world.ts';

const WORKSPACE = 4;
const SCHEMA = 'search_many';
const NAMES: DisplayNames = { of: async () => (name) => name, usernameOf: async (_workspace, shown) => shown };
const DOCUMENTS = 30_000;
const USES = 70_000;
/** Documents that say something besides; the others are about furniture. */
const SPECIAL: Readonly<Record<number, string>> = {
  70: 'with 50% güte_x',
  72: 'with 500 guete-x',
  [DOCUMENTS - 12_000]: 'long ago: kz',
  [DOCUMENTS - 30]: 'just now: kz',
};

describe('full-text search', function () {
  this.timeout(120_000);
  const statements: CompiledQuery[] = [];
  let reads: Reads;

  const place = fixture(testDatabase);
  before(async () => {
    const { db, pool } = place.database;
    await ensureTables(place.database, [searchProjection, agentsProjection, chatProjection, activitiesProjection]);
    await createBareTables(db, searchProjection, SCHEMA);
    const into = (table: string) => sql.table(`${SCHEMA}.${table}`);
    // Half of them are messages.
    await sql`INSERT INTO ${into('documents')} (workspace_id, type, id, text, created_at, position)
      SELECT ${WORKSPACE}, CASE n % 2 WHEN 0 THEN 'message' ELSE 'activity' END, n,
        'mend the ' || (ARRAY['roof', 'door', 'wall', 'stairs', 'window', 'lamp', 'table'])[1 + n % 7] || ' in room ' || n,
        n, n FROM generate_series(1, ${DOCUMENTS}) n`.execute(db);
    for (const [id, text] of Object.entries(SPECIAL)) {
      await sql`UPDATE ${into('documents')} SET text = text || ' ' || ${text}::text WHERE id = ${Number(id)}`.execute(
        db,
      );
      await sql`INSERT INTO ${sql.table(`${schemaOf(chatProjection)}.messages`)} (workspace_id, id, conversation, from_agent,
          to_agent, to_agent_id, content, message_type, metadata, read_at, created_at, position)
        VALUES (${WORKSPACE}, ${Number(id)}, 'c', 'ada', 'bob', 1, ${text}, 'text', NULL, NULL, ${Number(id)}, ${Number(id)})`.execute(
        db,
      );
    }
    // One of the routine texts has not been said for long.
    await sql`INSERT INTO ${into('phrases')} (workspace_id, phrase, text, position)
      SELECT ${WORKSPACE}, n, 'heartbeat of agent-' || n || ': nothing to do', n FROM generate_series(0, 49) n`.execute(
      db,
    );
    await sql`INSERT INTO ${into('phrase_uses')} (workspace_id, phrase, created_at, id, position)
      SELECT ${WORKSPACE}, CASE WHEN n < 100 THEN 49 ELSE n % 49 END, n, n + 1000000, n
      FROM generate_series(1, ${USES}) n`.execute(db);
    for (const table of searchProjection.tables) {
      await addKey(db, SCHEMA, table);
      await addIndexes(db, SCHEMA, table);
      await sql`ANALYZE ${into(table.name)}`.execute(db);
    }
    reads = {
      position: undefined,
      isExact: true,
      at: () => reads,
      response: () => reads,
      asOf: () => reads,
      db: new Kysely({
        dialect: new PostgresDialect({ pool }),
        log: ({ level, query }) => {
          if (level === 'query' && query.sql.includes(SCHEMA)) statements.push(query);
        },
      }),
      schema: (projection) => (projection.name === 'search' ? SCHEMA : schemaOf(projection)),
    };
  });

  /** Ids of the messages that are found, and the plans of the statements that looked for them. */
  async function search(q: string, more: { limit?: string; type?: string } = {}) {
    statements.length = 0;
    const query = searchQuery.parse({ q, type: 'message', ...more });
    const { results } = await searchRecords(reads, NAMES, allTasks(WORKSPACE), query, true, true);
    const plans = await Promise.all(
      [...statements].map(async (statement) => {
        const { rows } = await place.database.pool.query(`EXPLAIN ${statement.sql}`, [...statement.parameters]);
        return rows.map((row) => Object.values(row as object)[0]).join('\n');
      }),
    );
    return { ids: results.map(({ id }) => id), plans };
  }

  it('finds a rare text by its trigrams', async () => {
    const { ids, plans } = await search('GÜTE_x');
    expect(ids).to.deep.equal([70]);
    expect(plans).to.have.length(2);
    expect(plans[1]).to.include('documents_text_trigrams').and.not.include('Seq Scan');
  });

  it('finds a common text among the newest, with an index', async () => {
    const { plans } = await search('mend');
    expect(plans).to.have.length(1);
    expect(plans[0]).to.include('Index Scan').and.not.include('Seq Scan');
  });

  it('finds routine texts by text, then by their uses', async () => {
    for (const q of ['agent-49:', 'nothing to do']) {
      const { plans } = await search(q, { type: 'activity' });
      for (const plan of plans) {
        expect(plan, q).not.to.include('Seq Scan on documents').and.not.include('Seq Scan on phrase_uses');
      }
      if (q === 'agent-49:') expect(plans[1]).to.include('phrase_uses_pkey');
    }
  });

  it('finds text without a trigram only among the newest 10,000 of a type, with an index', async () => {
    const { ids, plans } = await search('kz');
    expect(ids).to.deep.equal([DOCUMENTS - 30, DOCUMENTS - 12_000]);
    expect(plans).to.have.length(1);
    expect(plans[0]).to.include('Index Scan').and.not.include('Seq Scan');
    expect((await search('0%')).ids, 'too long ago').to.deep.equal([]);
  });

  it('treats % and _ literally', async () => {
    expect((await search('50% g')).ids).to.deep.equal([]);
    expect((await search('with 50%')).ids).to.deep.equal([70]);
    expect((await search('uete_x')).ids).to.deep.equal([]);
  });

  it('finds the same without the index, and reports that it is missing', async () => {
    const { db } = place.database;
    const live = schemaOf(searchProjection);
    expect(await unindexedTexts(db, [searchProjection, chatProjection])).to.deep.equal([]);
    await sql`DROP INDEX ${sql.table(`${SCHEMA}.documents_text_trigrams`)}`.execute(db);
    await sql`DROP INDEX ${sql.table(`${live}.documents_text_trigrams`)}`.execute(db);
    expect((await search('güte_x')).ids).to.deep.equal([70]);
    expect(await unindexedTexts(db, [searchProjection])).to.deep.equal([`${live}.documents.text`]);
  });
});
