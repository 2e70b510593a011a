/** How PostgreSQL runs a statement: the nodes of its plan, with the rows that each has read. */
import { CompiledQuery } from 'kysely';
import type { Reads } from '../../queries/reads.ts';

export interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  /** Of a node that is repeated, the average. */
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

const nodesOf = (plan: Plan): readonly Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

/** Runs a statement. */
export async function planOf(db: Reads['db'], { sql, parameters }: CompiledQuery): Promise<readonly Plan[]> {
  const explain = CompiledQuery.raw(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, [...parameters]);
  const { rows } = await db.executeQuery<{ 'QUERY PLAN': readonly { readonly Plan: Plan }[] }>(explain);
  return (rows[0]?.['QUERY PLAN'] ?? []).flatMap((one) => nodesOf(one.Plan));
}
