/**
 * Names of fields in event data: those of the interface, in snake_case. The listed types had them in camelCase before.
 * Such events are recognised by type and version, and their fields by the schema, so that data from clients keeps its
 * keys.
 */
import { z } from 'zod';

/** The last version that was written in camelCase, with the types that have it. Later types never were. */
const IN_CAMEL_CASE: Readonly<Record<number, string>> = {
  1: `
    AccessRequestApproved AccessRequestRejected AccessRequested AdapterReported AdminRemovalBegun
    AdminRemovalVoided AgentDeleted AgentDetailsChanged AgentHeartbeatReceived AgentHidden AgentKeyIssued
    AgentKeyRevoked AgentMemoryCleared AgentMemoryFieldsSet AgentMemoryWritten AgentMessageSent AgentRegistered
    AgentReturned AgentShown AgentSoulChanged AgentStatusChanged AgentWoken AlertRuleCreated AlertRuleDeleted
    AlertRuleTriggered AlertRuleUpdated ChatMessageRead ConnectionClosed ConnectionOpened ConnectionSeen
    CronJobAdded CronRunEnded CronRunStarted DataExported ExecApprovalAnswered GatewayActionRequested GatewayAdded
    GatewayChanged GatewayConfigChanged GatewayRemoved GatewaySessionControlled GatewaysProbed GithubIssueClaimed
    GithubIssueClosed GithubIssueCommented GithubSynced GlobalKeyConfigured GlobalKeyRotated GoogleDisconnected
    LivenessChecked NotificationDeliveryCompleted NotificationsDeleted NotificationsDelivered NotificationsRead
    PipelineCreated PipelineDeleted PipelineRunCancelled PipelineRunCompleted PipelineRunFailed PipelineRunRemoved
    PipelineRunStarted PipelineStepAttemptFailed PipelineStepCompleted PipelineStepFailed PipelineStepSpawned
    PipelineStepStarted PipelineUpdated PipelineUsed ProjectAgentsAssigned ProjectAgentsUnassigned ProjectArchived
    ProjectCreated ProjectDeleted ProjectDeletionBegun ProjectRestored ProjectUpdated ProvisionJobApproved
    ProvisionJobCancelled ProvisionJobCompleted ProvisionJobFailed ProvisionJobQueued ProvisionJobRejected
    ProvisionJobStarted ProvisionStepEnded RecordsPurged RetentionApplied SessionControlled SessionReported
    SignInFailed TaskBranched TaskClaimed TaskDeleted TaskDispatchAccepted TaskDispatchCompleted
    TaskDispatchFailed TaskDispatched TaskIssueGone TaskLinked TaskPullOpened TaskRecurred TaskReleased
    TaskRequeued TaskReviewAbandoned TaskReviewAccepted TaskReviewRequested TaskReviewed TaskRouted
    TaskStatusChanged TaskSynced TaskVerdictGiven TaskWithheld TenantCreated TokenReportsPurged TokenUsageReported
    TokensReported UserCreated UserDeleted UserMoved UserPasswordChanged UserSignedIn UserSignedOut
    UserTransferred UserUpdated WebhookDeleted WebhookTripped WorkflowCreated
    WorkflowDeleted WorkflowUpdated WorkflowUsed WorkspaceCreated WorkspaceDeleted WorkspaceRemovalBegun
    WorkspaceUpdated`,
  2: `
    ChatMessageSent ExecApprovalDecided NotificationForwarded NotificationRaised TaskAssigned TaskBroadcast
    TaskCommented TaskMoved TaskSubscribed WebhookCreated WebhookUpdated`,
  3: `
    TaskCreated TaskUpdated`,
};

/** The last version of a type that was written in camelCase. */
export const LAST_IN_CAMEL_CASE: ReadonlyMap<string, number> = new Map(
  Object.entries(IN_CAMEL_CASE).flatMap(([version, types]) =>
    types
      .trim()
      .split(/\s+/)
      .map((type) => [type, Number(version)] as const),
  ),
);

/** Fields that had another name before, and not only another spelling. */
const FORMER_NAMES: Readonly<Record<string, string>> = { project_ticket_no: 'ticketNo', timezone: 'timeZone' };

const camelCase = (name: string): string =>
  FORMER_NAMES[name] ?? name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());

/** Dotted paths into the data of an event, in the names of its version. */
export function pathsIn(
  { type, meta }: { readonly type: string; readonly meta: Readonly<Record<string, unknown>> },
  paths: readonly string[] = [],
): readonly string[] {
  if (typeof meta.version !== 'number' || meta.version > (LAST_IN_CAMEL_CASE.get(type) ?? 0)) return paths;
  return paths.map((path) => path.split('.').map(camelCase).join('.'));
}

type Rename = (value: unknown) => unknown;

const asItIs: Rename = (value) => value;

/** Renames the fields that a schema knows, at every depth. */
function renameOf(schema: z.core.$ZodType): Rename {
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) return renameOf(schema.unwrap());
  if (schema instanceof z.ZodArray) {
    const rename = renameOf(schema.element);
    return (value) => (Array.isArray(value) ? value.map(rename) : value);
  }
  if (!(schema instanceof z.ZodObject)) return asItIs;
  const fields = new Map(
    Object.entries(schema.shape as z.core.$ZodShape).flatMap(([name, inner]) => {
      const field = { name, rename: renameOf(inner) };
      return [
        [name, field],
        [camelCase(name), field],
      ];
    }),
  );
  return (value) => {
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => {
        const { name = key, rename = asItIs } = fields.get(key) ?? {};
        return [name, rename(inner)];
      }),
    );
  };
}

const renames = new WeakMap<z.core.$ZodType, Rename>();

/** The step from the last version in camelCase to the next one; undefined: this version needs another one. */
export function renamed(
  { type, schema }: { readonly type: string; readonly schema: z.core.$ZodType },
  version: number,
): ((data: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>) | undefined {
  if (version !== LAST_IN_CAMEL_CASE.get(type)) return undefined;
  const rename = renames.get(schema) ?? renameOf(schema);
  renames.set(schema, rename);
  return rename as ReturnType<typeof renamed>;
}
