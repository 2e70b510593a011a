/**
 * Settings of the deployment that admins change while it runs. Settings that the service needs before it runs are
 * environment variables, which also provide the defaults of some of these.
 */
import { z } from 'zod';
import { secretName } from '../../secret-names.ts';
import { jsonObject, unixSeconds } from '../common.ts';

/** The source of defaults. */
export interface SettingDefaults {
  readonly retainActivitiesDays: number;
  readonly retainAuditDays: number;
  readonly retainLogsDays: number;
  readonly retainNotificationsDays: number;
  readonly retainPipelineRunsDays: number;
  readonly retainTokenUsageDays: number;
  readonly retainGatewaySessionsDays: number;
  readonly retainStreamDays: number;
  readonly agentTimeoutMinutes: number;
  /** Undefined if there is no agent runner. */
  readonly runnerUrl: string | undefined;
}

interface Known {
  readonly category: string;
  readonly description: string;
  readonly initial: (defaults: SettingDefaults) => string;
  /** The error of a value, as the end of a sentence; undefined if there is none. */
  readonly fault: (value: string) => string | undefined;
}

const whole = (min: number, max: number) => (value: string) =>
  /^\d{1,6}$/.test(value) && Number(value) >= min && Number(value) <= max
    ? undefined
    : `must be a whole number from ${min} to ${max}`;
const flag = (value: string) => (['true', 'false'].includes(value) ? undefined : 'must be true or false');
const anything = () => undefined;
const oneOf =
  (...values: readonly string[]) =>
  (value: string) =>
    values.includes(value) ? undefined : `must be ${values.join(' or ')}`;

const setting = (
  category: string,
  description: string,
  initial: string | Known['initial'],
  fault: Known['fault'],
): Known => ({ category, description, initial: typeof initial === 'string' ? () => initial : initial, fault });
const days = (what: string, initial: (defaults: SettingDefaults) => number) =>
  setting('retention', `How long ${what} are kept, days; 0: forever`, (of) => String(initial(of)), whole(0, 3_650));
const general = (description: string, initial: Known['initial'] | string, fault: Known['fault']) =>
  setting('general', description, initial, fault);
/** On if there is an agent runner for it. */
const withRunner: Known['initial'] = ({ runnerUrl }) => String(runnerUrl !== undefined);
const onboarding = (description: string, initial: string, fault: Known['fault']) =>
  setting('onboarding', description, initial, fault);

/** The settings that the service or its clients know, by name, in the order of the response. */
export const KNOWN_SETTINGS = {
  'retention.activities_days': days('activities', (of) => of.retainActivitiesDays),
  'retention.audit_log_days': days('audit entries', (of) => of.retainAuditDays),
  'retention.logs_days': days('lines of the log', (of) => of.retainLogsDays),
  'retention.notifications_days': days('notifications', (of) => of.retainNotificationsDays),
  'retention.pipeline_runs_days': days('runs of pipelines', (of) => of.retainPipelineRunsDays),
  'retention.token_usage_days': days('token reports', (of) => of.retainTokenUsageDays),
  'retention.gateway_sessions_days': setting(
    'retention',
    'Sessions that a gateway last updated longer ago are not listed, days; 0: all are. The gateway keeps them',
    (of) => String(of.retainGatewaySessionsDays),
    whole(0, 3_650),
  ),
  'retention.stream_days': setting(
    'retention',
    'How far back the event stream can be resumed by callers who are not admins, days; 0: to its beginning. Admins resume it anywhere',
    (of) => String(of.retainStreamDays),
    whole(0, 3_650),
  ),
  'gateway.host': setting('gateway', 'Host of the gateway', '127.0.0.1', anything),
  'gateway.port': setting('gateway', 'Port of the gateway', '18789', whole(1, 65_535)),
  'chat.coordinator_target_agent': setting('chat', 'Agent that gets messages to the coordinator', '', anything),
  'general.site_name': general('Name of the deployment', 'Signalbox', anything),
  'general.auto_cleanup': general('Whether old records are removed from the lists every day', 'false', flag),
  'general.auto_backup': general('Whether a backup is made every day', 'false', flag),
  'general.backup_retention_count': general('How many backups are kept', '10', whole(1, 1_000)),
  'general.interface_mode': general('How much of the interface is shown', 'essential', oneOf('essential', 'full')),
  'general.agent_timeout_minutes': general(
    'An agent that has not been seen for this long is set offline, minutes; 0: never',
    (of) => String(of.agentTimeoutMinutes),
    whole(0, 10_080),
  ),
  'general.heartbeat_events': general(
    'Which heartbeats are events: those that change something (changes), or all. The others are summed up every 5 minutes',
    'changes',
    oneOf('changes', 'all'),
  ),
  'general.agent_heartbeat': general('Whether silent agents are set offline', 'true', flag),
  'general.recurring_task_spawn': general('Whether tasks are created from recurring ones', 'true', flag),
  'general.stale_task_requeue': general('Whether stuck tasks return to the queue', 'true', flag),
  'general.task_dispatch': general(
    'Whether tasks in the inbox are given to agents that fit, and assigned ones handed to the agent runner',
    withRunner,
    flag,
  ),
  'general.aegis_review': general('Whether the agent runner reviews the results of tasks', withRunner, flag),
  'general.github_sync': general('Whether projects are synced with their repositories of GitHub', 'true', flag),
  'webhooks.retry_enabled': setting('webhooks', 'Whether failed deliveries of webhooks are repeated', 'true', flag),
  'subscription.plan_override': setting('subscription', 'Plan to show instead of the detected one', '', anything),
  'subscription.codex_plan': setting('subscription', 'Plan of Codex', '', anything),
  'onboarding.completed': onboarding('Whether the first steps are done', 'false', flag),
  'onboarding.completed_at': onboarding('When they were done', '', anything),
  'onboarding.skipped': onboarding('Whether they were skipped', 'false', flag),
  'onboarding.completed_steps': onboarding('Which of them are done, as a JSON list', '[]', anything),
  'onboarding.checklist_dismissed': onboarding('Whether the list of first steps is hidden', 'false', flag),
} as const satisfies Readonly<Record<string, Known>>;
export type SettingName = keyof typeof KNOWN_SETTINGS;

const known = (name: string): Known | undefined =>
  Object.hasOwn(KNOWN_SETTINGS, name) ? KNOWN_SETTINGS[name as SettingName] : undefined;
export const knownSetting = known;

/** Category of settings that only clients know. */
export const CUSTOM = 'custom';

export const settingSchema = z
  .object({
    key: z.string(),
    value: z.string(),
    description: z.string(),
    category: z.string(),
    updated_by: z.string().nullable(),
    updated_at: unixSeconds.nullable(),
    is_default: z.boolean(),
  })
  .meta({ id: 'Setting' });
export type SettingResponse = z.infer<typeof settingSchema>;

export const settingsResponse = z.object({
  settings: z.array(settingSchema),
  grouped: z.record(z.string(), z.array(settingSchema)).describe('the same by category'),
});

const MAX_NAME = 200;
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
/** Characters of a value. */
export const MAX_SETTING = 4_000;
/** Maximum number of settings that one request may change. */
const MAX_CHANGES = 100;

/** A value as stored text; undefined if the value is not allowed. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return undefined;
  return typeof value === 'object' ? JSON.stringify(value) : String(value as number | boolean);
}

function faultOf(name: string, value: unknown): string | undefined {
  if (name.length > MAX_NAME || !NAME.test(name)) {
    return `is not a valid name: use up to ${MAX_NAME} letters, digits, dots, hyphens and underscores, and begin with a letter or a digit`;
  }
  const text = textOf(value);
  if (text === undefined) return 'must have a value; DELETE resets a setting';
  if (text.length > MAX_SETTING) return `must have at most ${MAX_SETTING} characters`;
  if (/[\0\p{Surrogate}]/u.test(text)) return 'must not contain the character U+0000 or a lone surrogate';
  const one = known(name);
  if (one) return one.fault(text);
  return secretName(name) ? 'looks like the name of a secret, and settings are kept and shown as they are' : undefined;
}

export const settingsBody = z
  .object({ settings: jsonObject.describe('values by key; every value is stored as text') })
  .superRefine(({ settings }, context) => {
    const entries = Object.entries(settings);
    if (entries.length < 1 || entries.length > MAX_CHANGES) {
      context.addIssue({ code: 'custom', path: ['settings'], message: `must have 1 to ${MAX_CHANGES} settings` });
      return;
    }
    for (const [name, value] of entries) {
      const message = faultOf(name, value);
      if (message) context.addIssue({ code: 'custom', path: ['settings', name.slice(0, MAX_NAME)], message });
    }
  })
  .transform(({ settings }) => ({
    settings: Object.entries(settings).map(([name, value]) => ({ name, value: textOf(value) ?? '' })),
  }));
export const settingsPutResponse = z.object({ updated: z.array(z.string()), count: z.int() });

export const settingBody = z.object({ key: z.string().min(1, 'must not be empty').max(MAX_NAME) });
export const settingResetResponse = z.object({ reset: z.string(), default_value: z.string().optional() });
