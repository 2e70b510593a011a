/** Ends the pause after a restore. */
import { conflict } from '../../shared/errors.ts';
import { deploymentResumed } from '../../shared/events/admin/pause.ts';
import type { Pause } from '../../shared/ports/admin/pause.ts';
import type { CommandContext, Commands } from '../handler.ts';

const STREAM = 'pause';

/** @throws AppError 409 */
export async function resumeDeployment(
  commands: Commands,
  context: CommandContext,
  pause: Pick<Pause, 'since' | 'end'>,
): Promise<void> {
  const since = await pause.since();
  if (since === null) throw conflict('This deployment is not paused.');
  // Recorded first: after a crash in between it is still paused, and the operator repeats the request.
  await commands.record(STREAM, context, [deploymentResumed.draft({ paused_since: since })]);
  await pause.end();
}
