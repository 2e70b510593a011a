/** The latest standup report of each day, in numbers. */
import { standupGenerated, standupSummary } from '../../shared/events/monitoring/standups.ts';
import { columnFor } from '../columns.ts';
import { change, defineProjection, defineTable, on } from '../projection.ts';

export const standupsTable = defineTable(
  'standups',
  {
    workspace_id: 'int',
    /** `YYYY-MM-DD`, UTC. */
    date: 'text',
    summary: columnFor(standupSummary),
    /** Unix milliseconds. */
    generated_at: 'bigint',
    generated_by: 'text',
  },
  { key: ['workspace_id', 'date'], indexes: ['workspace_id, generated_at, date'] },
);

export const standupsProjection = defineProjection({
  name: 'standups',
  version: 1,
  tables: [standupsTable],
  handlers: [
    on(standupGenerated, ({ data: { date, summary }, meta }) => {
      const key = { workspace_id: meta.workspace, date };
      return [
        change(standupsTable, key, () => ({
          ...key,
          summary,
          generated_at: meta.at,
          generated_by: meta.actor.name,
        })),
      ];
    }),
  ],
});
