/** Records exports of data. */
import { dataExported } from '../../shared/events/admin/export.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';

/** Records an export of the caller's workspace. */
export function recordExport(
  commands: Commands,
  context: CommandContext,
  exported: { readonly what: string; readonly format: string; readonly row_count: number },
): Promise<Executed> {
  return commands.record(`exports-${context.origin.workspace}`, context, [dataExported.draft(exported)]);
}
