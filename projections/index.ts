/** Every projection of the service, in the order in which they are listed. */
import { activitiesProjection } from './activities.ts';
import { agentKeysProjection } from './agent-keys.ts';
import { agentMessagesProjection } from './agent-messages.ts';
import { agentsProjection } from './agents.ts';
import { auditProjection } from './audit.ts';
import { gatewayConfigProjection } from './gateway-config.ts';
import { notificationsProjection } from './notifications.ts';
import type { Projection } from './projection.ts';
import { usersProjection } from './users.ts';

export const projections: readonly Projection[] = [
  usersProjection,
  agentsProjection,
  agentKeysProjection,
  agentMessagesProjection,
  gatewayConfigProjection,
  activitiesProjection,
  auditProjection,
  notificationsProjection,
];
