/** Sessions of command-line tools. Stream: `cli_session-<workspace>-<session id>`. */
import { notFound } from '../shared/errors.ts';
import type { EventDraft, EventOf } from '../shared/events/define.ts';
import { sessionControlled, sessionPrefSet, sessionReported } from '../shared/events/sessions.ts';
import { defineDecider, on } from './decider.ts';
import type { CommandContext, Commands } from './handler.ts';

export const sessionDecider = defineDecider<{ readonly id: number }>({
  kind: 'session',
  // Tools report often.
  snapshotVersion: 1,
  // 0: not registered.
  initial: { id: 0 },
  folds: [
    on(sessionReported, (_, { data }) => ({ id: data.id })),
    on(sessionControlled, (state, { data }) => (data.action === 'delete' ? { id: 0 } : state)),
  ],
});

type Report = Omit<EventOf<typeof sessionReported>['data'], 'id'>;
type Action = EventOf<typeof sessionControlled>['data']['action'];

const streamOf = ({ origin }: CommandContext, sessionId: string): string =>
  `cli_session-${origin.workspace}-${encodeURIComponent(sessionId)}`;

/** @param id of the record, if the session is new */
export const decideReport = (state: { readonly id: number }, report: Report, id: number): EventDraft[] => [
  sessionReported.draft({ ...report, id: state.id || id }),
];

/** @throws AppError 404 */
export function decideControl(
  state: { readonly id: number },
  sessionId: string,
  action: Action,
  value: string | null,
): EventDraft[] {
  if (state.id === 0) throw notFound('Session');
  return [sessionControlled.draft({ id: state.id, sessionId, action, value })];
}

/** Registers a session, or takes a report of one. */
export async function reportSession(commands: Commands, context: CommandContext, report: Report): Promise<void> {
  const id = await commands.counters.take('cli_session');
  await commands.execute(sessionDecider, streamOf(context, report.sessionId), context, (state) =>
    decideReport(state, report, id),
  );
}

/** Asks the tool of a session for something; what it sets or ends is shown at once. @throws AppError 404 */
export async function controlSession(
  commands: Commands,
  context: CommandContext,
  sessionId: string,
  action: Action,
  value: string | null = null,
): Promise<void> {
  await commands.execute(sessionDecider, streamOf(context, sessionId), context, (state) =>
    decideControl(state, sessionId, action, value),
  );
}

/** Sets how clients show a session. */
export async function setSessionPref(
  commands: Commands,
  context: CommandContext,
  pref: EventOf<typeof sessionPrefSet>['data'],
): Promise<void> {
  await commands.record(`session_prefs-${context.origin.workspace}`, context, [sessionPrefSet.draft(pref)]);
}
