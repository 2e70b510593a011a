/** Sessions: of command-line tools, stream `cli_session-<workspace>-<session id>`; and actions on all sessions. */
import { notFound } from '../shared/errors.ts';
import type { EventDraft, EventOf } from '../shared/events/define.ts';
import { sessionControlled, sessionPrefSet, sessionReported } from '../shared/events/sessions.ts';
import type { Gateways } from '../shared/ports/admin/gateways.ts';
import { controlAtGateway } from './admin/gateway-sessions.ts';
import { gatewayOf } from './admin/gateways.ts';
import { defineDecider, on } from './decider.ts';
import type { CommandContext, Commands, Executed } from './handler.ts';

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

/** @param id for the record, if the session is new */
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
  return [sessionControlled.draft({ id: state.id, session_id: sessionId, action, value })];
}

/** Registers a session, or records a report of an existing one. */
export async function reportSession(commands: Commands, context: CommandContext, report: Report): Promise<Executed> {
  const id = await commands.counters.take('cli_session');
  return commands.execute(sessionDecider, streamOf(context, report.session_id), context, (state) =>
    decideReport(state, report, id),
  );
}

/**
 * Asks the tool of a session for an action; a changed setting or the end is shown at once. If no tool has registered
 * the session, the action is sent to the primary gateway, if there is one.
 *
 * @returns the gateway's response; undefined for the session of a tool
 * @throws AppError 404; 500 when the gateway refuses or does not respond
 */
export async function controlSession(
  commands: Commands,
  context: CommandContext,
  gateways: Pick<Gateways, 'call'>,
  { session, action, value }: { readonly session: string; readonly action: Action; readonly value: string | null },
): Promise<Record<string, unknown> | undefined> {
  const stream = streamOf(context, session);
  const gateway = await gatewayOf(commands, context.origin);
  if (gateway && (await commands.load(sessionDecider, stream)).state.id === 0) {
    return controlAtGateway(commands, context, { gateway, gateways }, { session, action, value });
  }
  await commands.execute(sessionDecider, stream, context, (state) => decideControl(state, session, action, value));
  return undefined;
}

/** Sets how clients show a session. */
export const setSessionPref = (
  commands: Commands,
  context: CommandContext,
  pref: EventOf<typeof sessionPrefSet>['data'],
): Promise<Executed> =>
  commands.record(`session_prefs-${context.origin.workspace}`, context, [sessionPrefSet.draft(pref)]);
