/** Every projection of the service, in display order. */

import { cronProjection } from './admin/cron.ts';
import { execApprovalsProjection } from './admin/exec-approvals.ts';
import { gatewayConfigProjection } from './admin/gateway-config.ts';
import { gatewaysProjection } from './admin/gateways.ts';
import { settingsProjection } from './admin/settings.ts';
import { agentsProjection } from './agents/agents.ts';
import { agentAttributionProjection } from './agents/attribution.ts';
import { diagnosticsProjection } from './agents/diagnostics.ts';
import { agentKeysProjection } from './agents/keys.ts';
import { leasesProjection } from './agents/leases.ts';
import { alertRulesProjection } from './alerts/rules.ts';
import { usersProjection } from './auth/users.ts';
import { chatProjection } from './chat.ts';
import { connectionsProjection } from './connections.ts';
import { githubProjection } from './github/syncs.ts';
import { activitiesProjection } from './monitoring/activities.ts';
import { auditProjection } from './monitoring/audit.ts';
import { notificationsProjection } from './monitoring/notifications.ts';
import { searchProjection } from './monitoring/search.ts';
import { standupsProjection } from './monitoring/standups.ts';
import { pipelinesProjection } from './pipelines/pipelines.ts';
import type { Projection } from './projection.ts';
import { projectsProjection } from './projects/projects.ts';
import { ticketsProjection } from './projects/tickets.ts';
import { qualityReviewsProjection } from './quality/reviews.ts';
import { sessionsProjection } from './sessions.ts';
import { tenantsProjection } from './super/tenants.ts';
import { taskCommentsProjection } from './tasks/comments.ts';
import { tasksProjection } from './tasks/tasks.ts';
import { tokenPricesProjection } from './tokens/prices.ts';
import { tokensProjection } from './tokens/reports.ts';
import { webhooksProjection } from './webhooks/webhooks.ts';
import { workflowsProjection } from './workflows.ts';
import { workspacesProjection } from './workspaces/workspaces.ts';

export const projections: readonly Projection[] = [
  usersProjection,
  agentsProjection,
  leasesProjection,
  agentKeysProjection,
  diagnosticsProjection,
  agentAttributionProjection,
  chatProjection,
  connectionsProjection,
  sessionsProjection,
  tasksProjection,
  taskCommentsProjection,
  qualityReviewsProjection,
  workflowsProjection,
  projectsProjection,
  ticketsProjection,
  pipelinesProjection,
  githubProjection,
  webhooksProjection,
  alertRulesProjection,
  tokensProjection,
  tokenPricesProjection,
  gatewayConfigProjection,
  settingsProjection,
  gatewaysProjection,
  execApprovalsProjection,
  cronProjection,
  tenantsProjection,
  workspacesProjection,
  activitiesProjection,
  auditProjection,
  notificationsProjection,
  searchProjection,
  standupsProjection,
];
