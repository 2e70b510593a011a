/**
 * Summaries of heartbeats that changed nothing. A window that was closed stays in the leases until every read shows its
 * summary; the stream of summaries knows which parts of it were appended. So each heartbeat is summed up exactly once,
 * wherever a process dies, and several processes may do this at the same time.
 */
import { oldSummaries } from '../../queries/agents/leases.ts';
import type { Reads } from '../../queries/reads.ts';
import { AppError } from '../../shared/errors.ts';
import { heartbeatSummariesRemoved, heartbeatsReceived } from '../../shared/events/agents/heartbeat.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { newId } from '../../shared/ids.ts';
import type { AgentPlace, ClosedLease, Leases, LeaseWindow } from '../../shared/ports/agents/leases.ts';
import type { ReadModels } from '../../shared/ports/read-models.ts';
import { DAY, seconds } from '../../shared/time.ts';
import { defineDecider, on } from '../decider.ts';
import type { Commands } from '../handler.ts';
import { scheduledContext } from '../policies/policy.ts';

export const livenessStream = (workspace: number): string => `liveness-${workspace}`;

/** How many parts of each of the last windows were appended, the oldest window first. */
export interface SummaryState {
  readonly windows: readonly { readonly window: number; readonly parts: number }[];
}

/**
 * Windows that are remembered. Each is appended within `FRESH_MS` after it was looked up, and all of a workspace go to one
 * stream, one after the other, so that no process appends a window that has been forgotten.
 */
const REMEMBERED = 2_048;
/** How long what was looked up of a window may be appended, milliseconds. Later it is looked up again. */
const FRESH_MS = 5_000;
/** Agents in one event. */
const AGENTS = 1_000;
/** Rows that one event removes. */
const ROWS = 200;

export const summaryDecider = defineDecider<SummaryState>({
  kind: 'summaries of heartbeats',
  snapshotVersion: 1,
  initial: { windows: [] },
  folds: [
    on(heartbeatsReceived, ({ windows }, { data: { window, part } }) => ({
      windows: [...windows.filter((one) => one.window !== window), { window, parts: part + 1 }].slice(-REMEMBERED),
    })),
  ],
});

/** No event when the part was appended before. */
export function decideSummary(
  { windows }: SummaryState,
  { window, part }: { readonly window: number; readonly part: number },
  leases: readonly ClosedLease[],
): EventDraft[] {
  if ((windows.find((one) => one.window === window)?.parts ?? 0) > part) return [];
  const from = Math.min(...leases.map(({ first }) => first));
  const to = Math.max(...leases.map(({ last }) => last));
  const connections: EventOf<typeof heartbeatsReceived>['data']['connections'] = [];
  for (const { agent, connection, connectionAt } of leases)
    if (connection !== null && connectionAt !== null) connections.push([agent, connection, connectionAt - from]);
  return [
    heartbeatsReceived.draft({
      window,
      part,
      from,
      to,
      agents: leases.map(({ agent, beats, first, last }) => [agent, beats, first - from, last - from]),
      connections,
    }),
  ];
}

export interface SummaryParts {
  readonly commands: Commands;
  readonly leases: Leases;
  readonly readModels: Pick<ReadModels, 'reach'>;
}

/**
 * Appends the summary of a closed window.
 *
 * @returns how many agents it has, and the position of the last event
 * @throws AppError 503 when the log is unavailable
 */
async function append({ commands, leases }: Pick<SummaryParts, 'commands' | 'leases'>, closed: LeaseWindow) {
  const { tenant, workspace, window } = closed;
  const context = scheduledContext(newId(), tenant, workspace);
  let agents = 0;
  let position = 0;
  let after = 0;
  for (let part = 0; ; ) {
    const some = await leases.leasesOf(closed, after, AGENTS);
    const last = some.at(-1);
    if (!last) return { agents, position };
    const readAt = performance.now();
    let isOld = false;
    const executed = await commands.execute(summaryDecider, livenessStream(workspace), { ...context }, (state) => {
      isOld = performance.now() - readAt > FRESH_MS;
      return isOld ? [] : decideSummary(state, { window, part }, some);
    });
    if (isOld) continue;
    position = executed.position;
    agents += some.length;
    // A closed window gets no further agents.
    if (some.length < AGENTS) return { agents, position };
    after = last.agent;
    part += 1;
  }
}

/** Appends the summaries of closed windows, and opens the next windows as soon as reads show them. */
async function appendAll(parts: SummaryParts, workspace: number | 'all'): Promise<number> {
  const windows = await parts.leases.closed(workspace);
  if (windows.length === 0) return 0;
  let sum = 0;
  let newest = 0;
  for (const closed of windows) {
    const { agents, position } = await append(parts, closed);
    sum += agents;
    newest = Math.max(newest, position);
  }
  try {
    // Once for all workspaces: a read model that is behind would make each of them wait.
    await parts.readModels.reach([heartbeatsReceived.type], { position: newest });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    // Until a read shows a summary, it counts the lease. The windows stay for the next run, and their heartbeats are safe.
    return sum;
  }
  for (const closed of windows) await parts.leases.settle(closed);
  return sum;
}

/** Days for which reads count heartbeats (`hours` of attribution and diagnostics), and one for those that began before. */
const COUNTED_DAYS = 31;

/**
 * Removes the rows of summaries that no read needs.
 *
 * @param options.days how far back reads may go (`MC_RETAIN_HISTORY_DAYS`); 0: to the beginning, so that all rows stay
 * @param options.deadline Unix ms: the rest is left to the next call
 * @param options.now Unix ms
 * @returns the number of removed rows
 */
export async function removeOldSummaries(
  { commands, reads }: { readonly commands: Commands; readonly reads: Reads },
  workspaces: readonly { readonly id: number; readonly tenant: number }[],
  { days, deadline, now }: { readonly days: number; readonly deadline: number; readonly now: () => number },
): Promise<number> {
  if (days === 0) return 0;
  const before = seconds(now()) - Math.max(days, COUNTED_DAYS) * DAY;
  const run = newId();
  let removed = 0;
  for (const { id: workspace, tenant } of workspaces) {
    let some: EventOf<typeof heartbeatSummariesRemoved>['data']['agents'] = [];
    let count = 0;
    const record = async () => {
      if (count === 0) return;
      const draft = heartbeatSummariesRemoved.draft({ agents: some });
      await commands.record(livenessStream(workspace), scheduledContext(run, tenant, workspace), [draft]);
      removed += count;
      some = [];
      count = 0;
    };
    for (let after = 0; now() < deadline; ) {
      const old = await oldSummaries(reads, workspace, { before, after, limit: ROWS - count });
      if (!old) break;
      const { agent: agent_id, windows } = old;
      if (windows.length > 0) some.push({ agent_id, windows: [...windows] });
      count += windows.length;
      // The event is full, and the agent may have more.
      after = count === ROWS ? agent_id - 1 : agent_id;
      if (count === ROWS) await record();
    }
    await record();
  }
  return removed;
}

/** Sums up what the leases of a workspace, or of all, hold. @returns the number of agents with heartbeats */
export async function sumUpHeartbeats(parts: SummaryParts, workspace: number | 'all' = 'all'): Promise<number> {
  // Windows that a process has left behind.
  await appendAll(parts, workspace);
  await parts.leases.close(workspace);
  return appendAll(parts, workspace);
}

/**
 * Deletes an agent by `end`, after its heartbeats were summed up. They wait for no read model: no read shows the lease of
 * an agent that is deleted. When `end` fails, the scheduled summary finds the window.
 */
export async function afterSummary<T>(
  parts: Pick<SummaryParts, 'commands' | 'leases'>,
  place: AgentPlace,
  end: () => Promise<T>,
): Promise<T> {
  const closed = await parts.leases.closeOne(place);
  if (closed) await append(parts, closed);
  const ended = await end();
  if (closed) await parts.leases.settle(closed);
  return ended;
}
