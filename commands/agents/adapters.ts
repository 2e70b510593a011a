/** Reports of framework adapters. They change no records; they are recorded and published to the stream. */
import { adapterReported } from '../../shared/events/agents/adapters.ts';
import type { EventOf } from '../../shared/events/define.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';

export type AdapterReport = EventOf<typeof adapterReported>['data'];

/** Records a report. Stream: `adapter-<workspace>-<framework>`. */
export function recordAdapterReport(
  commands: Commands,
  context: CommandContext,
  report: AdapterReport,
): Promise<Executed> {
  return commands.record(`adapter-${context.origin.workspace}-${report.framework}`, context, [
    adapterReported.draft(report),
  ]);
}
