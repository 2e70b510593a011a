/** Every event type that Signalbox writes or has ever written. Types are listed here, not found by scanning folders. */

import { backupEvents } from './admin/backup.ts';
import { cleanupEvents } from './admin/cleanup.ts';
import { cronEvents } from './admin/cron.ts';
import { execApprovalEvents } from './admin/exec-approvals.ts';
import { exportEvents } from './admin/export.ts';
import { gatewayConfigEvents } from './admin/gateway-config.ts';
import { gatewayEvents } from './admin/gateways.ts';
import { settingsEvents } from './admin/settings.ts';
import { adapterEvents } from './agents/adapters.ts';
import { agentEvents } from './agents/agents.ts';
import { agentHeartbeatEvents } from './agents/heartbeat.ts';
import { agentKeyEvents } from './agents/keys.ts';
import { livenessEvents } from './agents/liveness.ts';
import { agentMemoryEvents } from './agents/memory.ts';
import { agentMessageEvents } from './agents/messages.ts';
import { agentRegistrationEvents } from './agents/registration.ts';
import { agentSoulEvents } from './agents/souls.ts';
import { agentSyncEvents } from './agents/sync.ts';
import { alertRuleEvents } from './alerts/rules.ts';
import { accessRequestEvents } from './auth/access-requests.ts';
import { globalKeyEvents } from './auth/global-key.ts';
import { incidentEvents } from './auth/incidents.ts';
import { lastAdminEvents } from './auth/last-admin.ts';
import { peopleEvents } from './auth/people.ts';
import { signInEvents } from './auth/sign-in.ts';
import { userEvents } from './auth/users.ts';
import { chatEvents } from './chat.ts';
import { nameClaimed, nameClaimVoided, nameReleased } from './claims.ts';
import { connectionEvents } from './connections.ts';
import type { EventDefinition } from './define.ts';
import { githubIssueEvents } from './github/issues.ts';
import { githubLinkEvents } from './github/links.ts';
import { githubSyncEvents } from './github/syncs.ts';
import { notificationEvents } from './monitoring/notifications.ts';
import { standupEvents } from './monitoring/standups.ts';
import { pipelineEvents } from './pipelines/pipelines.ts';
import { pipelineRunEvents } from './pipelines/runs.ts';
import { projectAssignmentEvents } from './projects/assignments.ts';
import { projectEvents } from './projects/projects.ts';
import { qualityReviewEvents } from './quality/reviews.ts';
import { qualityVerdictEvents } from './quality/verdicts.ts';
import { sessionEvents } from './sessions.ts';
import { provisionJobEvents } from './super/provision-jobs.ts';
import { tenantEvents } from './super/tenants.ts';
import { taskBranchEvents } from './tasks/branches.ts';
import { taskBroadcastEvents } from './tasks/broadcasts.ts';
import { taskChangeEvents } from './tasks/changes.ts';
import { taskCommentEvents } from './tasks/comments.ts';
import { taskDispatchEvents } from './tasks/dispatch.ts';
import { taskQueueEvents } from './tasks/queue.ts';
import { taskRecurrenceEvents } from './tasks/recurrence.ts';
import { taskRoutingEvents } from './tasks/routing.ts';
import { taskSubscriptionEvents } from './tasks/subscriptions.ts';
import { taskEvents } from './tasks/tasks.ts';
import { tokenPriceEvents } from './tokens/prices.ts';
import { tokenReportEvents } from './tokens/reports.ts';
import { webhookEvents } from './webhooks/webhooks.ts';
import { workflowEvents } from './workflows.ts';
import { workspaceEvents } from './workspaces/workspaces.ts';

const definitions = [
  ...userEvents,
  ...lastAdminEvents,
  ...peopleEvents,
  ...signInEvents,
  ...accessRequestEvents,
  ...globalKeyEvents,
  ...incidentEvents,
  ...agentEvents,
  ...agentRegistrationEvents,
  ...agentHeartbeatEvents,
  ...agentMemoryEvents,
  ...agentSoulEvents,
  ...agentSyncEvents,
  ...livenessEvents,
  ...adapterEvents,
  ...agentKeyEvents,
  ...agentMessageEvents,
  ...chatEvents,
  ...connectionEvents,
  ...sessionEvents,
  ...taskEvents,
  ...taskChangeEvents,
  ...taskQueueEvents,
  ...taskRecurrenceEvents,
  ...taskCommentEvents,
  ...taskSubscriptionEvents,
  ...taskBroadcastEvents,
  ...taskBranchEvents,
  ...taskRoutingEvents,
  ...taskDispatchEvents,
  ...githubLinkEvents,
  ...githubIssueEvents,
  ...githubSyncEvents,
  ...qualityReviewEvents,
  ...qualityVerdictEvents,
  ...tokenReportEvents,
  ...tokenPriceEvents,
  ...notificationEvents,
  ...standupEvents,
  ...workflowEvents,
  ...projectEvents,
  ...projectAssignmentEvents,
  ...pipelineEvents,
  ...pipelineRunEvents,
  ...webhookEvents,
  ...alertRuleEvents,
  ...gatewayConfigEvents,
  ...settingsEvents,
  ...cleanupEvents,
  ...gatewayEvents,
  ...execApprovalEvents,
  ...exportEvents,
  ...cronEvents,
  ...backupEvents,
  ...tenantEvents,
  ...provisionJobEvents,
  ...workspaceEvents,
  nameClaimed,
  nameReleased,
  nameClaimVoided,
] satisfies readonly { readonly type: string }[] as unknown as readonly EventDefinition[];

export const catalogue: ReadonlyMap<string, EventDefinition> = new Map(
  definitions.map((definition) => [definition.type, definition]),
);
if (catalogue.size !== definitions.length) throw new Error('two event definitions share a type');
