/** Exported rows: pages bounded in rows and bytes, complete and in order, also where many have one time. */
import { expect } from 'chai';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { leasesProjection } from '../../../projections/agents/leases.ts';
import { exportedRows } from '../../../queries/admin/export.ts';
import { allTasks } from '../../../shared/identity.ts';
import { agentRegisteredAs, readModels, secondsOf } from '../../support/rows.ts';

const AGENTS = 650;
const HUGE = 600_000;

describe('exported rows', () => {
  const models = readModels([leasesProjection, agentsProjection]);
  before(async () => {
    const huge = [agentRegisteredAs(900, 'a', { soul_content: 'x'.repeat(HUGE) }), { at: 5_000 }] as const;
    await models.tell(
      ...Array.from({ length: AGENTS }, (_, n) => [agentRegisteredAs(n + 1, `agent-${n}`), { at: 9_000 }] as const),
      huge,
      [agentRegisteredAs(901, 'b', { soul_content: 'x'.repeat(2 * HUGE) }), { at: 4_000 }],
      [agentRegisteredAs(902, 'c', { soul_content: 'x'.repeat(HUGE) }), { at: 3_000 }],
      [agentRegisteredAs(903, 'foreign'), { workspace: 2 }],
    );
  });

  async function pages(range: object = {}, limit = 10_000) {
    const found: (readonly { readonly [column: string]: unknown }[])[] = [];
    const query = { since: undefined, until: undefined, limit, ...range };
    for await (const page of exportedRows(models.reads, allTasks(1), 'agents', query)) found.push(page);
    return found;
  }

  it('are returned in pages of limited size, each row once, newest first', async () => {
    const found = await pages();
    const ids = found.flat().map(({ id }) => id);
    expect(ids).to.deep.equal([...Array.from({ length: AGENTS }, (_, n) => AGENTS - n), 900, 901, 902]);
    for (const page of found) {
      expect(page.length).to.be.at.most(200);
      if (page.length > 1) expect(JSON.stringify(page).length).to.be.below(1_300_000);
    }
    expect(found.slice(-2).map((page) => page.length)).to.deep.equal([1, 1]);
  });

  it('are limited by a number and a time range', async () => {
    expect((await pages({}, 201)).flat()).to.have.length(201);
    expect((await pages({ since: 4, until: 5 })).flat().map(({ id }) => id)).to.deep.equal([900, 901]);
    expect(await pages({ since: secondsOf(1) })).to.deep.equal([]);
  });
});
