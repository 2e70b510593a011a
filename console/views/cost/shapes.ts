/** The responses about tokens, by action. */
import type { TokenStats } from '../../client/api-types.ts';
import { NONE, type Sums } from './spend.ts';

export interface AgentCosts {
  readonly agents: Readonly<
    Record<
      string,
      {
        readonly stats: TokenStats;
        readonly models: Readonly<Record<string, TokenStats>>;
        readonly timeline: readonly { readonly date: string; readonly cost: number }[];
      }
    >
  >;
}
export interface TaskCosts {
  readonly tasks: readonly {
    readonly taskId: number;
    readonly title: string;
    readonly stats: TokenStats;
    readonly project: { readonly name: string | null };
  }[];
  readonly agents: Readonly<Record<string, { readonly taskIds: readonly number[] }>>;
}
export interface SessionCosts {
  readonly sessions: Sums;
  readonly models: Sums;
}
const has = (data: unknown, ...names: readonly string[]) =>
  typeof data === 'object' && data !== null && names.every((name) => name in data);
export const isAgentCosts = (data: unknown): data is AgentCosts =>
  has(data, 'agents') && !has(data, 'tasks') && !has(data, 'sessions');
export const isTaskCosts = (data: unknown): data is TaskCosts => has(data, 'tasks', 'agents');
export const isSessionCosts = (data: unknown): data is SessionCosts => has(data, 'sessions', 'models');

/** Sums of tasks by the group they belong to. */
export function sumsOfTasks(
  data: TaskCosts | undefined,
  nameOf: (task: TaskCosts['tasks'][number]) => string | undefined,
): Sums {
  const sums: Record<string, { -readonly [K in keyof typeof NONE]: number }> = {};
  for (const task of data?.tasks ?? []) {
    const name = nameOf(task);
    if (name === undefined) continue;
    sums[name] ??= { ...NONE };
    const sum = sums[name];
    sum.totalCost += task.stats.totalCost;
    sum.estimatedCost += task.stats.estimatedCost;
    sum.totalTokens += task.stats.totalTokens;
    sum.requestCount += task.stats.requestCount;
  }
  return sums;
}

export const sumsOfAgents = (data: AgentCosts | undefined): Sums =>
  Object.fromEntries(Object.entries(data?.agents ?? {}).map(([name, { stats }]) => [name, stats]));
