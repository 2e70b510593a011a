/** Every route of the service. */
import type { Route } from '../http/route.ts';
import { backupRoutes } from './admin/backup.ts';
import { cleanupRoutes } from './admin/cleanup.ts';
import { cronRoutes } from './admin/cron.ts';
import { execApprovalRoutes } from './admin/exec-approvals.ts';
import { exportRoutes } from './admin/export.ts';
import { gatewayConfigRoutes } from './admin/gateway-config.ts';
import { gatewayRoutes } from './admin/gateways.ts';
import { schedulerRoutes } from './admin/scheduler.ts';
import { settingsRoutes } from './admin/settings.ts';
import { adapterRoutes } from './agents/adapters.ts';
import { agentRoutes } from './agents/agents.ts';
import { attributionRoutes } from './agents/attribution.ts';
import { agentDiagnosticsRoutes } from './agents/diagnostics.ts';
import { agentHeartbeatRoutes } from './agents/heartbeat.ts';
import { agentKeyRoutes } from './agents/keys.ts';
import { agentMemoryRoutes } from './agents/memory.ts';
import { agentMessageRoutes } from './agents/messages.ts';
import { agentRegistrationRoutes } from './agents/registration.ts';
import { agentSoulRoutes } from './agents/souls.ts';
import { agentSyncRoutes } from './agents/sync.ts';
import { alertRoutes } from './alerts/rules.ts';
import { accessRequestRoutes } from './auth/access-requests.ts';
import { globalKeyRoutes } from './auth/global-key.ts';
import { peopleRoutes } from './auth/people.ts';
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
import { historyCauseRoutes } from './history/causes.ts';
import { historyDiffRoutes } from './history/diff.ts';
import { historyEventRoutes } from './history/events.ts';
import { historyProofRoutes } from './history/proofs.ts';
import { historyTimelineRoutes } from './history/timeline.ts';
import { mcpRoutes } from './mcp.ts';
import { mentionRoutes } from './mentions.ts';
import { activityRoutes } from './monitoring/activities.ts';
import { auditRoutes } from './monitoring/audit.ts';
import { eventRoutes } from './monitoring/events.ts';
import { healthRoutes } from './monitoring/health.ts';
import { logRoutes } from './monitoring/logs.ts';
import { notificationRoutes } from './monitoring/notifications.ts';
import { searchRoutes } from './monitoring/search.ts';
import { standupRoutes } from './monitoring/standups.ts';
import { statusRoutes } from './monitoring/status.ts';
import { workloadRoutes } from './monitoring/workload.ts';
import { pipelineRoutes } from './pipelines/pipelines.ts';
import { pipelineRunRoutes } from './pipelines/runs.ts';
import { projectAssignmentRoutes } from './projects/assignments.ts';
import { projectRoutes } from './projects/projects.ts';
import { qualityReviewRoutes } from './quality/reviews.ts';
import { releaseRoutes } from './releases.ts';
import { sessionRoutes } from './sessions.ts';
import { provisionJobRoutes } from './super/provision-jobs.ts';
import { tenantRoutes } from './super/tenants.ts';
import { taskBranchRoutes } from './tasks/branches.ts';
import { taskBroadcastRoutes } from './tasks/broadcasts.ts';
import { taskChangeRoutes } from './tasks/changes.ts';
import { taskCommentRoutes } from './tasks/comments.ts';
import { taskOutcomeRoutes } from './tasks/outcomes.ts';
import { taskQueueRoutes } from './tasks/queue.ts';
import { taskRegressionRoutes } from './tasks/regression.ts';
import { taskRoutes } from './tasks/tasks.ts';
import { tokenPriceRoutes } from './tokens/prices.ts';
import { tokenReportRoutes } from './tokens/reports.ts';
import { tokenUsageRoutes } from './tokens/usage.ts';
import { webhookDeliveryRoutes } from './webhooks/deliveries.ts';
import { webhookSignatureRoutes } from './webhooks/signatures.ts';
import { webhookRoutes } from './webhooks/webhooks.ts';
import { workflowRoutes } from './workflows.ts';
import { workspaceRoutes } from './workspaces/workspaces.ts';

export const routes: readonly Route[] = [
  ...signInRoutes,
  ...profileRoutes,
  ...setupRoutes,
  ...userRoutes,
  ...peopleRoutes,
  ...accessRequestRoutes,
  ...globalKeyRoutes,
  ...agentRoutes,
  ...agentDiagnosticsRoutes,
  ...agentRegistrationRoutes,
  ...attributionRoutes,
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
  ...mentionRoutes,
  ...taskOutcomeRoutes,
  ...taskRegressionRoutes,
  ...workflowRoutes,
  ...pipelineRoutes,
  ...pipelineRunRoutes,
  ...taskRoutes,
  ...taskChangeRoutes,
  ...taskCommentRoutes,
  ...taskBroadcastRoutes,
  ...taskBranchRoutes,
  ...taskQueueRoutes,
  ...qualityReviewRoutes,
  ...webhookRoutes,
  ...webhookDeliveryRoutes,
  ...webhookSignatureRoutes,
  ...alertRoutes,
  ...tokenReportRoutes,
  ...tokenUsageRoutes,
  ...tokenPriceRoutes,
  ...gatewayConfigRoutes,
  ...gatewayRoutes,
  ...execApprovalRoutes,
  ...exportRoutes,
  ...cronRoutes,
  ...backupRoutes,
  ...cleanupRoutes,
  ...settingsRoutes,
  ...schedulerRoutes,
  ...tenantRoutes,
  ...provisionJobRoutes,
  ...workspaceRoutes,
  ...activityRoutes,
  ...auditRoutes,
  ...notificationRoutes,
  ...logRoutes,
  ...searchRoutes,
  ...standupRoutes,
  ...workloadRoutes,
  ...eventRoutes,
  ...healthRoutes,
  ...statusRoutes,
  ...historyEventRoutes,
  ...historyDiffRoutes,
  ...historyCauseRoutes,
  ...historyProofRoutes,
  ...historyTimelineRoutes,
  ...releaseRoutes,
  ...githubIssueRoutes,
  ...githubSyncRoutes,
  ...docsRoutes(() => routes),
  ...consoleRoutes,
  ...mcpRoutes(() => routes),
];
