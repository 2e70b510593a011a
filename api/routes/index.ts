/** Every route of the service. */
import type { Route } from '../http/route.ts';
import { accessRequestRoutes } from './access-requests.ts';
import { adapterRoutes } from './adapters.ts';
import { agentKeyRoutes } from './agent-keys.ts';
import { agentMessageRoutes } from './agent-messages.ts';
import { agentRoutes } from './agents.ts';
import { agentHeartbeatRoutes } from './agents-heartbeat.ts';
import { agentTextRoutes } from './agents-soul-memory.ts';
import { agentSyncRoutes } from './agents-sync.ts';

import { authRoutes } from './auth.ts';
import { docsRoutes } from './docs.ts';
import { gatewayConfigRoutes } from './gateway-config.ts';
import { globalKeyRoutes } from './global-key.ts';
import { healthRoutes } from './health.ts';
import { monitoringRoutes } from './monitoring.ts';
import { setupRoutes } from './setup.ts';
import { userRoutes } from './users.ts';

export const routes: readonly Route[] = [
  ...authRoutes,
  ...setupRoutes,
  ...userRoutes,
  ...accessRequestRoutes,
  ...globalKeyRoutes,
  ...agentRoutes,
  ...agentHeartbeatRoutes,
  ...agentTextRoutes,
  ...agentMessageRoutes,
  ...agentSyncRoutes,
  ...agentKeyRoutes,
  ...adapterRoutes,
  ...gatewayConfigRoutes,
  ...monitoringRoutes,
  ...healthRoutes,
  ...docsRoutes(() => routes),
];
