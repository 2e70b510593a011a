/** Archived parts of the log: each is recorded once, also if the command is killed and repeated. */
import { logArchived } from '../../shared/events/admin/archive.ts';
import type { EventOf } from '../../shared/events/define.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';

const STREAM = 'archives';

const archivesDecider = defineDecider<{ readonly until: number }>({
  kind: 'archives',
  initial: { until: 0 },
  folds: [on(logArchived, (_state, { data: { until } }) => ({ until }))],
});

/** Records an archived part of the log. Parts follow each other, so one that ends no later is known. */
export async function recordArchive(
  commands: Commands,
  context: CommandContext,
  part: EventOf<typeof logArchived>['data'],
): Promise<void> {
  await commands.execute(archivesDecider, STREAM, context, ({ until }) =>
    part.until > until ? [logArchived.draft(part)] : [],
  );
}
