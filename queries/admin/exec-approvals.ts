/** Patterns of commands that agents may run without asking. */
import { execApprovalsProjection } from '../../projections/admin/exec-approvals.ts';
import { type Allowlist, allowlistHash } from '../../shared/contract/admin/exec-approvals.ts';
import { type Reads, tables } from '../reads.ts';

export async function allowlist(reads: Reads) {
  const rows = await tables(reads, execApprovalsProjection)
    .selectFrom('exec_allowlist')
    .select(['agent', 'patterns'])
    .orderBy('agent')
    .execute();
  const agents: Allowlist = Object.fromEntries(rows.map(({ agent, patterns }) => [agent, patterns]));
  return {
    agents: Object.fromEntries(
      Object.entries(agents).map(([agent, patterns]) => [agent, patterns.map((pattern) => ({ pattern }))]),
    ),
    hash: allowlistHash(agents),
  };
}
