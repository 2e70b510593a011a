/** Patterns of commands that agents may run without asking, for the whole deployment. */
import { z } from 'zod';
import { execAllowlistChanged } from '../../shared/events/admin/exec-approvals.ts';
import { columnFor } from '../columns.ts';
import { change, defineProjection, defineTable, on } from '../projection.ts';

export const execAllowlistTable = defineTable(
  'exec_allowlist',
  { agent: 'text', patterns: columnFor(z.array(z.string())) },
  { key: ['agent'] },
);

export const execApprovalsProjection = defineProjection({
  name: 'exec_approvals',
  version: 1,
  tables: [execAllowlistTable],
  handlers: [
    on(execAllowlistChanged, ({ data }) =>
      data.agents.map(({ agent, patterns }) =>
        change(execAllowlistTable, { agent }, () => (patterns.length === 0 ? undefined : { agent, patterns })),
      ),
    ),
  ],
});
