/** Standup reports: their numbers are recorded, by workspace and day. */
import { type StandupSummary, standupGenerated } from '../../shared/events/monitoring/standups.ts';
import type { CommandContext, Commands } from '../handler.ts';

/** @returns the time of the report, Unix milliseconds */
export async function recordStandup(
  commands: Commands,
  context: CommandContext,
  date: string,
  summary: StandupSummary,
  now: number,
): Promise<number> {
  const stream = `standup-${context.origin.workspace}-${date}`;
  const { events } = await commands.record(stream, context, [standupGenerated.draft({ date, summary })]);
  return events[0]?.meta.at ?? now;
}
