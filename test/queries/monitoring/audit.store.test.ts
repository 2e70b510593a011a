/** Deep pages of the audit trail, which are read from the nearer end. */
import { expect } from 'chai';
import { auditProjection } from '../../../projections/monitoring/audit.ts';
import { listAudit } from '../../../queries/monitoring/audit.ts';
import { agentDeleted } from '../../../shared/events/agents/agents.ts';
import { signInFailed } from '../../../shared/events/auth/sign-in.ts';
import { readModels } from '../../support/rows.ts';

const ENTRIES = 1_060;
/** Every third entry is of another kind. */
const isDeletion = (id: number): boolean => id % 3 === 0;

describe('the audit trail', () => {
  const idsOf = async (offset: number, limit: number, action?: string) => {
    const query = { action, actor: undefined, since: undefined, until: undefined, limit, offset };
    const { entries, total } = await listAudit(models.reads, 1, query);
    return { ids: entries.map(({ id }) => id), total };
  };

  const models = readModels([auditProjection], () => [
    ...Array.from({ length: ENTRIES }, (_, n) =>
      isDeletion(n + 1)
        ? agentDeleted.draft({ agent_id: n + 1, name: 'ada', role: 'coder', remove_workspace: false })
        : signInFailed.draft({ username: 'eve', user_id: null, reason: 'user_not_found', month: '2026-03' }),
    ),
  ]);

  it('is newest first at every offset, even past the middle and past the end', async () => {
    const newestFirst = Array.from({ length: ENTRIES }, (_, n) => ENTRIES - n);
    for (const [offset, limit] of [
      [0, 5],
      [999, 3],
      [1_000, 3],
      [1_030, 200],
      [1_058, 5],
      [1_060, 5],
      [9_999, 5],
    ] as const) {
      const { ids, total } = await idsOf(offset, limit);
      expect(ids, `${offset}`).to.deep.equal(newestFirst.slice(offset, offset + limit));
      expect(total).to.equal(ENTRIES);
    }
  });

  it('has the total of its filter on every page', async () => {
    const deletions = Array.from({ length: ENTRIES }, (_, n) => ENTRIES - n).filter(isDeletion);
    for (const offset of [0, 350, 1_200]) {
      const { ids, total } = await idsOf(offset, 10, 'agent_deleted');
      expect(ids).to.deep.equal(deletions.slice(offset, offset + 10));
      expect(total).to.equal(deletions.length);
    }
  });
});
