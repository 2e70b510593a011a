/** How PostgreSQL runs a statement: the nodes of its plan, with the rows that each has read. */
import { CompiledQuery, type KyselyPlugin, type QueryId, type RootOperationNode } from 'kysely';
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

/** Runs the statements of a question. @returns the nodes of their plans */
export async function plansOf(reads: Reads, question: (reads: Reads) => Promise<unknown>): Promise<readonly Plan[]> {
  const asked: { readonly node: RootOperationNode; readonly queryId: QueryId }[] = [];
  const watcher: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      asked.push({ node, queryId });
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  await question({ ...reads, db: reads.db.withPlugin(watcher) });
  const plans: Plan[] = [];
  for (const { node, queryId } of asked)
    plans.push(...(await planOf(reads.db, reads.db.getExecutor().compileQuery(node, queryId))));
  return plans;
}

/** Rows that these nodes have looked at. */
export const rowsOf = (nodes: readonly Plan[]): number =>
  nodes.reduce((sum, n) => sum + (n['Actual Rows'] + (n['Rows Removed by Filter'] ?? 0)) * n['Actual Loops'], 0);
