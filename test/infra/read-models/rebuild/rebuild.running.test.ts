/** A rebuild beside a running service: what the service has kept of the old tables is not served after the switch. */
import { expect } from 'chai';
import { openCore } from '../../../../infra/core.ts';
import { createLogger } from '../../../../infra/logging.ts';
import { agentsProjection } from '../../../../projections/agents/agents.ts';
import { schemaOf } from '../../../../projections/projection.ts';
import { fixture } from '../../../support/fixture.ts';
import { rebuildProjection } from '../../../support/rebuild.ts';
import { runs } from '../../../support/runs.ts';
import { call, startTestService } from '../../../support/service.ts';

/** Each has two rebuilds, so that tables are switched to and fro. */
const ROUNDS = runs(1, 3);

describe('a rebuild with a running service', function () {
  this.timeout(60_000);
  const service = fixture(startTestService);
  // As a command-line tool in another process: it has its own connections to the same database.
  const tool = fixture(() => openCore(service.config, createLogger('silent'), { attach: true }));

  let made = 0;
  const table = `${schemaOf(agentsProjection)}.agents`;
  const ask = (method: string, path: string, body?: object) => call(service, method, path, body);
  const listed = async (id: number) =>
    (await ask('GET', '/api/agents?limit=200')).body.agents.find((one: { readonly id: number }) => one.id === id).role;
  const one = async (id: number) => (await ask('GET', `/api/agents/${id}`)).body.agent.role;
  /** Makes an agent whose row is written. */
  async function create(): Promise<number> {
    const { agent } = (await ask('POST', '/api/agents', { name: `agent-${++made}`, role: 'scout' })).body;
    expect(await listed(agent.id)).to.equal('scout');
    return agent.id;
  }
  /** What the log does not say. */
  async function tamper(id: number): Promise<void> {
    const { pool } = service.service.core.database;
    const { rowCount } = await pool.query(`UPDATE ${table} SET role = 'tampered' WHERE id = $1`, [id]);
    expect(rowCount).to.equal(1);
  }

  for (const by of ['a tool', 'the service itself']) {
    const rebuild = () => rebuildProjection(by === 'a tool' ? tool : service.service.core, agentsProjection);

    it(`by ${by} invalidates cached lists`, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const id = await create();
        // Leaves no row in memory.
        await rebuild();
        await tamper(id);
        expect(await listed(id), 'the service has the wrong row').to.equal('tampered');
        await rebuild();
        expect(await listed(id)).to.equal('scout');
      }
    });

    it(`by ${by} invalidates cached rows`, async () => {
      for (const status of ['busy', 'idle', 'error'].slice(0, ROUNDS)) {
        const id = await create();
        await rebuild();
        await tamper(id);
        // The row is loaded to be changed, and kept.
        expect((await ask('PUT', `/api/agents/${id}`, { status })).status).to.equal(200);
        expect(await one(id), 'the service has the wrong row').to.equal('tampered');
        await rebuild();
        expect(await one(id)).to.equal('scout');
        expect(await listed(id)).to.equal('scout');
      }
    });
  }
});
