/** Every route of the service. */
import type { Route } from '../http/route.ts';
import { backupRoutes } from './admin/backup.ts';
import { cleanupRoutes } from './admin/cleanup.ts';
import { cronRoutes } from './admin/cron.ts';
import { execApprovalRoutes } from './admin/exec-approvals.ts';
import { exportRoute } from './admin/export.ts';
import { gatewayConfigRoutes } from './admin/gateway-config.ts';
import { gatewayRoutes } from './admin/gateways.ts';
import { pauseRoutes } from './admin/pause.ts';
import { schedulerRoutes } from './admin/scheduler.ts';
import { settingsRoutes } from './admin/settings.ts';
import { adapterRoutes } from './agents/adapters.ts';
import { agentRoutes } from './agents/agents.ts';
import { attributionRoute } from './agents/attribution.ts';
import { agentDiagnosticsRoute } from './agents/diagnostics.ts';
import { agentHeartbeatRoutes } from './agents/heartbeat.ts';
import { agentKeyRoutes } from './agents/keys.ts';
import { agentMemoryRoutes } from './agents/memory.ts';
import { agentMessageRoutes } from './agents/messages.ts';
import { agentRegistrationRoute } from './agents/registration.ts';
import { agentSoulRoutes } from './agents/souls.ts';
import { agentSyncRoutes } from './agents/sync.ts';
import { alertRoutes } from './alerts/rules.ts';
import { accessRequestRoutes } from './auth/access-requests.ts';
import { globalKeyRoutes } from './auth/global-key.ts';
import { peopleRoute } from './auth/people.ts';
import { profileRoutes } from './auth/profile.ts';
import { setupRoutes } from './auth/setup.ts';
import { signInRoutes } from './auth/sign-in.ts';
import { userRoutes } from './auth/users.ts';
import { chatRoutes } from './chat.ts';
import { connectionRoutes } from './connections.ts';
import { consoleRoutes } from './console.ts';
import { docsRoutes } from './docs.ts';
import { githubIssueRoutes } from './github/issues.ts';
import { githubSyncRoutes } from './github/syncs.ts';
import { historyCauseRoute } from './history/causes.ts';
import { historyDiffRoute } from './history/diff.ts';
import { historyEventRoutes } from './history/events.ts';
import { historyProofRoutes } from './history/proofs.ts';
import { historyTimelineRoute } from './history/timeline.ts';
import { mcpRoutes } from './mcp.ts';
import { mentionRoute } from './mentions.ts';
import { activityRoute } from './monitoring/activities.ts';
import { auditRoute } from './monitoring/audit.ts';
import { eventRoute } from './monitoring/events.ts';
import { healthRoutes } from './monitoring/health.ts';
import { logRoutes } from './monitoring/logs.ts';
import { notificationRoutes } from './monitoring/notifications.ts';
import { searchRoute } from './monitoring/search.ts';
import { standupRoutes } from './monitoring/standups.ts';
import { statusRoute } from './monitoring/status.ts';
import { workloadRoute } from './monitoring/workload.ts';
import { pipelineRoutes } from './pipelines/pipelines.ts';
import { pipelineRunRoutes } from './pipelines/runs.ts';
import { projectAssignmentRoutes } from './projects/assignments.ts';
import { projectRoutes } from './projects/projects.ts';
import { qualityReviewRoutes } from './quality/reviews.ts';
import { releaseRoute } from './releases.ts';
import { sessionRoutes } from './sessions.ts';
import { provisionJobRoutes } from './super/provision-jobs.ts';
import { tenantRoutes } from './super/tenants.ts';
import { taskBranchRoutes } from './tasks/branches.ts';
import { taskBroadcastRoute } from './tasks/broadcasts.ts';
import { taskChangeRoutes } from './tasks/changes.ts';
import { taskCommentRoutes } from './tasks/comments.ts';
import { taskOutcomeRoute } from './tasks/outcomes.ts';
import { taskQueueRoute } from './tasks/queue.ts';
import { taskRegressionRoute } from './tasks/regression.ts';
import { taskRoutes } from './tasks/tasks.ts';
import { tokenPriceRoutes } from './tokens/prices.ts';
import { tokenReportRoutes } from './tokens/reports.ts';
import { tokenUsageRoutes } from './tokens/usage.ts';
import { webhookDeliveryRoutes } from './webhooks/deliveries.ts';
import { webhookSignatureRoute } from './webhooks/signatures.ts';
import { webhookRoutes } from './webhooks/webhooks.ts';
import { workflowRoutes } from './workflows.ts';
import { workspaceRoutes } from './workspaces/workspaces.ts';

export const routes: readonly Route[] = [
  ...signInRoutes,
  ...profileRoutes,
  ...setupRoutes,
  ...userRoutes,
  peopleRoute,
  ...accessRequestRoutes,
  ...globalKeyRoutes,
  ...agentRoutes,
  agentDiagnosticsRoute,
  agentRegistrationRoute,
  attributionRoute,
  ...agentHeartbeatRoutes,
  ...agentMemoryRoutes,
  ...agentSoulRoutes,
  ...agentMessageRoutes,
  ...agentSyncRoutes,
  ...chatRoutes,
  ...connectionRoutes,
  ...sessionRoutes,
  ...agentKeyRoutes,
  ...adapterRoutes,
  ...projectRoutes,
  ...projectAssignmentRoutes,
  mentionRoute,
  taskOutcomeRoute,
  taskRegressionRoute,
  ...workflowRoutes,
  ...pipelineRoutes,
  ...pipelineRunRoutes,
  ...taskRoutes,
  ...taskChangeRoutes,
  ...taskCommentRoutes,
  taskBroadcastRoute,
  ...taskBranchRoutes,
  taskQueueRoute,
  ...qualityReviewRoutes,
  ...webhookRoutes,
  ...webhookDeliveryRoutes,
  webhookSignatureRoute,
  ...alertRoutes,
  ...tokenReportRoutes,
  ...tokenUsageRoutes,
  ...tokenPriceRoutes,
  ...gatewayConfigRoutes,
  ...gatewayRoutes,
  ...execApprovalRoutes,
  exportRoute,
  ...cronRoutes,
  ...backupRoutes,
  ...pauseRoutes,
  ...cleanupRoutes,
  ...settingsRoutes,
  ...schedulerRoutes,
  ...tenantRoutes,
  ...provisionJobRoutes,
  ...workspaceRoutes,
  activityRoute,
  auditRoute,
  ...notificationRoutes,
  ...logRoutes,
  searchRoute,
  ...standupRoutes,
  workloadRoute,
  eventRoute,
  ...healthRoutes,
  statusRoute,
  ...historyEventRoutes,
  historyDiffRoute,
  historyCauseRoute,
  ...historyProofRoutes,
  historyTimelineRoute,
  releaseRoute,
  ...githubIssueRoutes,
  ...githubSyncRoutes,
  ...docsRoutes(() => routes),
  ...consoleRoutes,
  ...mcpRoutes(() => routes),
];
